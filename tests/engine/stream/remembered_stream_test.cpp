// Streams that begin with what another one had: with its keys, or with what the tower had made.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/page_sink.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::Fingerprint;
using testing::patch_of;
using testing::reason_of;
using testing::Room;

/// Keeps what leaves streams: each patch, and what was in its slots.
class Memory final : public PageSink {
 public:
  explicit Memory(testing::SimulatedPasses& passes) : passes_(passes) {}
  struct Kept {
    LeavingPatch patch;
    std::vector<Fingerprint> keys;
  };
  void take(LeavingTokens tokens) noexcept override {
    std::size_t slot = 0;
    for (const LeavingPatch& patch : tokens.patches) {
      Kept& kept = kept_[patch.number];
      kept = {patch, {}};
      for (std::int64_t i = 0; i < patch.tokens->count(); ++i)
        kept.keys.push_back(passes_.read(tokens.view.slots()[slot++]));
    }
  }
  const std::map<std::int64_t, Kept>& kept() const { return kept_; }

 private:
  testing::SimulatedPasses& passes_;
  std::map<std::int64_t, Kept> kept_;
};

std::shared_ptr<model::VisualTokens> without_embeddings(const model::VisualTokens& patch) {
  auto bare = std::make_shared<model::VisualTokens>();
  bare->kept = patch.kept;
  bare->width = patch.width;
  bare->seconds = patch.seconds;
  bare->duration = patch.duration;
  return bare;
}

/// A stream of eight patches of which a window was asked, and which has ended since.
struct RememberedStream : ::testing::Test {
  Room room{64, {}, 4};
  std::shared_ptr<Memory> memory = std::make_shared<Memory>(room.passes);
  CompiledQuestionPtr question;
  std::vector<std::int32_t> tokens;

  void SetUp() override {
    room.desk.leave_to(memory);
    room.open("gate", 8, "none");
    question = room.lasting("gate", {0, 8}, 3);
    tokens = said("gate", {0, 8});
    ASSERT_EQ(tokens, room.expected("gate", {0, 8}, question));
    room.desk.close("gate");
    ASSERT_EQ(memory->kept().size(), 8U);
  }
  /// What is said about a window.
  std::vector<std::int32_t> said(const std::string& camera, PatchRange range) {
    const WindowId id = room.ask(camera, range, {question});
    room.run();
    room.desk.explain(id, 0);
    room.run();
    const auto* told = room.told(id, 0);
    return told == nullptr || told->failure ? std::vector<std::int32_t>{} : told->answer.tokens;
  }
  std::int64_t time_of(const LeavingPatch& patch) const { return patch.at.t - room.prompts.before(); }
  /// Those from `first` on; of those whose number `computed` has, the embeddings alone.
  std::vector<RememberedPatch> patches(std::int64_t first, const std::vector<std::int64_t>& computed = {}) {
    std::vector<RememberedPatch> all;
    for (std::int64_t number = first; number < 8; ++number) {
      const LeavingPatch& patch = memory->kept().at(number).patch;
      const bool is_computed = std::find(computed.begin(), computed.end(), number) != computed.end();
      all.push_back({is_computed ? room.kept.at({"gate", number}) : without_embeddings(*patch.tokens),
                     time_of(patch), !is_computed});
    }
    return all;
  }
  void write(std::span<const std::int32_t> slots, std::int64_t first,
             const std::vector<RememberedPatch>& all) {
    std::size_t slot = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const Fingerprint& key : memory->kept().at(first + static_cast<std::int64_t>(i)).keys)
        if (all[i].has_keys) {
          room.passes.write(slots[slot++], key);
        } else {
          ++slot;
        }
  }
};

TEST_F(RememberedStream, AnswersAsTheOneThatItWas) {
  const std::vector<RememberedPatch> all = patches(0);
  const auto slots = room.desk.restore("past", all);
  ASSERT_TRUE(slots);
  write(*slots, 0, all);
  const std::int64_t rows = room.passes.rows;
  EXPECT_EQ(said("past", {0, 8}), tokens);
  EXPECT_EQ(room.passes.rows - rows,
            room.prompts.before() + static_cast<std::int64_t>(question->tokens.size() + tokens.size()))
      << "nothing of what is remembered was computed again";
  room.desk.close("past");
  EXPECT_TRUE(room.is_empty());
}

// What depends on what was before it has seen what it saw then.
TEST_F(RememberedStream, APartOfItIsAsItWas) {
  const std::vector<RememberedPatch> all = patches(3);
  const auto slots = room.desk.restore("past", all);
  ASSERT_TRUE(slots);
  write(*slots, 3, all);
  const std::vector<std::int32_t> part = said("past", {0, 5});
  EXPECT_FALSE(part.empty());
  EXPECT_NE(part, tokens) << "three patches are missing";
  EXPECT_EQ(said("past", {0, 5}), part);
  room.desk.close("past");
}

