// What may stand where a video comes from: a file, a URL, or a device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vigil::config {

/// Why no video can come from there, in words that show nothing of the text, which may hold a password:
/// "expected ...". Nothing if one can, as far as the text tells. Whether there is such a file is not looked
/// at.
std::optional<std::string> source_fault(std::string_view source);

/// The schemes that are known: those with a host behind them, and the others.
std::span<const std::string_view> network_schemes();
std::span<const std::string_view> local_schemes();

/// The nearest of `names` to a text that is none of them, if it may be meant; nothing otherwise. `Names` is
/// a range of what converts to std::string_view.
template <class Names>
std::optional<std::string> meant_name(std::string_view text, const Names& names);

/// Insertions, deletions and replacements of characters, and swaps of two, that make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Names>
std::optional<std::string> meant_name(std::string_view text, const Names& names) {
  std::optional<std::string> nearest;
  std::size_t least = text.size() / 3 < 2 ? 2 : text.size() / 3;
  for (const auto& name : names) {
    const std::size_t distance = edit_distance(name, text);
    if (distance > least || (nearest && distance == least)) continue;
    least = distance;
    nearest = std::string(name);
  }
  return nearest;
}

}  // namespace vigil::config
