// vigil model check: what a model folder holds, what it needs, and whether it loads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/model/check.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct CheckArguments {
  std::string folder;
  std::string output = "text";
};

/// "1.25 GiB": three digits and a unit.
std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s",
                unit == 0 || value >= 100 ? 0
                : value >= 10             ? 1
                                          : 2,
                value, kUnits[unit]);
  return text;
}

std::string count_text(std::uint64_t count) {
  char text[32];
  if (count < 10'000'000) {
    std::snprintf(text, sizeof text, "%.2f million", static_cast<double>(count) / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.0f million", static_cast<double>(count) / 1e6);
  }
  return text;
}

std::string size_text(model::PictureSize size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

void print_line(const char* name, const std::string& text) {
  std::printf("%-14s %s\n", name, text.c_str());
}

void print_config(const model::FolderReport& report) {
  const model::TextConfig& text = report.config->text;
  const model::VisionConfig& vision = report.config->vision;
  print_line("architecture", "Qwen2.5-VL, " + count_text(report.vision_parameters + report.text_parameters) +
                                 " parameters (vision " + count_text(report.vision_parameters) +
                                 ", decoder " + count_text(report.text_parameters) + ")");
  print_line("vision",
             std::to_string(vision.depth) + " blocks of width " + std::to_string(vision.hidden_size) + ", " +
                 std::to_string(vision.num_heads) + " heads; patches of " +
                 std::to_string(vision.patch_size) + "x" + std::to_string(vision.patch_size) +
                 " pixels and " + std::to_string(vision.temporal_patch_size) + " frames, merged " +
                 std::to_string(vision.spatial_merge_size) + "x" + std::to_string(vision.spatial_merge_size));
  print_line("decoder",
             std::to_string(text.num_hidden_layers) + " layers of width " + std::to_string(text.hidden_size) +
                 ", " + std::to_string(text.num_attention_heads) + " query and " +
                 std::to_string(text.num_key_value_heads) + " key-value heads of " +
                 std::to_string(text.head_dim) + ", vocabulary " + std::to_string(text.vocab_size) +
                 (text.tie_word_embeddings ? ", tied head" : ", own head"));
}

void print_weights(const model::FolderReport& report) {
  std::string types;
  for (const auto& [type, count] : report.tensor_types)
    types += (types.empty() ? "" : ", ") + std::to_string(count) + " " + type;
  print_line("weights", std::to_string(report.tensors) + " tensors (" + types + "), " +
                            bytes_text(report.weights_bytes) + " in " + std::to_string(report.files.size()) +
                            (report.files.size() == 1 ? " file" : " files"));
}

void print_calibration(const model::Calibration& calibration) {
  char text[80];
  std::snprintf(text, sizeof text, "log odds of \"Yes\" times %.4g %s %.4g", calibration.slope,
                calibration.bias < 0 ? "less" : "plus", std::abs(calibration.bias));
  print_line("calibration",
             text + (calibration.fitted_on.empty() ? "" : ", fitted on " + calibration.fitted_on));
}

void print_text(const model::FolderReport& report) {
  print_line("folder", report.folder);
  if (report.config) print_config(report);
  if (!report.files.empty()) print_weights(report);
  if (report.tokenizer_ids > 0) {
    std::string ends;
    for (const std::int32_t id : report.end_token_ids) ends += " " + std::to_string(id);
    print_line("tokenizer", std::to_string(report.tokenizer_ids) + " tokens, end tokens" +
                                (ends.empty() ? " none" : ends));
  }
  if (report.calibration) print_calibration(*report.calibration);
  if (report.config) {
    const std::uint64_t parameters = report.vision_parameters + report.text_parameters;
    print_line("needs", bytes_text(2 * parameters) + " for weights in bf16, " + bytes_text(4 * parameters) +
                            " in f32; " + bytes_text(report.kv_bytes_per_token) +
                            " of keys and values a token (bf16)");
  }
  for (const model::WindowCost& window : report.windows) {
    std::ostringstream length;
    length << report.window_seconds << " s at " << report.frames_per_second << " FPS";
    print_line(window.source == report.windows.front().source ? "window" : "",
               length.str() + " of " + size_text(window.source) + " (as " + size_text(window.frame) +
                   "): " + std::to_string(window.tokens) + " tokens, " +
                   std::to_string(window.tokens_per_patch) + " a patch, " +
                   bytes_text(static_cast<std::uint64_t>(window.tokens) * report.kv_bytes_per_token) +
                   " of keys and values");
  }
  for (const std::string& warning : report.warnings) print_line("warning", warning);
  print_line("loads", report.loads() ? "yes" : "no");
}

nlohmann::json to_json(const model::FolderReport& report) {
  nlohmann::json json{{"folder", report.folder},
                      {"loads", report.loads()},
                      {"problems", report.problems},
                      {"warnings", report.warnings}};
  if (report.config) {
    const model::TextConfig& text = report.config->text;
    const model::VisionConfig& vision = report.config->vision;
    json["architecture"] = "qwen2_5_vl";
    json["dtype"] = report.config->torch_dtype;
    json["parameters"] = {{"vision", report.vision_parameters}, {"decoder", report.text_parameters}};
    json["decoder"] = {{"layers", text.num_hidden_layers},     {"width", text.hidden_size},
                       {"heads", text.num_attention_heads},    {"key_value_heads", text.num_key_value_heads},
                       {"head_width", text.head_dim},          {"vocabulary", text.vocab_size},
                       {"tied_head", text.tie_word_embeddings}};
    json["vision"] = {{"blocks", vision.depth},
                      {"width", vision.hidden_size},
                      {"heads", vision.num_heads},
                      {"patch_size", vision.patch_size},
                      {"merge", vision.spatial_merge_size},
                      {"frames_per_patch", vision.temporal_patch_size}};
    json["kv_bytes_per_token"] = report.kv_bytes_per_token;
  }
  json["files"] = nlohmann::json::array();
  for (const model::WeightsFile& file : report.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}});
  json["tensors"] = report.tensors;
  json["tensor_types"] = report.tensor_types;
  json["weights_bytes"] = report.weights_bytes;
  json["tokenizer_ids"] = report.tokenizer_ids;
  json["end_token_ids"] = report.end_token_ids;
  if (report.calibration)
    json["calibration"] = {{"slope", report.calibration->slope},
                           {"bias", report.calibration->bias},
                           {"fitted_on", report.calibration->fitted_on}};
  json["window"] = {{"seconds", report.window_seconds},
                    {"fps", report.frames_per_second},
                    {"sizes", nlohmann::json::array()}};
  for (const model::WindowCost& window : report.windows) {
    json["window"]["sizes"].push_back({{"source", {window.source.width, window.source.height}},
                                       {"frame", {window.frame.width, window.frame.height}},
                                       {"tokens_per_patch", window.tokens_per_patch},
                                       {"tokens", window.tokens}});
  }
  return json;
}

