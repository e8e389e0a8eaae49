// FNV-1a of 64 bits: the same on every machine, which std::hash does not promise. No defence against anybody
// who wants two texts to have one value.
#pragma once

#include <cstdint>
#include <string_view>

namespace vigil::base {

/// Of no bytes at all.
inline constexpr std::uint64_t kFnv1aStart = 0xcbf29ce484222325U;

/// Each step can be undone, so that two texts of one length that differ in one byte never have the same
/// value.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t value = kFnv1aStart) {
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return value;
}

}  // namespace vigil::base
