// Which processor runs a model, in words and as a queue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/stream.h"

namespace vigil::window {

struct Device {
  kernels::DeviceKind kind = kernels::DeviceKind::cpu;
  /// Of several GPUs.
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda" (the first GPU), "cuda:1". Throws std::invalid_argument for other words.
Device parse_device(std::string_view text);

/// Several of them, separated by commas: "cuda:0,cuda:1". Throws std::invalid_argument for other words, and
/// for a device that is named twice.
std::vector<Device> parse_devices(std::string_view text);

/// "cpu", "cuda:0".
std::string name_of(Device device);

/// A new queue. `threads` is for the CPU, 0: all processors. Throws kernels::DeviceError for a GPU that is
/// not there.
kernels::Stream make_stream(Device device, int threads);

}  // namespace vigil::window
