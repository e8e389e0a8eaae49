// vigil model: what a folder holds, and whether it computes what transformers computes.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/model/model_folder.h"
#include "engine/model/verify/golden.h"
#include "engine/model/verify/verify.h"
#include "engine/run/device.h"
#include "services/command.h"
#include "services/device_option.h"

namespace vigil::services {
namespace {

struct VerifyArguments {
  std::string folder;
  std::string golden;
  std::string dtype = "both";
  model::Quantization quantization = model::Quantization::none;
  std::string output = "text";
  run::Device device;
  int threads = 0;
};

/// "bf16", or "bf16 fp8".
std::string type_of(const model::VerifyOptions& options) {
  std::string type = kernels::name_of(options.compute);
  if (options.quantization != model::Quantization::none)
    type.append(" ").append(model::name_of(options.quantization));
  return type;
}

void print_table(const model::VerifyOptions& options, const std::vector<model::VerifiedPart>& parts) {
  std::printf("%-12s %-10s %-14s %10s %10s %18s  %s\n", "type", "case", "part", "error", "limit",
              "transformers bf16", "");
  for (const model::VerifiedPart& part : parts) {
    std::string note = part.passed() ? "ok" : "FAILED";
    if (part.equal_tokens >= 0) note += ", " + std::to_string(part.equal_tokens) + " of 64 tokens equal";
    std::printf("%-12s %-10s %-14s %10.2e %10.2e ", type_of(options).c_str(), part.case_name.c_str(),
                part.part.c_str(), part.error, part.limit);
    if (part.transformers_bf16 >= 0) {
      std::printf("%18.2e", part.transformers_bf16);
    } else {
      std::printf("%18s", "-");
    }
    std::printf("  %s\n", note.c_str());
  }
}

nlohmann::json to_json(const model::VerifyOptions& options, const model::VerifiedPart& part) {
  nlohmann::json json{{"dtype", kernels::name_of(options.compute)},
                      {"quantization", model::name_of(options.quantization)},
                      {"case", part.case_name},
                      {"part", part.part},
                      {"error", part.error},
                      {"limit", part.limit},
                      {"passed", part.passed()}};
  if (part.transformers_bf16 >= 0) json["transformers_bf16_error"] = part.transformers_bf16;
  if (part.equal_tokens >= 0) json["equal_tokens"] = part.equal_tokens;
  return json;
}

/// Refuses what begins as no safetensors file does, with the length of its header and the header, an object.
void check_is_golden(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::array<char, 9> begin{};
  // Of what cannot be opened or read, whoever reads it says why.
  if (!file || !std::filesystem::is_regular_file(name)) return;
  if (file.read(begin.data(), begin.size()) && begin.back() == '{') return;
  throw std::runtime_error(name + ": no golden file (no safetensors header); tools/golden.py makes one");
}

int verify(const VerifyArguments& arguments) {
  check_is_golden(arguments.golden);
  const auto folder = model::ModelFolder::open(arguments.folder);
  const model::GoldenFile golden = model::read_golden(arguments.golden);
  if (arguments.device.ranks() > 1) {
    std::fprintf(stderr, "vigil model verify: compares on one device at a time, not on %s\n",
                 run::name_of(arguments.device).c_str());
    return kUsage;
  }
  kernels::Stream stream = run::make_streams(arguments.device, arguments.threads).front();
  std::vector<kernels::DType> types;
  if (arguments.dtype != "bf16") types.push_back(kernels::DType::f32);
  if (arguments.dtype == "both" && stream.kind() == kernels::DeviceKind::cpu && !kernels::cpu_has_bf16()) {
    std::fprintf(stderr, "vigil model verify: this processor has no products of bf16: f32 alone\n");
  } else if (arguments.dtype != "f32") {
    types.push_back(model::choose_compute(*folder, kernels::DType::bf16, stream.kind()));
  }

  bool passed = true;
  nlohmann::json rows = nlohmann::json::array();
  for (const kernels::DType compute : types) {
    const model::VerifyOptions options{.compute = compute, .quantization = arguments.quantization};
    const auto parts = model::verify(*folder, golden, stream, options);
    for (const model::VerifiedPart& part : parts) {
      passed = passed && part.passed();
      rows.push_back(to_json(options, part));
    }
    if (arguments.output == "text") print_table(options, parts);
  }
  if (arguments.output == "json") {
    std::printf("%s\n", nlohmann::json{{"model", folder->name()},
                                       {"golden", arguments.golden},
                                       {"transformers", golden.transformers},
                                       {"passed", passed},
                                       {"parts", rows}}
                            .dump(2)
                            .c_str());
  }
  if (!passed)
    std::fprintf(stderr, "vigil: %s does not compute what %s says\n", arguments.folder.c_str(),
                 arguments.golden.c_str());
  return passed ? kDone : kFailed;
}

}  // namespace

void add_model(CLI::App& root, Invocation& chosen) {
  CLI::App* model = root.add_subcommand("model", "Look into a model folder, and check what it computes");
  model->require_subcommand(1);
  add_model_check(*model, chosen);

  CLI::App* command =
      model->add_subcommand("verify", "Compare with what transformers computes, part by part");
  command->footer(
      "Prints the largest error of preprocessing, vision tower, positions, logits and greedy tokens. Golden "
      "files are made from "
      "Hugging Face transformers by tools/golden.py, for any Qwen2.5-VL folder. Exit code 1 if a limit is "
      "passed.");
  auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("DIR", arguments->folder, "The model folder: config.json, *.safetensors, ...")
      ->required();
  command->add_option("--golden", arguments->golden, "The golden file of this folder")->required();
  command
      ->add_option("--dtype", arguments->dtype,
                   "Compute in this type: limits are 1e-3 in f32 and 2e-2 in bf16")
      ->check(one_of({"f32", "bf16", "both"}))
      ->capture_default_str();
  add_device(*command, arguments->device);
  add_quantization(*command, arguments->quantization);
  command->add_option("--threads", arguments->threads, "Threads; 0: all processors")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--output", arguments->output, "How to print the result")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->callback([&chosen, arguments] { chosen = [arguments] { return verify(*arguments); }; });
}

}  // namespace vigil::services
