#include "engine/run/device_check.h"

#include <algorithm>
#include <exception>

namespace vigil::run {

std::string fault_of(const Device& device) {
  if (device.kind != kernels::DeviceKind::cuda) return {};
  const int there = kernels::cuda_devices();
  if (there == 0) {
    // Whoever wants one is told why there is none; nothing is taken by that.
    try {
      make_streams(device, 1);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }
  const int last = *std::max_element(device.indices.begin(), device.indices.end());
  if (last < there) return {};
  return "there is no GPU " + std::to_string(last) + ": this machine has " + std::to_string(there) +
         ", from 0 on";
}

}  // namespace vigil::run
