// One value on the disk, and what becomes of it when a bit is another or it stands in another's place.
#include "engine/kv/history/record.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kv/history/part_entry.h"
#include "tests/engine/kv/history/history_pages.h"

namespace vigil::history {
namespace {

using testing::info_of;
using testing::kFirstHour;
using testing::kGate;
using testing::random_bytes;

const PageKey kKey{{{kGate, kFirstHour}, 5}, {2, 2}, 17};

class RecordTest : public ::testing::TestWithParam<bool> {
 protected:
  std::vector<std::byte> written(std::string_view key) const {
    std::vector<std::byte> record(RecordShape::of(key.size(), payload_.size()).bytes, std::byte{0xEE});
    write_record(record, key, info_, payload_, secret());
    return record;
  }
  bool opens(std::vector<std::byte> record, std::string_view key, const SecretKey* secret) const {
    const auto payload = open_record(record, key, info_, secret);
    return payload && std::equal(payload->begin(), payload->end(), payload_.begin(), payload_.end());
  }
  const SecretKey* secret() const { return GetParam() ? &secret_ : nullptr; }

  const SecretKey secret_ = SecretKey::random();
  const PageInfo info_ = info_of(17, kFirstHour, 20, 3);
  const std::vector<std::byte> payload_ = random_bytes(1, 1000);
};

TEST_P(RecordTest, IsReadWithItsKeyAlone) {
  const std::string key = encode(kKey);
  const auto record = written(key);
  EXPECT_TRUE(opens(record, key, secret()));
  const auto another = [&](auto change) {
    PageKey other = kKey;
    change(other);
    return encode(other);
  };
  const std::map<std::string, std::string> others = {
      {"tenant", another([](PageKey& k) { k.part.hour.camera.tenant = "south"; })},
      {"camera", another([](PageKey& k) { k.part.hour.camera.camera = "gatf"; })},
      {"hour", another([](PageKey& k) { ++k.part.hour.hour; })},
      {"part", another([](PageKey& k) { ++k.part.part; })},
      {"first layer", another([](PageKey& k) { k.layers.first = 3; })},
      {"layers", another([](PageKey& k) { k.layers.count = 3; })},
      {"page", another([](PageKey& k) { ++k.page; })}};
  for (const auto& [what, other] : others) {
    EXPECT_FALSE(opens(record, other, secret())) << what;
    // Nor if somebody writes the other key into it.
    std::vector<std::byte> forged = record;
    ASSERT_EQ(other.size(), key.size()) << what;
    std::copy_n(reinterpret_cast<const std::byte*>(other.data()), other.size(), forged.begin() + 32);
    EXPECT_FALSE(opens(forged, other, secret())) << what;
  }
}

TEST_P(RecordTest, NoBitMayBeAnother) {
  const std::string key = encode(kKey);
  const auto record = written(key);
  const std::size_t vouched = RecordShape::of(key.size(), payload_.size()).tag + kTagBytes;
  for (std::size_t at = 0; at < vouched; ++at) {
    auto other = record;
    other[at] ^= static_cast<std::byte>(1U << at % 8);
    EXPECT_FALSE(opens(other, key, secret())) << at;
  }
}

TEST_P(RecordTest, IsOfItsPage) {
  const std::string key = encode(kKey);
  auto record = written(key);
  PageInfo other = info_;
  ++other.fingerprint[3];
  EXPECT_FALSE(open_record(record, key, other, secret()));
}

TEST_P(RecordTest, CutOrLongerIsNone) {
  const std::string key = encode(kKey);
  const auto record = written(key);
  for (const std::size_t size : {std::size_t{0}, std::size_t{10}, std::size_t{40}, record.size() - 64}) {
    std::vector<std::byte> cut(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(open_record(cut, key, info_, secret())) << size;
  }
  auto longer = record;
  longer.resize(record.size() + 64);
  EXPECT_FALSE(open_record(longer, key, info_, secret()));
}

TEST_P(RecordTest, WithAnotherSecretOrWithoutIsNone) {
  const std::string key = encode(kKey);
  const auto record = written(key);
  const SecretKey other = SecretKey::random();
  EXPECT_FALSE(opens(record, key, &other));
  EXPECT_EQ(opens(record, key, nullptr), !GetParam());
}

TEST_P(RecordTest, ShowsNothingOfASealedPage) {
  const std::string key = encode(kKey);
  const auto record = written(key);
  const auto has = [&](std::span<const std::byte> what) {
    return std::search(record.begin(), record.end(), what.begin(), what.end()) != record.end();
  };
  EXPECT_EQ(has(std::span(payload_).first(16)), !GetParam());
  const std::int64_t from = wall_of(info_).from;
  EXPECT_EQ(has(std::as_bytes(std::span(&from, 1))), !GetParam());
}

TEST_P(RecordTest, PayloadsBeginAtMultiplesOf64) {
  for (std::size_t key_bytes = 20; key_bytes < 150; ++key_bytes) {
    const RecordShape shape = RecordShape::of(key_bytes, 1001);
    EXPECT_EQ(shape.payload % 64, 0U);
    EXPECT_EQ(shape.bytes % 64, 0U);
    EXPECT_GE(shape.bytes, shape.tag + kTagBytes);
  }
}

// The part's own entry, in the index and at the end of its file.
TEST_P(RecordTest, EntriesAreReadWithTheirKeyAlone) {
  PartEntry entry;
  entry.replaces = {3, 4};
  entry.record_bytes = 4096;
  entry.pages.push_back({encode_page_info(info_), {{{0, 2}, 1000, 0}, {{2, 2}, 1000, std::nullopt}}});
  const std::string key = encode(kKey.part);
  const std::string bytes = encode_entry(entry, key, secret());
  EXPECT_EQ(decode_entry(bytes, key, secret()), entry);
  PartKey other = kKey.part;
  ++other.hour.hour;
  EXPECT_FALSE(decode_entry(bytes, encode(other), secret()));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_FALSE(decode_entry(changed, key, secret())) << at;
    EXPECT_FALSE(decode_entry(bytes.substr(0, at), key, secret())) << at;
  }
  // One whose sum is right, and that leads beyond its file.
  entry.pages[0].values[0].offset = 4096;
  EXPECT_FALSE(decode_entry(encode_entry(entry, key, secret()), key, secret()));
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, RecordTest, ::testing::Bool());

TEST(Trailers, AreFoundByTheirEnd) {
  const PartTrailer trailer{encode(kKey.part), std::string(kWrappedBytes, 'w'), "entry"};
  const std::string bytes = encode_trailer(trailer);
  EXPECT_EQ(trailer_bytes(bytes.substr(bytes.size() - kFooterBytes)), bytes.size());
  const auto again = decode_trailer(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->key, trailer.key);
  EXPECT_EQ(again->wrapped, trailer.wrapped);
  EXPECT_EQ(again->entry, trailer.entry);
  EXPECT_FALSE(decode_trailer(bytes.substr(1)));
  EXPECT_FALSE(decode_trailer("x" + bytes));
  EXPECT_FALSE(trailer_bytes(std::string(kFooterBytes, '\0')));
}

}  // namespace
}  // namespace vigil::history
