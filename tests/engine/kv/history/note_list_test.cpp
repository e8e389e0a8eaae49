// Why nothing was kept, compared with a look at each moment.
#include "engine/kv/history/note_list.h"

#include <array>
#include <optional>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/kv/history/history_pages.h"

namespace vigil::history {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kGate;
using testing::kHour;
using testing::kYard;
using ::testing::SizeIs;
using Entry = NoteList::Entry;

constexpr std::int64_t kEarliest = INT64_MIN, kLatest = INT64_MAX;

TEST(NoteList, JoinsWhatFollowsForTheSameReason) {
  NoteList notes;
  notes.add({{10, 19}, 2});
  notes.add({{30, 39}, 2});
  notes.add({{15, 25}, 1});
  EXPECT_THAT(notes.entries(), ElementsAre(Entry{{10, 19}, 2}, Entry{{15, 25}, 1}, Entry{{30, 39}, 2}));
  notes.add({{20, 29}, 2});
  EXPECT_THAT(notes.entries(), ElementsAre(Entry{{10, 39}, 2}, Entry{{15, 25}, 1}));
  notes.add({{kEarliest, 9}, 2});
  notes.add({{41, kLatest}, 2});
  EXPECT_THAT(notes.entries(),
              ElementsAre(Entry{{kEarliest, 39}, 2}, Entry{{15, 25}, 1}, Entry{{41, kLatest}, 2}));
}

TEST(NoteList, WhatIsCutOutLeavesBothSides) {
  NoteList notes;
  notes.add({{kEarliest, kLatest}, 3});
  notes.cut(WallRange{5, 4});
  EXPECT_THAT(notes.entries(), SizeIs(1)) << "of no time";
  notes.cut(WallRange{10, 20});
  EXPECT_THAT(notes.entries(), ElementsAre(Entry{{kEarliest, 9}, 3}, Entry{{21, kLatest}, 3}));
  notes.cut(WallRange{kEarliest, 9});
  notes.cut(WallRange{30, kLatest});
  EXPECT_THAT(notes.entries(), ElementsAre(Entry{{21, 29}, 3}));
  notes.cut(WallRange{kEarliest, kLatest});
  EXPECT_THAT(notes.entries(), IsEmpty());
}

TEST(NoteList, GoesWithItsHours) {
  const auto left = [](const Expiry& over) {
    NoteList notes;
    notes.add({{kEarliest, kLatest}, 0});
    notes.cut(over);
    return notes.entries();
  };
  EXPECT_THAT(left({kGate, 3}), ElementsAre(Entry{{3 * kHour, kLatest}, 0}));
  EXPECT_THAT(left({kGate, 3, std::nullopt, 2}),
              ElementsAre(Entry{{kEarliest, 2 * kHour - 1}, 0}, Entry{{3 * kHour, kLatest}, 0}));
  EXPECT_THAT(left({kGate, 3, 1}), SizeIs(1)) << "other forms of them are there";
  EXPECT_THAT(left({kGate, 3, 1}).front().wall, (WallRange{kEarliest, kLatest}));
  EXPECT_THAT(left({kGate, 2, std::nullopt, 2}).front().wall, (WallRange{kEarliest, kLatest}));
  EXPECT_THAT(left({kGate, UINT32_MAX}), ElementsAre(Entry{{kLatest, kLatest}, 0}))
      << "an hour that never comes";
}

TEST(NoteList, WhatEndsFirstIsForgottenFirst) {
  NoteList notes;
  for (std::int64_t i = 0; i < 1100; ++i) notes.add({{10 * i, 10 * i + 1}, 1});
  ASSERT_THAT(notes.entries(), SizeIs(kMostNotes));
  EXPECT_EQ(notes.entries().front().wall.from, 760);
  // A cut that makes two of one, too.
  notes.add({{800, 10'000'000}, 2});
  EXPECT_EQ(notes.entries().front().wall.from, 770);
  notes.cut(WallRange{900'000, 900'001});
  ASSERT_THAT(notes.entries(), SizeIs(kMostNotes));
  EXPECT_EQ(notes.entries().front().wall.from, 780);
}

TEST(NoteList, IsWhatALookAtEachMomentSays) {
  std::mt19937 random(20261129);
  const auto below = [&](std::uint32_t count) { return static_cast<std::int64_t>(random() % count); };
  for (int round = 0; round < 300; ++round) {
    NoteList notes;
    std::array<std::set<std::uint8_t>, 100> moments;
    for (int step = 0; step < 30; ++step) {
      const std::int64_t from = below(90);
      const WallRange wall{from, from + below(10)};
      const auto why = static_cast<std::uint8_t>(below(3));
      const bool cuts = below(3) == 0;
      if (cuts) {
        notes.cut(wall);
      } else {
        notes.add({wall, why});
      }
      for (std::int64_t at = wall.from; at <= wall.to; ++at) {
        auto& moment = moments[static_cast<std::size_t>(at)];
        if (cuts) moment.clear();
        if (!cuts) moment.insert(why);
      }
      std::array<std::set<std::uint8_t>, 100> told;
      std::size_t edges = 0;
      for (const Entry& each : notes.entries())
        for (std::int64_t at = each.wall.from; at <= each.wall.to; ++at)
          ASSERT_TRUE(told[static_cast<std::size_t>(at)].insert(each.why).second) << "twice at " << at;
      ASSERT_EQ(told, moments);
      for (std::size_t at = 0; at < moments.size(); ++at)
        for (const std::uint8_t each : moments[at])
          edges += at == 0 || !moments[at - 1].contains(each) ? 1U : 0U;
      ASSERT_EQ(notes.entries().size(), edges) << "what meets or follows is one";
    }
    EXPECT_EQ(decode_notes(kGate, encode_notes(kGate, notes, nullptr), nullptr), notes);
  }
}

TEST(NoteList, ARowIsItsCamerasAlone) {
  NoteList notes;
  notes.add({{1, 5}, 2});
  notes.add({{3, 9}, 4});
  const SecretKey master = SecretKey::random(), other = SecretKey::random();
  for (const SecretKey* key : {static_cast<const SecretKey*>(nullptr), &master}) {
    const std::string row = encode_notes(kGate, notes, key);
    EXPECT_EQ(decode_notes(kGate, row, key), notes);
    EXPECT_FALSE(decode_notes(kYard, row, key));
    EXPECT_FALSE(decode_notes(kGate, row, &other));
    EXPECT_FALSE(decode_notes(kGate, row, key == nullptr ? &master : nullptr));
    for (std::size_t at = 0; at < row.size(); ++at) {
      std::string changed = row;
      changed[at] = static_cast<char>(changed[at] ^ 8);
      EXPECT_FALSE(decode_notes(kGate, changed, key)) << at;
      EXPECT_FALSE(decode_notes(kGate, row.substr(0, at), key)) << at;
    }
  }
}

}  // namespace
}  // namespace vigil::history
