#include "engine/model/verify/golden.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::filesystem::path golden_path(const std::string& model) {
  return std::filesystem::path(VIGIL_SOURCE_DIR) / "tests/golden/models" / (model + ".safetensors");
}

const GoldenCase& find(const GoldenFile& file, std::string_view name) {
  return *std::find_if(file.cases.begin(), file.cases.end(),
                       [&](const GoldenCase& c) { return c.name == name; });
}

// The expected figures were read with numpy and with transformers' own processors.
TEST(GoldenFileTest, ReadsWhatTheMakerWrote) {
  const GoldenFile file = read_golden(golden_path("half"));
  EXPECT_EQ(file.model, "half");
  EXPECT_EQ(file.transformers, "5.17.0");
  ASSERT_EQ(file.cases.size(), 4U);
  const GoldenCase& video = find(file, "video");
  EXPECT_EQ(video.kind, GoldenCase::Kind::video);
  EXPECT_EQ(video.prompt, "");
  EXPECT_EQ(video.fps, 2.0);
  EXPECT_EQ(video.seconds_per_grid, 1.0);
  EXPECT_EQ(video.input_ids.size(), 34U);
  EXPECT_EQ(video.input_ids[1], 684);
  EXPECT_EQ(video.position_ids[0][16], 15);
  EXPECT_EQ(video.position_ids[1][14], 13);
  EXPECT_EQ(video.position_ids[2][13], 13);
  EXPECT_THAT(video.rows, ElementsAre(0, 5, 9, 14, 19, 24, 28, 33));
  EXPECT_THAT(video.grid, ElementsAre(3, 6, 6));
  EXPECT_EQ(video.frames, 5);
  const PictureView second = video.frame(1);
  EXPECT_EQ(second.width, 75);
  EXPECT_EQ(second.height, 61);
  EXPECT_EQ(second.rgb[(2 * 75 + 3) * 3], 255);
  EXPECT_EQ(video.hidden.cols, 240);
  EXPECT_FLOAT_EQ(video.hidden.row(0)[1], 0.67708266F);
  EXPECT_FLOAT_EQ(video.vision_embeddings.row(1)[1], -1.3274548F);
  EXPECT_FLOAT_EQ(video.logits_bf16_error, 0.01301926F);
}

TEST(GoldenFileTest, ExpandsLevelsToTheProcessorsFloats) {
  const GoldenFile file = read_golden(golden_path("half"));
  const GoldenMatrix& values = find(file, "video").pixel_values;
  ASSERT_EQ(values.rows, 108);
  ASSERT_EQ(values.cols, 864);
  EXPECT_EQ(values.row(0)[0], 0x1.df37a0p+0F);
  EXPECT_EQ(values.row(7)[864 / 3], 0x1.3cfea0p-1F);
  EXPECT_EQ(values.row(107)[863], 0x1.9b0452p+0F);
}

TEST(GoldenFileTest, EveryCommittedFileIsWholeAndAgreesWithItself) {
  for (const char* model : {"tiny", "odd", "half", "wide"}) {
    const GoldenFile file = read_golden(golden_path(model));
    for (const GoldenCase& c : file.cases) {
      SCOPED_TRACE(std::string(model) + "/" + c.name);
      ASSERT_EQ(c.greedy_tokens.size(), 64U);
      std::vector<float> last(c.logits.row(c.logits.rows - 1).begin(), c.logits.row(c.logits.rows - 1).end());
      EXPECT_EQ(std::max_element(last.begin(), last.end()) - last.begin(), c.greedy_tokens[0]);
      std::nth_element(last.begin(), last.begin() + 1, last.end(), std::greater<>());
      EXPECT_FLOAT_EQ(last[0] - last[1], c.greedy_gap[0]);
      EXPECT_GT(c.logits_bf16_error, 0.0F);
    }
  }
}

/// A safetensors file in memory, one fault at a time.
struct Draft {
  struct Tensor {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::string bytes;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  template <typename T>
  void set(const std::string& name, const std::string& dtype, std::vector<std::int64_t> shape,
           const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    tensors[name] = {dtype, std::move(shape), bytes};
  }

  GoldenFile read() const {
    nlohmann::json header = {{"__metadata__", metadata}};
    std::string body;
    for (const auto& [name, tensor] : tensors) {
      body.resize((body.size() + 3) / 4 * 4, '\0');
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {body.size(), body.size() + tensor.bytes.size()}}};
      body += tensor.bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const auto length = static_cast<std::uint64_t>(text.size());
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    file += text + body;
    // The reader wants the tensors aligned, as in a map.
    std::vector<std::uint64_t> aligned(file.size() / 8 + 1);
    std::memcpy(aligned.data(), file.data(), file.size());
    return read_golden(
        *SafetensorsFile::parse(std::as_bytes(std::span(aligned)).first(file.size()), "draft"));
  }
};

