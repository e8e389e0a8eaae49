#include "services/device_option.h"

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

}  // namespace vigil::services
