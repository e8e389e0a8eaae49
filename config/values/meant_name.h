// What a name was meant to be that is none of those that are known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::config {

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
