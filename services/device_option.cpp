#include "services/device_option.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "services/command.h"

namespace vigil::services {
namespace {

run::Device read(const char* option, const std::string& text) {
  try {
    return run::parse_device(text);
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError(option, error.what());
  }
}

}  // namespace

void add_device(CLI::App& command, run::Device& device) {
  command
      .add_option_function<std::string>(
          "--device", [&device](const std::string& text) { device = read("--device", text); },
          "Compute on this processor: cpu, cuda (the first GPU), cuda:NUMBER, or GPUs that share the model: "
          "cuda:0+1")
      ->type_name("DEVICE")
      ->default_str(run::name_of(device));
}

void add_quantization(CLI::App& command, model::Quantization& quantization) {
  std::vector<std::string> names;
  names.reserve(config::kQuantizationNames.size());
  for (const auto& [name, value] : config::kQuantizationNames) names.emplace_back(name);
  command
      .add_option_function<std::string>(
          "--quantization",
          [&quantization](const std::string& text) {
            for (const auto& [name, value] : config::kQuantizationNames)
              if (name == text) quantization = value;
          },
          "Large products in 8 bits (E4M3): fp8: the decoder's; fp8-all: the vision tower's too")
      ->check(one_of(names).description(""))
      ->type_name("none|fp8|fp8-all")
      ->default_str(std::string(model::name_of(quantization)));
}

void add_compute(CLI::App& command, engine::EngineOptions& options) {
  add_device(command, options.device);
  command
      .add_option_function<std::string>(
          "--decode-device",
          [&options](const std::string& text) { options.decode_device = read("--decode-device", text); },
          "Generate answers on other GPUs than --device, as many, which take the windows over")
      ->type_name("DEVICE");
  command
      .add_option_function<std::string>(
          "--dtype",
          [&options](const std::string& text) {
            options.compute.reset();
            if (text == "f32") options.compute = kernels::DType::f32;
            if (text == "bf16") options.compute = kernels::DType::bf16;
          },
          "Compute in this type; auto: bf16 where the processor has it")
      ->check(one_of({"auto", "f32", "bf16"}))
      ->default_str("auto");
  add_quantization(command, options.quantization);
  command
      .add_option("--threads", options.threads,
                  "Threads of each part of the engine on the CPU; 0: all processors")
      ->check(zero_or_more())
      ->capture_default_str();
}

void check_compute(const engine::EngineOptions& options) {
  if (!options.decode_device) return;
  try {
    run::check_decode_device(options.device, *options.decode_device);
  } catch (const std::invalid_argument& error) {
    throw UsageError("--decode-device: " + std::string(error.what()));
  }
}

}  // namespace vigil::services
