#include "engine/model/files/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/families/qwen2_5_vl.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::safetensors;

using Shape = std::vector<std::int64_t>;

/// One tensor of U8, BF16 or another type, [2, 2], in a file of its own.
std::string file_with(const std::string& name, const std::string& dtype = "BF16", int bytes = 8) {
  std::string header = R"({")" + name + R"(": {"dtype": ")" + dtype +
                       R"(", "shape": [2, 2], "data_offsets": [0, )" + std::to_string(bytes) + "]}}";
  while (header.size() % 8 != 0) header += ' ';
  return safetensors(header, std::string(static_cast<std::size_t>(bytes), '\1'));
}

class WeightsTest : public ::testing::Test {
 protected:
  Weights open() const { return Weights::open(folder_.path(), kQwen25Vl.prefixes); }
  std::string error() const {
    return error_of([&] { open(); });
  }
  std::string at(const std::string& file) const { return (folder_.path() / file).string(); }
  testing::ScratchFolder folder_;
};

TEST_F(WeightsTest, NeedsWeights) {
  EXPECT_THAT(error(), HasSubstr("neither model.safetensors nor model.safetensors.index.json is here"));
}

TEST_F(WeightsTest, FindsTensorsInBothLayoutsOfNames) {
  folder_.write("model.safetensors.index.json", R"({"weight_map": {"model.norm.weight": "a.safetensors",
      "visual.merger.ln_q.weight": "b.safetensors", "model.visual.patch_embed.proj.weight": "c.safetensors",
      "model.language_model.embed_tokens.weight": "d.safetensors", "lm_head.weight": "e.safetensors"}})");
  folder_.write("a.safetensors", file_with("model.norm.weight"));
  folder_.write("b.safetensors", file_with("visual.merger.ln_q.weight"));
  folder_.write("c.safetensors", file_with("model.visual.patch_embed.proj.weight"));
  folder_.write("d.safetensors", file_with("model.language_model.embed_tokens.weight", "F32", 16));
  folder_.write("e.safetensors", file_with("lm_head.weight", "F16"));
  const Weights weights = open();
  for (const char* name : {"model.language_model.norm.weight", "model.visual.merger.ln_q.weight",
                           "model.visual.patch_embed.proj.weight", "model.language_model.embed_tokens.weight",
                           "lm_head.weight"}) {
    EXPECT_TRUE(weights.has(name)) << name;
    EXPECT_THAT(weights.get(name, Shape{2, 2}).shape, ElementsAre(2, 2)) << name;
  }
  EXPECT_FALSE(weights.has("model.language_model.layers.0.weight"));
  EXPECT_EQ(weights.count(), 5U);
  EXPECT_EQ(weights.bytes(), 8U * 4 + 16);
  EXPECT_EQ(weights.parameters(), 20U);
  EXPECT_THAT(weights.names(),
              ElementsAre("lm_head.weight", "model.language_model.embed_tokens.weight",
                          "model.language_model.norm.weight", "model.visual.merger.ln_q.weight",
                          "model.visual.patch_embed.proj.weight"));
}

TEST_F(WeightsTest, NamesTheFileAndTheTensor) {
  folder_.write("model.safetensors", file_with("model.norm.weight"));
  const Weights weights = open();
  EXPECT_EQ(error_of([&] {
              weights.get("lm_head.weight", Shape{2, 2});
            }),
            folder_.path().string() + ": tensor 'lm_head.weight' is missing");
  EXPECT_EQ(
      error_of([&] { weights.get("model.language_model.norm.weight", Shape{4}); }),
      at("model.safetensors") +
          ": tensor 'model.language_model.norm.weight': its shape is [2, 2], the configuration needs [4]");
}

TEST_F(WeightsTest, RefusesTypesThatAreNoWeights) {
  folder_.write("model.safetensors", file_with("a", "F8_E4M3", 4));
  EXPECT_EQ(open().count(), 1U);
  EXPECT_TRUE(open().has("a"));
  EXPECT_THAT(error_of([&] {
                open().get("a", Shape{2, 2});
              }),
              HasSubstr("tensor 'a': the element type 'F8_E4M3' is not supported"));
  folder_.write("model.safetensors", file_with("a", "I32", 16));
  EXPECT_THAT(error_of([&] {
                open().get("a", Shape{2, 2});
              }),
              HasSubstr("its elements are i32, weights are bf16, f16 or f32"));
}

TEST_F(WeightsTest, PrefersTheSingleFileAsTransformersDoes) {
  folder_.write("model.safetensors", file_with("lm_head.weight"));
  folder_.write("model.safetensors.index.json",
                R"({"weight_map": {"lm_head.weight": "missing.safetensors"}})");
  EXPECT_EQ(open().count(), 1U);
}

TEST_F(WeightsTest, RefusesABrokenIndex) {
  const auto with = [&](const char* text) {
    folder_.write("model.safetensors.index.json", text);
    return error();
  };
  EXPECT_THAT(with("{"), HasSubstr("model.safetensors.index.json: not valid JSON"));
  EXPECT_THAT(with("{}"), HasSubstr("weight_map: missing"));
  EXPECT_THAT(with(R"({"weight_map": {}})"), HasSubstr("weight_map names no tensor"));
  EXPECT_THAT(with(R"({"weight_map": {"a": 3}})"), HasSubstr("'a' names no file"));
  EXPECT_THAT(with(R"({"weight_map": {"a": "../other/model.safetensors"}})"),
              HasSubstr("'../other/model.safetensors' is not a plain file name"));
  EXPECT_THAT(with(R"({"weight_map": {"a": "/etc/passwd"}})"), HasSubstr("is not a plain file name"));
  EXPECT_THAT(with(R"({"weight_map": {"a": ".."}})"), HasSubstr("is not a plain file name"));
  EXPECT_THAT(with(R"({"weight_map": {"a": ""}})"), HasSubstr("is not a plain file name"));
  EXPECT_THAT(with(R"({"weight_map": {"a": "one.safetensors"}})"),
              HasSubstr("one.safetensors: No such file"));
  folder_.write("one.safetensors", file_with("b"));
  EXPECT_EQ(with(R"({"weight_map": {"a": "one.safetensors"}})"),
            at("one.safetensors") + ": tensor 'a' is missing, which the index places here");
}

}  // namespace
}  // namespace vigil::model
