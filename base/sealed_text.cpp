#include "base/sealed_text.h"

#include <array>
#include <cinttypes>
#include <cstdio>

#include "base/fnv1a.h"

namespace vigil::base {
namespace {

constexpr std::string_view kSeal = "# checksum ";

std::string seal_of(std::string_view lines) {
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016" PRIx64, fnv1a(lines));
  return std::string(kSeal) + hex.data() + '\n';
}

}  // namespace

std::string sealed(std::string_view lines) {
  return std::string(lines) + seal_of(lines);
}

std::optional<std::string_view> unsealed(std::string_view text) {
  const std::size_t seal = text.rfind(kSeal);
  if (seal == text.npos || text.substr(seal) != seal_of(text.substr(0, seal))) return std::nullopt;
  return text.substr(0, seal);
}

}  // namespace vigil::base
