#include "engine/kv/history/record.h"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

#include "engine/kv/history/byte_codec.h"

namespace vigil::history {
namespace {

constexpr std::uint32_t kRecordMagic = 0x31524756;  // "VGR1"
constexpr std::uint8_t kRecordVersion = 1;
constexpr std::size_t kPrefixBytes = 32;
constexpr std::size_t kHeaderBytes = 96;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

std::string prefix_of(std::string_view key, std::size_t payload_bytes, bool sealed, const Nonce& nonce) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.fixed(kRecordMagic);
  writer.fixed(kRecordVersion);
  writer.fixed(static_cast<std::uint8_t>(sealed ? 1 : 0));
  writer.fixed(std::uint16_t{0});
  writer.fixed(static_cast<std::uint32_t>(key.size()));
  writer.fixed(static_cast<std::uint32_t>(payload_bytes));
  writer.text({reinterpret_cast<const char*>(nonce.data()), nonce.size()});
  writer.fixed(std::uint32_t{0});
  writer.text(key);
  return bytes;
}

std::string_view tag_text(const Tag& tag) {
  return {reinterpret_cast<const char*>(tag.data()), tag.size()};
}

}  // namespace

Tag sum_of(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Tag tag;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), tag.begin());
  return tag;
}

std::string header_of(const PageInfo& page) {
  const WallRange wall = wall_of(page);
  const PatchInfo none;
  const PatchInfo& first = page.patches.empty() ? none : page.patches.front();
  const PatchInfo& last = page.patches.empty() ? none : page.patches.back();
  std::string bytes;
  ByteWriter writer(bytes);
  writer.fixed(static_cast<std::uint64_t>(page.form));
  writer.fixed(static_cast<std::uint64_t>(page.tokens));
  writer.fixed(page.bytes);
  writer.fixed(page.stream);
  for (const std::int64_t each : {first.number, last.number, first.place, last.place, wall.from, wall.to})
    writer.fixed(static_cast<std::uint64_t>(each));
  writer.text({reinterpret_cast<const char*>(page.fingerprint.data()), page.fingerprint.size()});
  return bytes;
}

RecordShape RecordShape::of(std::size_t key_bytes, std::size_t payload_bytes) {
  RecordShape shape;
  shape.header = kPrefixBytes + key_bytes;
  shape.payload = aligned(shape.header + kHeaderBytes);
  shape.tag = shape.payload + payload_bytes;
  shape.bytes = aligned(shape.tag + kTagBytes);
  return shape;
}

void write_record(std::span<std::byte> to, std::string_view key, const PageInfo& page,
                  std::span<const std::byte> payload, const SecretKey* secret) {
  const RecordShape shape = RecordShape::of(key.size(), payload.size());
  const Nonce nonce = secret != nullptr ? new_nonce() : Nonce{};
  const std::string prefix = prefix_of(key, payload.size(), secret != nullptr, nonce);
  put(put(to, prefix), header_of(page));
  std::byte* const after_header = to.data() + shape.header + kHeaderBytes;
  std::fill(after_header, to.data() + shape.payload, std::byte{0});
  Tag tag;
  if (secret != nullptr) {
    Sealing sealing(*secret, nonce, prefix);
    const auto header = to.subspan(shape.header, shape.payload - shape.header);
    sealing.add(header, header.data());
    sealing.add(payload, to.data() + shape.payload);
    tag = sealing.finish();
  } else {
    put(to.subspan(shape.payload), text_of(payload));
    tag = sum_of(text_of(to.first(shape.tag)));
  }
  const auto rest = put(to.subspan(shape.tag, shape.bytes - shape.tag), tag_text(tag));
  std::fill(rest.begin(), rest.end(), std::byte{0});
}

std::optional<std::span<const std::byte>> open_record(std::span<std::byte> bytes, std::string_view key,
                                                      const PageInfo& page, const SecretKey* secret) {
  ByteReader reader(text_of(bytes));
  const auto magic = reader.fixed<std::uint32_t>();
  const auto version = reader.fixed<std::uint8_t>();
  const auto sealed = reader.fixed<std::uint8_t>();
  reader.text(sizeof(std::uint16_t));
  const auto key_bytes = reader.fixed<std::uint32_t>();
  const auto payload_bytes = reader.fixed<std::uint32_t>();
  const std::string_view nonce_text = reader.text(kNonceBytes);
  reader.text(sizeof(std::uint32_t));
  if (reader.failed() || magic != kRecordMagic || version != kRecordVersion ||
      sealed != (secret != nullptr ? 1 : 0) || key_bytes != key.size() || payload_bytes > kMostValueBytes) {
    return std::nullopt;
  }
  const RecordShape shape = RecordShape::of(key_bytes, payload_bytes);
  if (bytes.size() != shape.bytes || reader.text(key_bytes) != key) return std::nullopt;
  Tag tag;
  std::memcpy(tag.data(), bytes.data() + shape.tag, tag.size());
  if (secret != nullptr) {
    Nonce nonce;
    std::memcpy(nonce.data(), nonce_text.data(), nonce.size());
    const auto encrypted = bytes.subspan(shape.header, shape.tag - shape.header);
    if (!open_sealed(*secret, nonce, text_of(bytes.first(shape.header)), encrypted, tag)) return std::nullopt;
  } else if (sum_of(text_of(bytes.first(shape.tag))) != tag) {
    return std::nullopt;
  }
  // A tag vouches for what was written, and this that it was written of this page.
  if (text_of(bytes.subspan(shape.header, kHeaderBytes)) != header_of(page)) return std::nullopt;
  return bytes.subspan(shape.payload, payload_bytes);
}

}  // namespace vigil::history
