#include "cluster/membership/config_texts.h"

#include <algorithm>

namespace vigil::cluster {
namespace {

constexpr std::size_t kPart = RegistryTransaction::kMostBytes / 2;

}  // namespace

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size() || parts.empty(); at += kPart)
    parts.push_back(text.substr(at, kPart));
  return parts;
}

std::string part_key(const std::string& prefix, std::size_t part, std::size_t parts) {
  const std::string number = std::to_string(part);
  // So that their order is that of the parts.
  return prefix + std::string(6 - std::min<std::size_t>(6, number.size()), '0') + number + '-' +
         std::to_string(parts);
}

std::optional<std::string> whole_text(const std::vector<RegistryEntry>& entries, const std::string& prefix) {
  if (entries.empty()) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].key != part_key(prefix, i, entries.size())) return std::nullopt;
    text += entries[i].value;
  }
  return text;
}

}  // namespace vigil::cluster
