#include "engine/model/check.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/model/expected_tensors.h"
#include "engine/model/families/family.h"
#include "engine/model/model_folder.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::filesystem::path built(const std::string& model) {
  return std::filesystem::path(VIGIL_BINARY_DIR) / "golden" / "models" / model;
}

/// A copy of a golden model with a tokenizer, to be damaged.
class CheckFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& entry : std::filesystem::directory_iterator(built("tiny"))) {
      std::filesystem::copy(entry.path(), folder_.path() / entry.path().filename());
    }
  }
  FolderReport check() const { return check_folder(folder_.path()); }
  void patch_config(const Json& patch) const {
    Json json = read_json_file(folder_.path() / "config.json");
    json.merge_patch(patch);
    folder_.write("config.json", json.dump());
  }
  /// A tokenizer of 256 bytes and the special tokens with the ids that the configuration has.
  void write_tokenizer() const {
    const ModelConfig config = read_config(folder_.path());
    Json json = read_json_file(testing::golden("tokenizer/tokenizer.json"));
    Json vocabulary = Json::object();
    for (const auto& [token, id] : json["model"]["vocab"].items()) {
      if (id.get<int>() < 256) vocabulary[token] = id;
    }
    json["model"]["vocab"] = vocabulary;
    json["model"]["merges"] = Json::array();
    json["added_tokens"] = Json::array();
    const std::pair<const char*, int> specials[] = {{"<|im_start|>", 256},
                                                    {"<|im_end|>", 257},
                                                    {"<|vision_start|>", config.vision_start_token_id},
                                                    {"<|vision_end|>", config.vision_end_token_id},
                                                    {"<|image_pad|>", config.image_token_id},
                                                    {"<|video_pad|>", config.video_token_id}};
    for (const auto& [token, id] : specials)
      json["added_tokens"].push_back({{"id", id}, {"content", token}, {"special", true}});
    folder_.write("tokenizer.json", json.dump());
  }
  testing::ScratchFolder folder_;
};

/// The lists of names and shapes are those of checkpoints that transformers loads.
TEST(ExpectedTensors, AreThoseOfTheGoldenModels) {
  for (const char* name : {"tiny", "odd", "half", "wide"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = read_config(built(name));
    const Weights weights = Weights::open(built(name), family_of(config).prefixes);
    const TensorFindings findings = check_tensors(weights, config);
    EXPECT_THAT(findings.problems, IsEmpty());
    EXPECT_THAT(findings.unused, IsEmpty());
    std::uint64_t elements = 0;
    for (const ExpectedTensor& tensor : expected_vision_tensors(config.vision)) elements += tensor.elements();
    for (const ExpectedTensor& tensor : expected_text_tensors(config.text)) elements += tensor.elements();
    EXPECT_EQ(elements, weights.parameters());
  }
}

TEST_F(CheckFolder, TellsWhatIsThereAndWhatItNeeds) {
  write_tokenizer();
  const FolderReport report = check();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_TRUE(report.loads());
  ASSERT_TRUE(report.config);
  EXPECT_EQ(report.files.size(), 1U);
  EXPECT_EQ(report.files[0].bytes, std::filesystem::file_size(folder_.path() / "model.safetensors"));
  EXPECT_EQ(report.weights_bytes, 2 * (report.vision_parameters + report.text_parameters));
  EXPECT_THAT(report.tensor_types, ElementsAre(std::pair("bf16", report.tensors)));
  // 2 layers, keys and values, 2 heads of 16, 2 bytes.
  EXPECT_EQ(report.kv_bytes_per_token, 2U * 2 * 2 * 16 * 2);
  ASSERT_EQ(report.windows.size(), 3U);
  for (const WindowCost& window : report.windows) {
    const std::int64_t squares = std::int64_t{window.frame.width / 28} * (window.frame.height / 28);
    EXPECT_EQ(window.tokens_per_patch, squares);
    EXPECT_EQ(window.tokens, squares * 40);
  }
}

TEST_F(CheckFolder, LooksAtEveryPartAfterAFault) {
  patch_config({{"num_hidden_layers", 3}});
  folder_.write("preprocessor_config.json", R"({"patch_size": 16})");
  folder_.write("generation_config.json", "{");
  const FolderReport report = check();
  EXPECT_FALSE(report.loads());
  EXPECT_THAT(report.problems,
              Contains(HasSubstr("tensor 'model.language_model.layers.2.mlp.up_proj.weight' is missing")));
  EXPECT_THAT(report.problems, Contains(HasSubstr("tokenizer.json: no such file")));
  EXPECT_THAT(report.problems, Contains(HasSubstr("generation_config.json: not valid JSON")));
  EXPECT_THAT(report.problems, Contains(HasSubstr("patch_size 16, the vision tower 14")));
  EXPECT_EQ(report.problems.size(), 12U + 3);
}

TEST_F(CheckFolder, NamesWrongShapesAndUnusedTensors) {
  patch_config({{"intermediate_size", 7}, {"num_hidden_layers", 1}});
  const FolderReport report = check();
  EXPECT_THAT(
      report.problems,
      Contains(HasSubstr(
          "model.safetensors: tensor 'model.language_model.layers.0.mlp.down_proj.weight': its shape is [")));
  EXPECT_THAT(
      report.warnings,
      Contains(HasSubstr(
          "tensors that nothing uses: model.language_model.layers.1.input_layernorm.weight and 11 more")));
}

TEST_F(CheckFolder, NamesATokenizerThatDoesNotFit) {
  write_tokenizer();
  const std::int32_t video = read_config(folder_.path()).video_token_id;
  patch_config({{"video_token_id", 5}});
  EXPECT_THAT(check().problems,
              ElementsAre(HasSubstr("tokenizer.json: the token '<|video_pad|>' has the id " +
                                    std::to_string(video) + ", the model's configuration says 5")));
  patch_config({{"video_token_id", video}});
  Json json = read_json_file(folder_.path() / "tokenizer.json");
  json["added_tokens"].push_back({{"id", 512}, {"content", "<|beyond|>"}});
  folder_.write("tokenizer.json", json.dump());
  EXPECT_THAT(check().problems,
              ElementsAre(HasSubstr("the token '<|beyond|>' has the id 512, the model's vocab_size is 512")));
}

TEST_F(CheckFolder, WarnsOfAnUnknownChatTemplate) {
  write_tokenizer();
  folder_.write("chat_template.jinja", "{{ messages }}");
  folder_.write("generation_config.json", R"({"eos_token_id": 99999})");
  const FolderReport report = check();
  EXPECT_TRUE(report.loads());
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("chat_template.jinja"),
                                           HasSubstr("the end token 99999 is beyond vocab_size")));
}

