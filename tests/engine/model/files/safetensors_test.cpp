#include "engine/model/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::safetensors;

/// Bytes with the alignment that a map has.
class Bytes {
 public:
  explicit Bytes(const std::string& text) : words_((text.size() + 7) / 8), size_(text.size()) {
    if (!text.empty()) std::memcpy(words_.data(), text.data(), text.size());
  }
  std::span<const std::byte> view() const { return std::as_bytes(std::span(words_)).first(size_); }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_;
};

std::string error_in(const std::string& file) {
  const Bytes bytes(file);
  return error_of([&] { SafetensorsFile::parse(bytes.view(), "x.safetensors"); });
}

/// A header padded so that the data behind it is aligned, as writers pad it.
std::string padded(std::string header) {
  while (header.size() % 8 != 0) header += ' ';
  return header;
}

std::string error_in_header(const std::string& header, std::size_t data_bytes = 64) {
  return error_in(safetensors(padded(header), std::string(data_bytes, '\0')));
}

TEST(Safetensors, ReadsEveryTypeInPlace) {
  std::string data(32, '\0');
  const float one = 1.5F;
  std::memcpy(data.data(), &one, 4);
  data[4] = '\x80';  // bf16 1.0 = 3f80
  data[5] = '\x3f';
  data[8] = '\xFE';
  const Bytes bytes(safetensors(padded(R"({"__metadata__": {"format": "pt"},
      "f": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
      "b": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [4, 8]},
      "u": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]},
      "i": {"dtype": "I32", "shape": [1, 1, 2], "data_offsets": [12, 20]},
      "h": {"dtype": "F16", "shape": [2, 0, 5], "data_offsets": [20, 20]},
      "q": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [20, 24]}})"),
                                data));
  const auto file = SafetensorsFile::parse(bytes.view(), "x.safetensors");
  EXPECT_EQ(file->name(), "x.safetensors");
  EXPECT_THAT(file->metadata(), ElementsAre(std::pair("format", "pt")));
  ASSERT_EQ(file->tensors().size(), 5U);
  EXPECT_EQ(*reinterpret_cast<const float*>(file->find("f")->data), 1.5F);
  EXPECT_THAT(file->find("f")->shape, IsEmpty());
  EXPECT_EQ(file->find("f")->elements(), 1);
  EXPECT_EQ(kernels::to_float(*reinterpret_cast<const kernels::bf16*>(file->find("b")->data)), 1.F);
  EXPECT_EQ(file->find("b")->dtype, kernels::DType::bf16);
  EXPECT_EQ(static_cast<unsigned char>(file->find("u")->data[0]), 0xFE);
  EXPECT_EQ(file->find("i")->bytes(), 8U);
  EXPECT_EQ(file->find("h")->elements(), 0);
  EXPECT_EQ(file->find("none"), nullptr);
  // What lies in the caller's memory is used there.
  EXPECT_EQ(file->find("f")->data, bytes.view().data() + (bytes.view().size() - data.size()));
  EXPECT_THAT(file->other_types(), ElementsAre(std::pair("q", "F8_E4M3")));
  EXPECT_EQ(error_of([&] { file->find("q"); }),
            "x.safetensors: tensor 'q': the element type 'F8_E4M3' is not supported");
}

TEST(Safetensors, MapsAFileThatTheirLibraryWrote) {
  const auto file = SafetensorsFile::open(testing::golden("resize.safetensors"));
  EXPECT_TRUE(file->metadata().contains("torch"));
  const TensorView* pixel = file->find("pixel_noise/in");
  ASSERT_NE(pixel, nullptr);
  EXPECT_THAT(pixel->shape, ElementsAre(1, 1, 3));
  EXPECT_EQ(pixel->dtype, kernels::DType::u8);
}

TEST(Safetensors, AcceptsHolesAndNoTensors) {
  const Bytes holes(safetensors(padded(R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [10, 11]}})"),
                                std::string(64, 'x')));
  EXPECT_EQ(SafetensorsFile::parse(holes.view(), "x")->find("a")->elements(), 1);
  const Bytes none(safetensors("{}"));
  EXPECT_THAT(SafetensorsFile::parse(none.view(), "x")->tensors(), IsEmpty());
}

TEST(Safetensors, RefusesBrokenLengths) {
  EXPECT_EQ(error_in(""), "x.safetensors: 0 bytes are too few for a safetensors file");
  EXPECT_THAT(error_in("1234567"), HasSubstr("7 bytes are too few"));
  EXPECT_THAT(error_in(std::string(8, '\xFF') + "{}"),
              HasSubstr("the header claims 18446744073709551615 bytes, the file has 2"));
  EXPECT_THAT(error_in(std::string("\x03\0\0\0\0\0\0\0{}", 10)),
              HasSubstr("the header claims 3 bytes, the file has 2"));
  EXPECT_THAT(error_in(safetensors("")), HasSubstr("header: not valid JSON"));
}

