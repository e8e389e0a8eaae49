// Which processor runs a model, in words and as a queue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/stream.h"

namespace vigil::run {

struct Device {
  kernels::DeviceKind kind = kernels::DeviceKind::cpu;
  /// Of several GPUs. More than one: they share the model, a part each (on the CPU too, as tests have it).
  std::vector<int> indices = {0};

  int ranks() const { return static_cast<int>(indices.size()); }
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda" (the first GPU), "cuda:1", "cuda:0+1" (both, as one). Throws std::invalid_argument for other
/// words, and for a GPU that is named twice.
Device parse_device(std::string_view text);

/// Several of them, separated by commas: "cuda:0,cuda:1". Throws std::invalid_argument for other words, and
/// for a GPU that is named twice.
std::vector<Device> parse_devices(std::string_view text);

/// "cpu", "cuda:0", "cuda:0+1".
std::string name_of(const Device& device);

/// Whether `decode` can generate the answers to what was asked on `device`: as many devices of one kind, and
/// other GPUs, or the same device. Throws std::invalid_argument, in one line, if not.
void check_decode_device(const Device& device, const Device& decode);

/// A new queue on each. `threads` is for the CPU, 0: all processors. Throws kernels::DeviceError for a GPU
/// that is not there.
std::vector<kernels::Stream> make_streams(const Device& device, int threads);

}  // namespace vigil::run
