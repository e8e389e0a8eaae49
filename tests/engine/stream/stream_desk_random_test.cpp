// The desk under a million operations in random order.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/vision_encoder.h"
#include "engine/stream/page_sink.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using std::chrono::seconds;
using testing::EverySecond;
using testing::expected_tokens;
using testing::patch_of;
using testing::reason_of;
using testing::Room;

/// Holds some of what it is offered, which nobody may write to meanwhile.
class RandomShelf final : public PageSink {
 public:
  explicit RandomShelf(Room& room) : room_(room) {}
  ~RandomShelf() override { clear(); }

  void take(LeavingTokens tokens) noexcept override {
    ++offered;
    EXPECT_GT(tokens.range().count(), 0);
    const CameraStream& stream = room_.desk.stream(tokens.camera);
    EXPECT_EQ(tokens.view.size(), stream.visual_tokens(tokens.range()));
    if (tokens.why == Leaving::shown) return;
    if (offered % 3 == 0 || held_.size() > 2) return;
    Held& held = held_.emplace_back(std::move(tokens));
    for (const std::int32_t slot : held.tokens.view.slots())
      held.values.push_back(room_.passes.value_at(slot));
  }
  void clear() {
    for (const Held& held : held_)
      for (std::size_t i = 0; i < held.values.size(); ++i)
        EXPECT_EQ(room_.passes.value_at(held.tokens.view.slots()[i]), held.values[i]);
    held_.clear();
  }
  std::uint64_t offered = 0;

 private:
  struct Held {
    explicit Held(LeavingTokens of) : tokens(std::move(of)) {}
    LeavingTokens tokens;
    std::vector<std::uint64_t> values;
  };
  Room& room_;
  std::vector<Held> held_;
};

/// So many operations in random order, with passes that fail: no page is lost, every window comes to an end,
/// and every answer is what it has to be, where no key is what it was in another window. A camera's stream
/// changes between the policies. `has_budgets`: and has a budget now and then, and somebody copies what
/// leaves it.
void operate_at_random(int operations, const std::vector<RefreshPolicyPtr>& policies, bool asks_at_once,
                       bool is_exact, bool has_budgets = false) {
  std::mt19937 random(20261123);
  const auto below = [&](std::uint32_t count) { return static_cast<int>(random() % count); };
  Room room(40, {.rows = 24, .texts = 3, .windows = 3, .asks_at_once = asks_at_once}, 4);
  const auto shelf = std::make_shared<RandomShelf>(room);
  if (has_budgets) room.desk.leave_to(shelf);
  bool fails = false;
  room.passes.before = [&](const run::Pass&) {
    if (!fails || below(40) != 0) return;
    if (below(2) == 0) throw std::bad_alloc();
    throw std::runtime_error("once");
  };
  room.passes.before_probe = room.passes.before;
  const std::vector<std::string> cameras{"a", "b", "c", "d"};
  const std::vector<CompiledQuestionPtr> questions{room.question("Fire?", 1), room.question("Car?", 3),
                                                   room.question("Who?", 7)};
  struct Asked {
    PatchRange range;
    std::vector<CompiledQuestionPtr> questions;
    bool is_answered = false;
    std::vector<std::vector<std::int32_t>> expected;
  };
  std::map<WindowId, Asked> asked;
  std::uint64_t ended = 0, answers = 0, texts = 0;
  const auto settle = [&](const WindowId& id) { ended += asked.erase(id); };
  const auto listen = [&] {
    room.take_news();
    for (const auto& each : room.news.answered) {
      Asked& one = asked.at(each.window);
      one.is_answered = true;
      ++answers;
      ASSERT_EQ(each.answers.size(), one.questions.size());
      for (std::size_t i = 0; i < each.answers.size(); ++i) {
        if (!is_exact) continue;
        if (one.expected[i].empty()) {
          ASSERT_TRUE(each.answers[i].tokens.empty());
        } else {
          ASSERT_EQ(each.answers[i].tokens.at(0), one.expected[i][0]);
        }
      }
    }
    for (const auto& each : room.news.told) {
      const auto one = asked.find(each.window);
      if (one == asked.end() || each.failure) continue;
      ++texts;
      if (!is_exact) continue;
      ASSERT_EQ(each.answer.tokens, one->second.expected[each.question]);
    }
    for (const auto& each : room.news.failed) settle(each.window);
    for (const auto& each : room.news.overtaken) settle(each);
    room.news = {};
  };
  std::map<std::string, std::vector<model::VisualTokensPtr>> patches;
  std::map<std::string, std::int64_t> first;
  for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
    fails = i % 1000 < 500;
    const std::string& camera = cameras[static_cast<std::size_t>(below(4))];
    const bool is_open = room.desk.is_open(camera);
    switch (below(16)) {
      case 0:
        if (!is_open && below(4) == 0) {
          room.desk.open(camera, policies.front());
          patches[camera].clear();
          first[camera] = 0;
        }
        break;
      case 1:
        if (is_open && policies.size() > 1 && below(10) == 0)
          room.desk.follow(camera, policies[static_cast<std::size_t>(below(2))]);
        if (has_budgets && is_open && below(5) == 0)
          room.desk.set_budget(camera, static_cast<std::uint64_t>(below(4)) * 4);
        if (is_open && below(50) == 0) room.desk.close(camera);
        break;
      case 2:
      case 3:
      case 4:
        if (is_open) {
          patches[camera].push_back(patch_of(static_cast<float>(i)));
          room.desk.append(camera, patches[camera].back());
          const auto last = static_cast<std::int64_t>(patches[camera].size());
          if (last - first[camera] > 3) room.desk.slide(camera, first[camera] = last - 3);
          if (below(2) == 0)
            room.desk.expect(camera,
                             last - 1 - below(std::min<std::uint32_t>(3, static_cast<std::uint32_t>(last))),
                             room.now + seconds(below(20)));
          if (last > 2000) room.desk.close(camera);
        }
        break;
      case 5: {
        if (!is_open) break;
        const auto last = static_cast<std::int64_t>(patches[camera].size());
        std::int64_t begin = std::max(first[camera], last - 1 - below(3));
        if (begin >= last || asked.size() > 30) break;
        if (has_budgets) {
          begin = room.desk.within_budget(camera, {begin, last}).first;
          if (below(2) == 0) room.desk.shorten(camera, begin);
        }
        Asked one{{begin, last}, {}, false, {}};
        for (int question = below(4); question > 0; --question)
          one.questions.push_back(questions[static_cast<std::size_t>(below(3))]);
        Asking asking;
        asking.patches = one.range;
        asking.due = room.now + seconds(below(10));
        asking.keep = seconds(20);
        asking.overtakes = below(2) == 0;
        const std::vector<model::VisualTokensPtr> shown(patches[camera].begin() + begin,
                                                        patches[camera].begin() + last);
        for (const auto& question : one.questions) {
          asking.questions.push_back({question, {}});
          one.expected.push_back(expected_tokens(*room.folder, room.prompts, shown, *question));
        }
        asked.emplace(room.desk.ask(camera, std::move(asking)), std::move(one));
        break;
      }
      case 6:
      case 7:
      case 8:
        if (!asked.empty()) {
          auto entry = std::next(asked.begin(), below(static_cast<std::uint32_t>(asked.size())));
          if (entry->second.is_answered && !entry->second.questions.empty())
            room.desk.explain(
                entry->first,
                static_cast<std::size_t>(below(static_cast<std::uint32_t>(entry->second.questions.size()))));
        }
        break;
      case 9:
        if (!asked.empty() && below(4) == 0) {
          const WindowId id =
              std::next(asked.begin(), below(static_cast<std::uint32_t>(asked.size())))->first;
          room.desk.done(id);
          settle(id);
        }
        break;
      case 10:
        room.now += std::chrono::milliseconds(below(300));
        if (has_budgets) room.desk.show(camera);
        shelf->clear();
        break;
      case 11:
        room.desk.expire(room.now);
        break;
      default:
        if (room.desk.due()) room.desk.work({room.now});
    }
    listen();
  }
  fails = false;
  for (const std::string& camera : cameras)
    if (room.desk.is_open(camera)) room.desk.close(camera);
  listen();
  for (const auto& [id, one] : asked) room.desk.done(id);
  shelf->clear();
  EXPECT_EQ(shelf->offered > 1000, has_budgets);
  EXPECT_EQ(room.book.kept(), 0);
  EXPECT_TRUE(room.is_empty()) << room.book.free_pages() << " of " << room.book.pages();
  EXPECT_EQ(room.book.events().taken, room.book.events().freed);
  EXPECT_FALSE(room.desk.due());
  EXPECT_EQ(room.desk.texts(), 0U);
  EXPECT_GT(answers * 100, static_cast<std::uint64_t>(operations));
  EXPECT_GT(texts * 1000, static_cast<std::uint64_t>(operations));
}

