#include "engine/kv/history/part_entry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/record.h"
#include "engine/kv/history/sealed_row.h"

namespace vigil::history {
namespace {

constexpr std::uint8_t kEntryVersion = 1;
constexpr std::uint64_t kFooterMagic = 0x31444e4552545056;  // "VPTREND1"
// Each of them takes at least so many bytes: no list is longer than its bytes allow.
constexpr std::size_t kLeastPage = 2;
constexpr std::size_t kLeastValue = 4;

std::string encode_body(const PartEntry& entry) {
  std::string body;
  ByteWriter writer(body);
  writer.number(entry.replaces.size());
  for (const std::uint64_t each : entry.replaces) writer.number(each);
  writer.number(entry.record_bytes);
  writer.number(entry.pages.size());
  for (const EntryPage& page : entry.pages) {
    writer.number(page.info.size());
    writer.text(page.info);
    writer.number(page.values.size());
    for (const EntryValue& value : page.values) {
      writer.number(value.layers.first);
      writer.number(value.layers.count);
      writer.number(value.bytes);
      writer.number(value.offset ? *value.offset / kRecordAlignment + 1 : 0);
    }
  }
  return body;
}

EntryValue decode_value(ByteReader& reader, std::size_t page_key_bytes, std::uint64_t record_bytes) {
  const std::uint64_t first = reader.number();
  const std::uint64_t count = reader.number();
  const std::uint64_t bytes = reader.number();
  const std::uint64_t at = reader.number();
  constexpr std::uint64_t kMostLayers = std::numeric_limits<std::uint16_t>::max();
  if (first > kMostLayers || count > kMostLayers || bytes > kMostValueBytes) reader.fail();
  EntryValue value;
  if (reader.failed()) return value;
  value.layers = {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
  value.bytes = static_cast<std::uint32_t>(bytes);
  if (at == 0) return value;
  const std::size_t record = RecordShape::of(page_key_bytes, value.bytes).bytes;
  if (record > record_bytes || at - 1 > (record_bytes - record) / kRecordAlignment) {
    reader.fail();
    return value;
  }
  value.offset = (at - 1) * kRecordAlignment;
  return value;
}

std::optional<PartEntry> decode_body(std::string_view body, std::size_t page_key_bytes) {
  ByteReader reader(body);
  PartEntry entry;
  const std::uint64_t replaces = reader.number();
  if (replaces > reader.left()) return std::nullopt;
  for (std::uint64_t i = 0; i < replaces; ++i) entry.replaces.push_back(reader.number());
  entry.record_bytes = reader.number();
  const std::uint64_t pages = reader.number();
  if (pages > reader.left() / kLeastPage) return std::nullopt;
  entry.pages.reserve(pages);
  for (std::uint64_t i = 0; i < pages; ++i) {
    EntryPage page;
    page.info = reader.text(reader.number());
    const std::uint64_t values = reader.number();
    if (values > reader.left() / kLeastValue) return std::nullopt;
    page.values.reserve(values);
    for (std::uint64_t each = 0; each < values; ++each)
      page.values.push_back(decode_value(reader, page_key_bytes, entry.record_bytes));
    if (reader.failed()) return std::nullopt;
    entry.pages.push_back(std::move(page));
  }
  if (!reader.done()) return std::nullopt;
  return entry;
}

}  // namespace

std::string encode_entry(const PartEntry& entry, std::string_view key, const SecretKey* secret) {
  return seal_row(kEntryVersion, key, encode_body(entry), secret);
}

std::optional<PartEntry> decode_entry(std::string_view bytes, std::string_view key, const SecretKey* secret) {
  const auto body = open_row(kEntryVersion, key, bytes, secret);
  if (!body) return std::nullopt;
  // A page's key has its layers and its number besides.
  return decode_body(*body, key.size() + 2 * sizeof(std::uint16_t) + sizeof(std::uint64_t));
}

std::string encode_trailer(const PartTrailer& trailer) {
  std::string bytes = trailer.key + trailer.wrapped + trailer.entry;
  ByteWriter writer(bytes);
  writer.fixed(static_cast<std::uint32_t>(trailer.key.size()));
  writer.fixed(static_cast<std::uint32_t>(trailer.wrapped.size()));
  writer.fixed(static_cast<std::uint64_t>(trailer.entry.size()));
  writer.fixed(kFooterMagic);
  return bytes;
}

std::optional<std::size_t> trailer_bytes(std::string_view footer) {
  ByteReader reader(footer);
  const std::uint64_t key = reader.fixed<std::uint32_t>();
  const std::uint64_t wrapped = reader.fixed<std::uint32_t>();
  const auto entry = reader.fixed<std::uint64_t>();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32U;
  if (reader.fixed<std::uint64_t>() != kFooterMagic || !reader.done() || entry > kMost) return std::nullopt;
  if (key > kMostKeyBytes || (wrapped != 0 && wrapped != kWrappedBytes)) return std::nullopt;
  return key + wrapped + entry + kFooterBytes;
}

std::optional<PartTrailer> decode_trailer(std::string_view bytes) {
  if (bytes.size() < kFooterBytes) return std::nullopt;
  const std::string_view footer = bytes.substr(bytes.size() - kFooterBytes);
  if (trailer_bytes(footer) != bytes.size()) return std::nullopt;
  ByteReader lengths(footer);
  const auto key = lengths.fixed<std::uint32_t>();
  const auto wrapped = lengths.fixed<std::uint32_t>();
  ByteReader reader(bytes);
  PartTrailer trailer;
  trailer.key = reader.text(key);
  trailer.wrapped = reader.text(wrapped);
  trailer.entry = reader.text(reader.left() - kFooterBytes);
  return trailer;
}

}  // namespace vigil::history
