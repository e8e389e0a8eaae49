#include "services/device_option.h"

#include <map>
#include <stdexcept>
#include <string>

namespace vigil::services {

void add_device(CLI::App& command, window::Device& device) {
  command
      .add_option_function<std::string>(
          "--device",
          [&device](const std::string& text) {
            try {
              device = window::parse_device(text);
            } catch (const std::invalid_argument& error) {
              throw CLI::ValidationError("--device", error.what());
            }
          },
          "Compute on this processor: cpu, cuda (the first GPU), cuda:NUMBER")
      ->type_name("DEVICE")
      ->default_str(window::name_of(device));
}

void add_quantization(CLI::App& command, model::Quantization& quantization) {
  std::map<std::string, model::Quantization> choices;
  for (const auto& [name, value] : config::kQuantizationNames) choices.emplace(name, value);
  command
      .add_option("--quantization", quantization,
                  "Large products in 8 bits (E4M3): fp8: the decoder's; fp8-all: the vision tower's too")
      ->transform(CLI::CheckedTransformer(choices).description(""))
      ->type_name("none|fp8|fp8-all")
      ->default_str(std::string(model::name_of(quantization)));
}

}  // namespace vigil::services
