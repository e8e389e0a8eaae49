// Pages as a camera leaves them, with bytes that a test can tell apart.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/kv/forms.h"
#include "engine/kv/history/page_info.h"
#include "engine/run/token_mover.h"
#include "kernels/device/host_buffer.h"

namespace vigil::memory::testing {

/// 12:00:00 of some day.
inline constexpr std::int64_t kNoon = (std::int64_t{20'000} * 24 + 12) * 3'600'000'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

/// A page of one patch, of a grid of 4 x 4 of which a quarter is kept, from so many seconds after noon on.
inline history::PageInfo made_page(std::uint64_t number, double second, double length = 10) {
  history::PageInfo info;
  info.number = number;
  info.stream = 7;
  history::PatchInfo patch;
  patch.number = static_cast<std::int64_t>(number);
  patch.place = static_cast<std::int64_t>(number) * 2;
  patch.kept = base::GridMask::none(4, 4);
  for (int i = 0; i < 4; ++i) patch.kept.add(i);
  const auto from = kNoon + static_cast<std::int64_t>(second * 1e9);
  patch.wall = {from, from + static_cast<std::int64_t>(length * 1e9) - 1};
  patch.seconds = second;
  info.patches = {patch};
  info.tokens = 4;
  return info;
}

/// So many bytes that count up from a seed.
inline run::MovedTokens made_tokens(kernels::HostMemory& memory, kv::Form form, std::size_t bytes,
                                    std::uint8_t seed = 0) {
  run::MovedTokens tokens;
  tokens.form = form;
  tokens.tokens = 4;
  tokens.size = bytes;
  if (bytes > 0) tokens.bytes = memory.take(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    tokens.bytes[static_cast<std::ptrdiff_t>(i)] = static_cast<std::byte>(seed + i);
  return tokens;
}

}  // namespace vigil::memory::testing