int check(const CheckArguments& arguments) {
  const model::FolderReport report = model::check_folder(arguments.folder);
  if (arguments.output == "json") {
    std::printf("%s\n",
                to_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    print_text(report);
  }
  constexpr std::size_t kMostLines = 20;
  for (std::size_t i = 0; i < std::min(report.problems.size(), kMostLines); ++i) {
    std::fprintf(stderr, "vigil: %s\n", report.problems[i].c_str());
  }
  if (report.problems.size() > kMostLines) {
    std::fprintf(stderr, "vigil: and %zu problems more\n", report.problems.size() - kMostLines);
  }
  return report.loads() ? kDone : kFailed;
}

}  // namespace

void add_model_check(CLI::App& model, Invocation& chosen) {
  CLI::App* command = model.add_subcommand(
      "check",
      "Tell what a model folder is (architecture, sizes, weights), what it needs (memory for weights and for "
      "keys and values, tokens of a 40 s window at 2 FPS), and whether it loads.\n"
      "Every part is looked at: configuration, every tensor's name, shape and type, tokenizer, chat "
      "template, "
      "preprocessing, generation settings, calibration. Exit code 1 if something keeps it from being used.");
  auto arguments = std::make_shared<CheckArguments>();
  command
      ->add_option("DIR", arguments->folder,
                   "The model folder: config.json, *.safetensors, tokenizer.json, ...")
      ->required();
  command->add_option("--output", arguments->output, "How to print the result")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->callback([&chosen, arguments] { chosen = [arguments] { return check(*arguments); }; });
}

}  // namespace vigil::services