TEST(Safetensors, RefusesHeadersThatAreNone) {
  EXPECT_THAT(error_in(safetensors("[1, 2]")), HasSubstr("header: an object was expected"));
  EXPECT_THAT(error_in(safetensors("{\"a\xFF\": {}}")), HasSubstr("UTF-8"));
  EXPECT_THAT(error_in(safetensors(std::string(100'000, '['))), HasSubstr("nested deeper than 8 levels"));
  EXPECT_THAT(error_in(safetensors(R"({"a": 1, "a": 2})")), HasSubstr("the key 'a' occurs twice"));
  EXPECT_THAT(
      error_in_header(R"({"a": {"dtype": "U8", "dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})"),
      HasSubstr("'dtype' occurs twice"));
  EXPECT_THAT(error_in(safetensors(R"({"__metadata__": 1})")), HasSubstr("__metadata__ is not an object"));
  EXPECT_THAT(error_in(safetensors(R"({"__metadata__": {"a": 1}})")), HasSubstr("'a' is not a string"));
  EXPECT_THAT(error_in(safetensors(R"({"a": 3})")), HasSubstr("tensor 'a': its entry is not an object"));
}

TEST(Safetensors, RefusesHostileTensors) {
  const auto tensor = [](const char* dtype, const char* shape, const char* offsets) {
    return error_in_header(std::string(R"({"weights": {"dtype": )") + dtype + R"(, "shape": )" + shape +
                           R"(, "data_offsets": )" + offsets + "}}");
  };
  EXPECT_THAT(tensor("1", "[1]", "[0, 1]"), HasSubstr("tensor 'weights': dtype is not a string"));
  EXPECT_THAT(tensor("\"U8\"", "{}", "[0, 1]"), HasSubstr("shape is not a list"));
  EXPECT_THAT(tensor("\"U8\"", "[-1]", "[0, 1]"), HasSubstr("shape holds '-1', not a count"));
  EXPECT_THAT(tensor("\"U8\"", "[1.0]", "[0, 1]"), HasSubstr("shape holds '1.0', not a count"));
  EXPECT_THAT(tensor("\"U8\"", "[1]", "[0]"), HasSubstr("data_offsets is not a range"));
  EXPECT_THAT(tensor("\"U8\"", "[1]", "[2, 1]"), HasSubstr("data_offsets is not a range"));
  EXPECT_THAT(tensor("\"U8\"", "[1]", "[0, -1]"), HasSubstr("data_offsets holds '-1'"));
  EXPECT_THAT(tensor("\"U8\"", "[65]", "[0, 65]"),
              HasSubstr("its bytes end at 65, the file's data at 64 (a truncated file?)"));
  EXPECT_THAT(tensor("\"U8\"", "[1]", "[18446744073709551614, 18446744073709551615]"),
              HasSubstr("(a truncated file?)"));
  EXPECT_THAT(tensor("\"F32\"", "[3]", "[0, 8]"), HasSubstr("need 3 times 4 bytes, data_offsets give 8"));
  EXPECT_THAT(tensor("\"F32\"", "[]", "[0, 8]"), HasSubstr("need 1 times 4 bytes, data_offsets give 8"));
  // Products that overflow, to a small number even.
  EXPECT_THAT(tensor("\"U8\"", "[4294967296, 4294967296]", "[0, 0]"),
              HasSubstr("more elements than any file can hold"));
  EXPECT_THAT(tensor("\"U8\"", "[4294967297, 4294967297]", "[0, 1]"),
              HasSubstr("more elements than any file can hold"));
  EXPECT_THAT(tensor("\"F32\"", "[4611686018427387904]", "[0, 0]"),
              HasSubstr("need 4611686018427387904 times 4 bytes"));
  EXPECT_THAT(tensor("\"U8\"", "[0, 18446744073709551615]", "[0, 0]"),
              HasSubstr("more elements than any file can hold"));
  EXPECT_THAT(tensor("\"U8\"", ("[" + std::string(64, '1') + "]").c_str(), "[0, 1]"),
              HasSubstr("not a count"));
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ", 1";
  EXPECT_THAT(tensor("\"U8\"", (many + "]").c_str(), "[0, 1]"), HasSubstr("shape has 65 entries"));
  EXPECT_THAT(tensor("\"F32\"", "[1]", "[2, 6]"), HasSubstr("not aligned to its elements of 4 bytes"));
}

TEST(Safetensors, RefusesOverlappingRanges) {
  EXPECT_EQ(error_in_header(R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                               "b": {"dtype": "U8", "shape": [4], "data_offsets": [7, 11]}})"),
            "x.safetensors: tensor 'b': its bytes overlap those of 'a'");
  EXPECT_THAT(error_in_header(R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [4, 12]},
                                 "b": {"dtype": "F8_E5M2", "shape": [8], "data_offsets": [4, 12]}})"),
              HasSubstr("its bytes overlap"));
  // Empty tensors share any place.
  const Bytes empty(safetensors(padded(R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                                          "b": {"dtype": "U8", "shape": [0], "data_offsets": [4, 4]}})"),
                                std::string(8, 'x')));
  EXPECT_NO_THROW(SafetensorsFile::parse(empty.view(), "x"));
}

TEST(Safetensors, NamesLongAndUglyTensorsInOneLine) {
  const std::string name = "a\\n\\u001b[31m" + std::string(100'000, 'x');
  const std::string line = error_in_header("{\"" + name + "\": 3}");
  EXPECT_LT(line.size(), 300U);
  EXPECT_THAT(line, HasSubstr("tensor 'a??[31mxxx"));
}

TEST(Safetensors, SaysWhyAFileCannotBeMapped) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(folder.path() / "none.safetensors"); }),
              HasSubstr("none.safetensors: No such file"));
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(folder.path()); }), HasSubstr("not a regular file"));
  folder.write("empty.safetensors", "");
  EXPECT_THAT(error_of([&] { SafetensorsFile::open(folder.path() / "empty.safetensors"); }),
              HasSubstr("0 bytes are too few"));
}

}  // namespace
}  // namespace vigil::model
