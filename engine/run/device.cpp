#include "engine/run/device.h"

#include <optional>
#include <stdexcept>

#include "base/devices.h"

namespace vigil::run {
namespace {

Device device_of(const base::Gpus& gpus) {
  return gpus.empty() ? Device{} : Device{kernels::DeviceKind::cuda, gpus};
}

[[noreturn]] void refuse(std::string_view text) {
  throw std::invalid_argument("\"" + std::string(text) +
                              "\" is no device: cpu, cuda, cuda:NUMBER or cuda:0+1, each GPU once");
}

}  // namespace

Device parse_device(std::string_view text) {
  const auto devices = base::parse_devices(text);
  if (!devices || devices->size() != 1) refuse(text);
  return device_of(devices->front());
}

std::vector<Device> parse_devices(std::string_view text) {
  const auto named = base::parse_devices(text);
  if (!named) refuse(text);
  std::vector<Device> devices;
  for (const base::Gpus& gpus : *named) devices.push_back(device_of(gpus));
  return devices;
}

std::string name_of(const Device& device) {
  if (device.kind == kernels::DeviceKind::cpu) return "cpu";
  std::string name = "cuda:";
  for (const int index : device.indices) {
    if (name.back() != ':') name += '+';
    name += std::to_string(index);
  }
  return name;
}

void check_decode_device(const Device& device, const Device& decode) {
  if (decode.kind != device.kind || decode.ranks() != device.ranks())
    throw std::invalid_argument("prefill on " + name_of(device) + " and generation on " + name_of(decode) +
                                " are not as many devices of one kind");
  if (device.kind != kernels::DeviceKind::cuda) return;
  if (const std::optional<int> gpu = base::gpu_of_both({device.indices}, {decode.indices}))
    throw std::invalid_argument("generation on " + name_of(decode) + " has GPU " + std::to_string(*gpu) +
                                ", which is one of " + name_of(device) +
                                "; it takes other GPUs, or the same device");
}

std::vector<kernels::Stream> make_streams(const Device& device, int threads) {
  std::vector<kernels::Stream> streams;
  streams.reserve(device.indices.size());
  for (const int index : device.indices)
    streams.push_back(device.kind == kernels::DeviceKind::cuda ? kernels::Stream::cuda(index)
                                                               : kernels::Stream::cpu(threads));
  return streams;
}

}  // namespace vigil::run