TEST_F(RememberedStream, WhatHasNoKeysIsComputedInItsPlace) {
  for (const std::vector<std::int64_t>& computed :
       {std::vector<std::int64_t>{7}, std::vector<std::int64_t>{2, 3, 6}, std::vector<std::int64_t>{0},
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7}}) {
    const std::vector<RememberedPatch> all = patches(0, computed);
    const auto slots = room.desk.restore("past", all);
    ASSERT_TRUE(slots);
    write(*slots, 0, all);
    const std::int64_t rows = room.passes.rows;
    EXPECT_EQ(said("past", {0, 8}), tokens) << computed.size();
    EXPECT_EQ(room.passes.rows - rows,
              room.prompts.before() + static_cast<std::int64_t>(question->tokens.size() + tokens.size()) +
                  2 * static_cast<std::int64_t>(computed.size()));
    room.desk.close("past");
  }
  EXPECT_TRUE(room.is_empty());
}

// The present goes first: a camera's window takes the room, and who asked about the past hears so.
TEST_F(RememberedStream, GivesWayToWindows) {
  const std::vector<RememberedPatch> all = patches(0);
  const auto slots = room.desk.restore("past", all);
  ASSERT_TRUE(slots);
  write(*slots, 0, all);
  const auto brief = room.question("Car?", 1);
  int most = 1;
  while (room.desk.pages_for(2 * (most + 1), std::vector{brief}) <= room.book.free_pages() + 1) ++most;
  room.open("yard", most, "none");
  const WindowId now = room.ask("yard", {0, most}, {brief});
  room.run();
  EXPECT_NE(room.answered(now), nullptr);
  const WindowId past = room.ask("past", {0, 8}, {question}, 60);
  room.run();
  ASSERT_EQ(room.news.failed.size(), 1U);
  EXPECT_EQ(room.news.failed[0].window, past);
  EXPECT_EQ(room.news.failed[0].reason, "what is remembered of it had to make room for others");
  room.desk.done(now);
  room.desk.close("past");
  room.desk.close("yard");
  EXPECT_TRUE(room.is_empty());
}

TEST_F(RememberedStream, NobodyGivesRoomForIt) {
  room.open("yard", 90, "none");
  const WindowId now = room.ask("yard", {0, 90}, {room.question("Car?", 1)});
  room.run();
  ASSERT_NE(room.answered(now), nullptr);
  room.desk.done(now);
  const std::vector<RememberedPatch> all = patches(0);
  std::vector<RememberedPatch> more;
  for (int i = 0; i < 20; ++i)
    for (RememberedPatch each : all) {
      each.time = static_cast<std::int64_t>(more.size());
      more.push_back(each);
    }
  const std::int64_t free = room.book.free_pages();
  EXPECT_FALSE(room.desk.restore("past", more));
  EXPECT_FALSE(room.desk.is_open("past"));
  EXPECT_EQ(room.book.free_pages(), free);
  EXPECT_TRUE(room.desk.stream("yard").keeps_pages());
  room.desk.close("yard");
}

// As those of cameras with more than two frames a second do.
TEST_F(RememberedStream, PatchesMayShareATime) {
  std::vector<RememberedPatch> all = patches(0);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].time = static_cast<std::int64_t>(i / 4);
  const auto slots = room.desk.restore("past", all);
  ASSERT_TRUE(slots);
  write(*slots, 0, all);
  EXPECT_FALSE(said("past", {0, 8}).empty());
  room.desk.close("past");
  EXPECT_TRUE(room.is_empty());
}

TEST_F(RememberedStream, WhatMakesNoSenseIsRefused) {
  const std::int64_t free = room.book.free_pages();
  EXPECT_THROW(room.desk.restore("past", {}), std::invalid_argument);
  std::vector<RememberedPatch> all = patches(0);
  std::swap(all[2].time, all[3].time);
  EXPECT_THROW(room.desk.restore("past", all), std::invalid_argument);
  all = patches(0);
  all[4].has_keys = false;
  EXPECT_THROW(room.desk.restore("past", all), std::invalid_argument) << "neither keys nor embeddings";
  all = patches(0);
  all[7].time = std::int64_t{1} << 40;
  EXPECT_THROW(room.desk.restore("past", all), std::invalid_argument);
  room.open("open");
  EXPECT_THROW(room.desk.restore("open", patches(0)), std::invalid_argument);
  EXPECT_FALSE(room.desk.is_open("past"));
  EXPECT_EQ(room.book.free_pages(), free);
}

}  // namespace
}  // namespace vigil::stream
