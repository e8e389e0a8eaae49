// In what form keys and values are kept when they have left the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vigil::kv {

/// The finest first. embeddings: what the tower has made, of which keys and values can be computed again.
enum class Form : std::uint8_t { bf16, fp8, int4, embeddings };

constexpr std::array<std::string_view, 4> kFormNames{"bf16", "fp8", "int4", "embeddings"};

constexpr std::string_view name_of(Form form) {
  return kFormNames[static_cast<std::size_t>(form)];
}

}  // namespace vigil::kv