/// Two 1x2-pixel frames, one patch of three values, two tokens, a vocabulary of three.
Draft good_draft() {
  Draft d;
  d.metadata = {
      {"format", "vigil-golden-1"},
      {"model", "m"},
      {"cases",
       R"([{"name":"c","kind":"video","frames":2,"height":1,"width":2,"fps":4,"seconds_per_grid":0.5,"prompt":"p"}])"}};
  d.set<std::int32_t>("c/input_ids", "I32", {2}, {1, 2});
  d.set<std::int32_t>("c/position_ids", "I32", {3, 2}, {0, 1, 2, 3, 4, 5});
  d.set<std::uint8_t>("c/pixels", "U8", {2, 1, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  d.set<std::uint8_t>("c/pixel_levels", "U8", {1, 3}, {0, 255, 1});
  std::vector<float> table(768);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  d.set<float>("c/pixel_table", "F32", {3, 256}, table);
  d.set<std::int32_t>("c/grid_thw", "I32", {3}, {1, 1, 1});
  d.set<std::int32_t>("c/vision_rows", "I32", {1}, {0});
  d.set<float>("c/vision_embeddings", "F32", {1, 2}, {1, 2});
  d.set<float>("c/vision_bf16_error", "F32", {1}, {0.25F});
  d.set<std::int32_t>("c/rows", "I32", {1}, {1});
  d.set<float>("c/hidden", "F32", {1, 2}, {1, 2});
  d.set<float>("c/logits", "F32", {1, 3}, {1, 2, 3});
  d.set<float>("c/logits_bf16_error", "F32", {1}, {0.5F});
  d.set<std::int32_t>("c/greedy_tokens", "I32", {2}, {2, 0});
  d.set<float>("c/greedy_gap", "F32", {2}, {1, 1});
  return d;
}

TEST(GoldenFileTest, ReadsTheSmallestCase) {
  const GoldenFile file = good_draft().read();
  ASSERT_EQ(file.cases.size(), 1U);
  const GoldenCase& c = file.cases[0];
  EXPECT_EQ(c.prompt, "p");
  EXPECT_EQ(c.seconds_per_grid, 0.5);
  EXPECT_THAT(c.position_ids[1], ElementsAre(2, 3));
  EXPECT_THAT(c.pixel_values.values, ElementsAre(0, 511, 513));
  EXPECT_EQ(c.frame(1).rgb[0], 7);
  EXPECT_EQ(c.vision_bf16_error, 0.25F);
}

struct Fault {
  const char* name;
  std::function<void(Draft&)> apply;
  /// Parts of the one line.
  std::vector<std::string> message;
};

class GoldenFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(GoldenFaultTest, IsOneLineThatNamesFileAndTensor) {
  Draft draft = good_draft();
  GetParam().apply(draft);
  try {
    draft.read();
    FAIL() << "accepted";
  } catch (const ModelError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr("draft: "));
    for (const std::string& part : GetParam().message) EXPECT_THAT(text, HasSubstr(part));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<Fault> faults() {
  const auto cases = [](const std::string& text) { return [text](Draft& d) { d.metadata["cases"] = text; }; };
  std::vector<Fault> all = {
      {"no_format", [](Draft& d) { d.metadata.erase("format"); }, {"not a golden file"}},
      {"other_format", [](Draft& d) { d.metadata["format"] = "vigil-golden-2"; }, {"'vigil-golden-2'"}},
      {"no_cases", [](Draft& d) { d.metadata.erase("cases"); }, {"cases: not valid JSON"}},
      {"empty_cases", cases("[]"), {"a list of cases was expected"}},
      {"cases_no_list", cases("{}"), {"a list of cases was expected"}},
      {"case_no_object", cases("[3]"), {"an object was expected"}},
      {"nameless", cases(R"([{"kind":"text"}])"), {"name: missing"}},
      {"unknown_kind", cases(R"([{"name":"c","kind":"sound"}])"), {"kind", "'sound'"}},
      {"no_frames", cases(R"([{"name":"c","kind":"video","height":1,"width":2}])"), {"frames: missing"}},
      {"zero_frames",
       cases(R"([{"name":"c","kind":"video","frames":0,"height":1,"width":2}])"),
       {"frames", "0"}},
      {"other_frames",
       cases(R"([{"name":"c","kind":"video","frames":3,"height":1,"width":2}])"),
       {"'c/pixels'", "[2, 1, 2, 3]", "[3, 1, 2, 3]"}},
      {"other_case", cases(R"([{"name":"d","kind":"text"}])"), {"'d/input_ids'", "missing"}},
      {"wrong_type",
       [](Draft& d) {
         d.set<float>("c/input_ids", "F32", {2}, {1, 2});
       },
       {"'c/input_ids'", "is f32, not i32"}},
      {"no_ids",
       [](Draft& d) { d.set<std::int32_t>("c/input_ids", "I32", {0}, {}); },
       {"'c/input_ids'", "empty"}},
      {"negative_id",
       [](Draft& d) {
         d.set<std::int32_t>("c/input_ids", "I32", {2}, {1, -1});
       },
       {"'c/input_ids'", "negative"}},
      {"positions_of_another_length",
       [](Draft& d) {
         d.set<std::int32_t>("c/position_ids", "I32", {3, 1}, {0, 1, 2});
       },
       {"'c/position_ids'", "[3, 1]", "[3, 2]"}},
      {"rank",
       [](Draft& d) {
         d.set<float>("c/hidden", "F32", {2}, {1, 2});
       },
       {"'c/hidden'", "[2]"}},
      {"grid_of_zero",
       [](Draft& d) {
         d.set<std::int32_t>("c/grid_thw", "I32", {3}, {1, 0, 1});
       },
       {"'c/grid_thw'"}},
      {"grid_overflow",
       [](Draft& d) {
         d.set<std::int32_t>("c/grid_thw", "I32", {3}, {2147483647, 2147483647, 2147483647});
       },
       {"'c/grid_thw'"}},
      {"grid_of_more_patches",
       [](Draft& d) {
         d.set<std::int32_t>("c/grid_thw", "I32", {3}, {1, 2, 1});
       },
       {"'c/pixel_levels'", "[1, 3]", "[2, -1]"}},
      {"channels",
       [](Draft& d) {
         d.set<std::uint8_t>("c/pixel_levels", "U8", {1, 4}, {1, 2, 3, 4});
       },
       {"'c/pixel_levels'", "4 values", "3 channels"}},
      {"no_channels",
       [](Draft& d) {
         d.set<float>("c/pixel_table", "F32", {0, 256}, {});
       },
       {"'c/pixel_levels'"}},
      {"table_not_finite",
       [](Draft& d) {
         d.set<float>("c/pixel_table", "F32", {3, 256}, std::vector<float>(768, kNan));
       },
       {"'c/pixel_table'", "not finite"}},
      {"rows_descend",
       [](Draft& d) {
         d.set<std::int32_t>("c/rows", "I32", {2}, {1, 0});
       },
       {"'c/rows'", "not ascending"}},
      {"rows_repeat",
       [](Draft& d) {
         d.set<std::int32_t>("c/rows", "I32", {2}, {1, 1});
       },
       {"'c/rows'"}},
      {"row_past_the_end",
       [](Draft& d) { d.set<std::int32_t>("c/rows", "I32", {1}, {2}); },
       {"'c/rows'", "below 2"}},
      {"negative_row",
       [](Draft& d) {
         d.set<std::int32_t>("c/rows", "I32", {2}, {-1, 1});
       },
       {"'c/rows'"}},
      {"no_rows", [](Draft& d) { d.set<std::int32_t>("c/rows", "I32", {0}, {}); }, {"'c/rows'", "empty"}},
      {"without_the_last_row",
       [](Draft& d) { d.set<std::int32_t>("c/rows", "I32", {1}, {0}); },
       {"'c/rows'", "last position"}},
      {"vision_row_past_the_end",
       [](Draft& d) { d.set<std::int32_t>("c/vision_rows", "I32", {1}, {1}); },
       {"'c/vision_rows'"}},
      {"widths_differ",
       [](Draft& d) {
         d.set<float>("c/vision_embeddings", "F32", {1, 3}, {1, 2, 3});
       },
       {"'c/vision_embeddings'", "3 wide", "2"}},
      {"logits_not_finite",
       [](Draft& d) {
         d.set<float>("c/logits", "F32", {1, 3}, {1, kInf, 3});
       },
       {"'c/logits'", "not finite"}},
      {"no_vocabulary",
       [](Draft& d) {
         d.set<float>("c/logits", "F32", {1, 0}, {});
       },
       {"'c/logits'", "empty"}},
      {"error_not_finite",
       [](Draft& d) { d.set<float>("c/logits_bf16_error", "F32", {1}, {kNan}); },
       {"'c/logits_bf16_error'"}},
      {"token_past_the_vocabulary",
       [](Draft& d) {
         d.set<std::int32_t>("c/greedy_tokens", "I32", {2}, {2, 3});
       },
       {"'c/greedy_tokens'", "vocabulary of 3"}},
      {"gaps_of_another_length",
       [](Draft& d) { d.set<float>("c/greedy_gap", "F32", {1}, {1}); },
       {"'c/greedy_gap'", "[1]", "[2]"}},
  };
  for (const auto& [name, tensor] : good_draft().tensors)
    all.push_back(
        {nullptr, [name = name](Draft& d) { d.tensors.erase(name); }, {"'" + name + "'", "missing"}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFaultTest, ::testing::ValuesIn(faults()), [](const auto& fault) {
  if (fault.param.name != nullptr) return std::string(fault.param.name);
  std::string tensor = fault.param.message[0];
  std::replace_if(
      tensor.begin(), tensor.end(), [](char c) { return c == '/' || c == '\''; }, '_');
  return "without" + tensor.substr(0, tensor.size() - 1);
});

TEST(GoldenFileTest, AnAbsentFileIsNamed) {
  try {
    read_golden(std::filesystem::path("/nonexistent/x.safetensors"));
    FAIL() << "accepted";
  } catch (const ModelError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/x.safetensors"));
  }
}

}  // namespace
}  // namespace vigil::model
