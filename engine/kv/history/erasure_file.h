// Erasures in a file of their own beside the index, so that none is forgotten with one of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/kv/history/history_store.h"

namespace vigil::history {

std::string encode_erasure(const Erasure& erasure);
/// Nothing for bytes that are none.
std::optional<Erasure> decode_erasure(std::string_view bytes);

struct Erasures {
  /// The next one's id: none is given out again.
  std::uint64_t next = 1;
  std::map<std::uint64_t, Erasure> by_id;

  friend bool operator==(const Erasures&, const Erasures&) = default;
};

/// With a sum over all of it.
std::string encode_erasures(const Erasures& erasures);
std::optional<Erasures> decode_erasures(std::string_view bytes);

/// None if there is no file; nothing if what is there is damaged. Throws base::FileError.
std::optional<Erasures> read_erasures(const std::filesystem::path& file);
/// The file is the old one or the new one at any time. Throws base::FileError.
void write_erasures(const std::filesystem::path& file, const Erasures& erasures);

}  // namespace vigil::history
