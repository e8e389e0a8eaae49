#include "base/devices.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace vigil::base {
namespace {

constexpr std::string_view kPrefix = "cuda:";
constexpr std::size_t kMostGpus = 8;
constexpr std::size_t kMostDigits = 4;

std::string_view trimmed(std::string_view word) {
  while (word.starts_with(' ')) word.remove_prefix(1);
  while (word.ends_with(' ')) word.remove_suffix(1);
  return word;
}

/// What lies before the separator, which is taken off `rest` with it; the last part leaves nothing.
std::string_view next_part(std::optional<std::string_view>& rest, char separator) {
  const std::size_t end = rest->find(separator);
  const std::string_view part = rest->substr(0, end);
  if (end == std::string_view::npos) {
    rest.reset();
  } else {
    rest->remove_prefix(end + 1);
  }
  return part;
}

std::optional<Gpus> parse_gpus(std::string_view word) {
  if (word == "cpu") return Gpus{};
  if (word == "cuda") return Gpus{0};
  if (!word.starts_with(kPrefix)) return std::nullopt;
  Gpus gpus;
  for (std::optional rest = word.substr(kPrefix.size()); rest;) {
    const std::string_view digits = next_part(rest, '+');
    unsigned gpu = 0;  // no sign is taken
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), gpu);
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.size() > kMostDigits)
      return std::nullopt;
    gpus.push_back(static_cast<int>(gpu));
  }
  if (gpus.size() > kMostGpus) return std::nullopt;
  return gpus;
}

}  // namespace

std::optional<std::vector<Gpus>> parse_devices(std::string_view text) {
  std::vector<Gpus> devices;
  std::vector<int> named;
  constexpr int kCpu = -1;
  for (std::optional rest = text; rest;) {
    const std::optional<Gpus> gpus = parse_gpus(trimmed(next_part(rest, ',')));
    if (!gpus) return std::nullopt;
    named.insert(named.end(), gpus->begin(), gpus->end());
    if (gpus->empty()) named.push_back(kCpu);
    devices.push_back(*gpus);
  }
  std::sort(named.begin(), named.end());
  if (std::adjacent_find(named.begin(), named.end()) != named.end()) return std::nullopt;
  return devices;
}

std::optional<int> gpu_of_both(const std::vector<Gpus>& device, const std::vector<Gpus>& decode) {
  for (std::size_t i = 0; i < decode.size(); ++i) {
    if (i < device.size() && decode[i] == device[i]) continue;
    for (const int gpu : decode[i])
      for (const Gpus& gpus : device)
        if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) return gpu;
  }
  return std::nullopt;
}

}  // namespace vigil::base