TEST(StreamDeskTest, AMillionRandomOperationsLoseNothing) {
  operate_at_random(1'000'000, {make_refresh("all")}, true, true);
}

TEST(StreamDeskTest, NorDoTheyWhereQuestionsFollowTheirWindow) {
  operate_at_random(200'000, {make_refresh("all")}, false, true);
}

TEST(StreamDeskTest, NorWhereKeysAreKept) {
  operate_at_random(200'000, {make_refresh("none")}, true, false);
  operate_at_random(200'000, {make_refresh("none"), make_refresh("all")}, false, false);
}

TEST(StreamDeskTest, NorWhereSomeOfThemAreComputedAnew) {
  operate_at_random(200'000, {std::make_shared<EverySecond>()}, true, false);
  operate_at_random(200'000, {make_refresh("random-k", {.share = 0.4}), make_refresh("none")}, false, false);
  operate_at_random(200'000, {make_refresh("topk", {.share = 0.4})}, true, false);
  operate_at_random(200'000, {make_refresh("topk", {.share = 0.6}), make_refresh("none")}, false, false);
}

TEST(StreamDeskTest, NorWhereBudgetsAreShortAndSomebodyCopiesWhatLeaves) {
  operate_at_random(200'000, {std::make_shared<EverySecond>(), make_refresh("none")}, true, false, true);
  operate_at_random(200'000, {make_refresh("first-k", {.share = 1}), make_refresh("all")}, true, true, true);
}

TEST(StreamDeskTest, AndAllOfThemAnewIsAsIfNothingHadBeenKept) {
  const RefreshPolicyPtr all = make_refresh("all"), anew = make_refresh("first-k", {.share = 1});
  operate_at_random(200'000, {anew, all}, true, true);
  operate_at_random(200'000, {all, anew}, false, true);
}

}  // namespace
}  // namespace vigil::stream