TEST_F(CheckFolder, TellsOfTheCalibration) {
  write_tokenizer();
  EXPECT_FALSE(check().calibration.has_value());
  folder_.write("calibration.json", R"({"yes": {"slope": 1.5, "bias": -0.5}, "fitted_on": "few"})");
  const FolderReport report = check();
  EXPECT_THAT(report.problems, IsEmpty());
  ASSERT_TRUE(report.calibration);
  EXPECT_EQ(report.calibration->slope, 1.5);
  folder_.write("calibration.json", R"({"yes": {"slope": 0, "bias": -0.5}})");
  EXPECT_THAT(check().problems, ElementsAre(HasSubstr("calibration.json: yes.slope: 0 is not between")));
}

constexpr const char* kFiles[] = {"config.json",           "model.safetensors",
                                  "tokenizer.json",        "generation_config.json",
                                  "calibration.json",      "chat_template.jinja",
                                  "tokenizer_config.json", "preprocessor_config.json",
                                  "processor_config.json", "video_preprocessor_config.json"};

/// Nobody writes to the pipe: whoever opens it for reading would wait for ever.
TEST_F(CheckFolder, APipeIsNoFile) {
  for (const char* name : kFiles) {
    SCOPED_TRACE(name);
    const std::filesystem::path file = folder_.path() / name;
    const std::filesystem::path aside = folder_.path() / "aside";
    std::error_code was_not_there;
    std::filesystem::rename(file, aside, was_not_there);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    EXPECT_THAT(check().problems, Contains(file.string() + ": not a regular file"));
    std::filesystem::remove(file);
    if (!was_not_there) std::filesystem::rename(aside, file);
  }
}

/// As in a folder that must not be searched, for whoever runs the test as root.
TEST_F(CheckFolder, WhatCannotBeLookedAtIsNamedWithTheReason) {
  for (const char* name : kFiles) {
    SCOPED_TRACE(name);
    const std::filesystem::path file = folder_.path() / name;
    const std::filesystem::path aside = folder_.path() / "aside";
    std::error_code was_not_there;
    std::filesystem::rename(file, aside, was_not_there);
    std::filesystem::create_symlink(name, file);
    EXPECT_THAT(check().problems, Contains(HasSubstr(file.string() + ": Too many levels of symbolic links")));
    std::filesystem::remove(file);
    if (!was_not_there) std::filesystem::rename(aside, file);
  }
  const std::filesystem::path itself = folder_.path() / "loop";
  std::filesystem::create_symlink("loop", itself);
  EXPECT_THAT(check_folder(itself / "model").problems,
              ElementsAre((itself / "model").string() + ": Too many levels of symbolic links"));
  EXPECT_THAT(testing::error_of([&] { ModelFolder::open(itself / "model"); }), HasSubstr("Too many levels"));
}

TEST(CheckNoFolder, SaysSo) {
  EXPECT_THAT(check_folder("/none/such").problems, ElementsAre("/none/such: no such folder"));
  const testing::ScratchFolder empty;
  EXPECT_THAT(
      check_folder(empty.path()).problems,
      ElementsAre(HasSubstr("config.json: no such file"), HasSubstr("neither model.safetensors"),
                  HasSubstr("tokenizer.json: no such file"), HasSubstr("neither processor_config.json")));
}

}  // namespace
}  // namespace vigil::model
