// One value as it lies on the disk: what it is, its bytes, and a tag over both and over its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/page_info.h"

namespace vigil::history {

/// The largest value. All but a camera's last are 64 KiB and more, so that what is written beside them, a few
/// hundred bytes each, does not count.
inline constexpr std::size_t kMostValueBytes = std::size_t{4} << 20U;
inline constexpr std::size_t kMostKeyBytes = 1024;
/// Records begin at multiples of this in their file, and so do their payloads.
inline constexpr std::size_t kRecordAlignment = 64;

// A record, all numbers little-endian:
//
//   magic u32 | version u8 | sealed u8 | 0 u16 | key bytes u32 | payload bytes u32 | nonce 12 | 0 u32
//   key
//   header: form, tokens, positions, wall times, stream and fingerprint of its page (`header_of`)
//   zeros up to a multiple of 64 | payload | tag 16 | zeros up to a multiple of 64
//
// The tag is XXH3-128 of all that is before it; or, where it is sealed, AES-256-GCM's, of which what stands
// up to the header is the additional data, and the rest is encrypted.

/// What a record says of its page, in as many bytes for each.
std::string header_of(const PageInfo& page);

/// Where things are in a record.
struct RecordShape {
  /// For a key and a payload of so many bytes.
  static RecordShape of(std::size_t key_bytes, std::size_t payload_bytes);

  std::size_t header = 0;
  std::size_t payload = 0;
  std::size_t tag = 0;
  std::size_t bytes = 0;
};

/// Writes a record to `to`, of `RecordShape::of(...).bytes`. `secret`: null for one that is not sealed.
void write_record(std::span<std::byte> to, std::string_view key, const PageInfo& page,
                  std::span<const std::byte> payload, const SecretKey* secret);

/// The payload within `bytes`, which it decrypts where they are; nothing unless it is this key's record,
/// sealed or not as `secret` says, of such a page, and whole.
std::optional<std::span<const std::byte>> open_record(std::span<std::byte> bytes, std::string_view key,
                                                      const PageInfo& page, const SecretKey* secret);

/// XXH3-128, as a tag.
Tag sum_of(std::string_view bytes);

}  // namespace vigil::history
