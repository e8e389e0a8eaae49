// What a part says of itself: its pages, and where in its file their values are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"

namespace vigil::history {

struct EntryValue {
  Layers layers;
  /// Of its payload.
  std::uint32_t bytes = 0;
  /// Of its record in the part's file; nothing if it was damaged when the part was written.
  std::optional<std::uint64_t> offset;

  friend bool operator==(const EntryValue&, const EntryValue&) = default;
};

struct EntryPage {
  /// As encode_page_info makes it.
  std::string info;
  std::vector<EntryValue> values;

  friend bool operator==(const EntryPage&, const EntryPage&) = default;
};

struct PartEntry {
  /// Parts that it was made of, and that count no more.
  std::vector<std::uint64_t> replaces;
  /// Of the records at the front of the file.
  std::uint64_t record_bytes = 0;
  std::vector<EntryPage> pages;

  friend bool operator==(const PartEntry&, const PartEntry&) = default;
};

/// It stands in the index under `key` (a PartKey's bytes), and once more at the end of the part's file. With
/// a secret it is encrypted, without it has a sum; either is over the key as well.
std::string encode_entry(const PartEntry& entry, std::string_view key, const SecretKey* secret);
/// Nothing for bytes that are not this key's entry, sealed or not as `secret` says, and whole. Every offset
/// leads to a record within `record_bytes`.
std::optional<PartEntry> decode_entry(std::string_view bytes, std::string_view key, const SecretKey* secret);

/// The end of a part's file: enough to find its entry without an index.
struct PartTrailer {
  /// A PartKey's bytes.
  std::string key;
  /// The wrapped key of its hour; empty if it is not sealed.
  std::string wrapped;
  std::string entry;
};

inline constexpr std::size_t kFooterBytes = 24;
/// Ends with a footer of `kFooterBytes`.
std::string encode_trailer(const PartTrailer& trailer);
/// How many bytes the trailer has that ends with this footer; nothing if it is none.
std::optional<std::size_t> trailer_bytes(std::string_view footer);
/// Nothing for bytes that are no trailer. What is in it vouches for itself.
std::optional<PartTrailer> decode_trailer(std::string_view bytes);

}  // namespace vigil::history
