#include "engine/window/device.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <system_error>

namespace vigil::window {

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {kernels::DeviceKind::cuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    Device device{kernels::DeviceKind::cuda, -1};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), device.index);
    if (error == std::errc{} && end == digits.data() + digits.size() && device.index >= 0) return device;
  }
  throw std::invalid_argument("\"" + std::string(text) + "\" is no device: cpu, cuda or cuda:NUMBER");
}

std::vector<Device> parse_devices(std::string_view text) {
  std::vector<Device> devices;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const Device device = parse_device(word);
    if (std::find(devices.begin(), devices.end(), device) != devices.end())
      throw std::invalid_argument("\"" + std::string(word) + "\" is named twice");
    devices.push_back(device);
    if (comma == std::string_view::npos) return devices;
    text.remove_prefix(comma + 1);
  }
}

std::string name_of(Device device) {
  return device.kind == kernels::DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

kernels::Stream make_stream(Device device, int threads) {
  return device.kind == kernels::DeviceKind::cuda ? kernels::Stream::cuda(device.index)
                                                  : kernels::Stream::cpu(threads);
}

}  // namespace vigil::window
