#include "engine/stream/refresh.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/stream/demo_desk.h"
#include "tests/engine/stream/desk_room.h"

namespace vigil::stream {
namespace {

using testing::DemoDesk;
using testing::patch_of;
using testing::Room;

std::vector<kv::TokenRange> chosen(const RefreshPolicyPtr& policy, const std::vector<KeptPatch>& kept) {
  std::vector<kv::TokenRange> ranges;
  policy->choose(kept, ranges);
  return ranges;
}

std::int64_t tokens_of(const std::vector<kv::TokenRange>& ranges) {
  std::int64_t tokens = 0;
  for (const kv::TokenRange& range : ranges) tokens += range.count;
  return tokens;
}

const std::vector<KeptPatch> kKept{{4, 30, 1}, {5, 0, 1}, {6, 50, 0}};

TEST(RefreshTest, FirstKTakesTheOldestTokens) {
  EXPECT_EQ(chosen(make_refresh("first-k", {.share = 0.15}), kKept), (std::vector<kv::TokenRange>{{0, 12}}));
  EXPECT_EQ(chosen(make_refresh("first-k", {.share = 0.5}), kKept), (std::vector<kv::TokenRange>{{0, 40}}));
  EXPECT_EQ(chosen(make_refresh("first-k", {.share = 1}), kKept), (std::vector<kv::TokenRange>{{0, 80}}));
  EXPECT_TRUE(chosen(make_refresh("first-k", {.share = 0}), kKept).empty());
  EXPECT_TRUE(chosen(make_refresh("first-k", {.share = 1}), {}).empty());
  EXPECT_TRUE(chosen(make_refresh("none"), kKept).empty());
}

TEST(RefreshTest, RandomKTakesAsManyAnywhere) {
  const RefreshPolicyPtr policy = make_refresh("random-k", {.share = 0.25});
  const auto ranges = chosen(policy, kKept);
  EXPECT_EQ(tokens_of(ranges), 20);
  std::int64_t end = -1;
  for (const kv::TokenRange& range : ranges) {
    EXPECT_GT(range.first, end) << "apart from each other, ascending";
    EXPECT_GT(range.count, 0);
    end = range.first + range.count;
  }
  EXPECT_LE(end, 80);
  EXPECT_GT(ranges.size(), 10U) << "no block of them";
  EXPECT_EQ(chosen(policy, kKept), ranges) << "the same each time";
  std::vector<KeptPatch> next = kKept;
  for (KeptPatch& patch : next) ++patch.number;
  EXPECT_NE(chosen(policy, next), ranges) << "others for the next window";
  EXPECT_EQ(chosen(make_refresh("random-k", {.share = 1}), kKept), (std::vector<kv::TokenRange>{{0, 80}}));
  EXPECT_TRUE(chosen(policy, {}).empty());
}

TEST(RefreshTest, CodecSightTakesPatchesWithAnIFrameAndTheFirst) {
  const RefreshPolicyPtr policy = make_refresh("codecsight");
  std::vector<KeptPatch> kept{{4, 30, 1},      {5, 20, 1},      {6, 10, 1, true},
                              {7, 0, 1, true}, {8, 5, 1, true}, {9, 5, 1}};
  EXPECT_EQ(chosen(policy, kept), (std::vector<kv::TokenRange>{{0, 30}, {50, 15}}));
  kept[1].intra = true;
  EXPECT_EQ(chosen(policy, kept), (std::vector<kv::TokenRange>{{0, 65}}));
  kept[0].tokens = 0;
  kept[1].intra = false;
  EXPECT_EQ(chosen(policy, kept), (std::vector<kv::TokenRange>{{20, 15}}));
  EXPECT_TRUE(chosen(policy, {}).empty());
}

TEST(RefreshTest, RefusesWhatIsNoPolicy) {
  for (const std::string name : {"", "None", "topk "})
    EXPECT_THROW(make_refresh(name), std::invalid_argument) << name;
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(make_refresh("first-k", {.share = share}), std::invalid_argument) << share;
  try {
    make_refresh("some");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "\"some\" is no refresh policy: all, none, codecsight, first-k, random-k, topk");
  }
  for (const std::string_view name : kRefreshPolicies) EXPECT_TRUE(make_refresh(name));
}

// A patch of none to three tokens.
model::VisualTokensPtr pruned(std::int64_t number, double seconds) {
  base::GridMask groups = base::GridMask::none(2, 2);
  for (std::int64_t i = 0; i < number * 7 % 4; ++i) groups.add(3 - i);
  return patch_of(static_cast<float>(number), std::move(groups), seconds);
}

// All tokens anew are a fresh computation, however long the stream has run, over a gap of time, in small
// passes and in large ones, while nobody or somebody still sees what was there; some of them alone are not.
TEST(RefreshTest, AllTokensAnewAreAFreshComputation) {
  for (const bool is_held : {false, true})
    for (const std::int64_t rows : {5, 64}) {
      Room room(2048, {.rows = rows}, 4);
      room.desk.open("all", make_refresh("first-k", {.share = 1}));
      room.desk.open("some", make_refresh("first-k", {.share = 0.3}));
      room.desk.open("all by keys", make_refresh("topk", {.share = 1}));
      room.desk.open("some by keys", make_refresh("topk", {.share = 0.3}));
      const auto question = room.question("Is there a car?", 8);
      std::map<std::string, int> right{{"all", 0}, {"some", 0}, {"all by keys", 0}, {"some by keys", 0}};
      for (std::int64_t number = 0; number < 40; ++number) {
        // A month passes, and then three seconds between two patches of one.
        double seconds = static_cast<double>(number);
        if (number >= 10) seconds += 30 * 86'400;
        if (number >= 22) seconds += 3;
        for (auto& [camera, answers] : right) {
          ASSERT_EQ(room.append(camera, pruned(number, seconds)), number);
          if (number < 4 || number % 2 == 1) continue;
          const PatchRange range{number - 4, number + 1};
          room.desk.slide(camera, range.first);
          const WindowId id = room.ask(camera, range, {question});
          room.run();
          const auto* answered = room.answered(id);
          ASSERT_NE(answered, nullptr);
          const auto expected = room.expected(camera, range, question);
          const auto& told = answered->answers[0].tokens;
          answers += (expected.empty() ? told.empty() : !told.empty() && told[0] == expected[0]) ? 1 : 0;
          if (!is_held) room.desk.done(id);
          room.news = {};
          room.now += std::chrono::seconds(number == 20 ? 100 : 1);
        }
      }
      for (const std::string by : {"", " by keys"}) {
        EXPECT_EQ(right["all" + by], 18);
        EXPECT_LT(right["some" + by], 15) << "else this would prove nothing";
        EXPECT_GT(right["some" + by], 0) << "the first window has nothing that is stale";
        room.desk.close("all" + by);
        room.desk.close("some" + by);
      }
      room.desk.expire(room.now + std::chrono::seconds(200));
      room.desk.expire(room.now + std::chrono::seconds(400));
      EXPECT_TRUE(room.is_empty());
    }
}

// A family of which other axes go on with time: the stream lies where these say, prompt and question with it.
TEST(RefreshTest, TheFamilySaysWhichAxesGoOnWithTime) {
  for (const model::TimeAxes& axes :
       {model::TimeAxes{true, true, true}, model::TimeAxes{true, false, true}}) {
    const auto family = std::const_pointer_cast<model::ModelFolder>(
        model::ModelFolder::open(std::string(VIGIL_SOURCE_DIR) + "/models/demo"));
    family->config.text.traits.time_axes = axes;
    Room room(512, {}, 4, family);
    room.desk.open("gate", make_refresh("first-k", {.share = 1}));
    std::vector<model::Position> seen;
    room.passes.before = [&](const run::Pass& pass) { seen = pass.positions; };
    const auto question = room.question("Is there a car?", 8);
    for (std::int64_t number = 0; number < 12; ++number) {
      room.append("gate", pruned(number, static_cast<double>(number)));
      if (number < 4) continue;
      const PatchRange range{number - 4, number + 1};
      room.desk.slide("gate", range.first);
      const WindowId id = room.ask("gate", range, {question});
      room.run();
      ASSERT_NE(room.answered(id), nullptr);
      const auto expected = room.expected("gate", range, question);
      const auto& told = room.answered(id)->answers[0].tokens;
      ASSERT_EQ(told.empty(), expected.empty()) << number;
      if (!told.empty()) {
        EXPECT_EQ(told[0], expected[0]) << number;
      }
      room.desk.done(id);
    }
    // The question of the last window, which began at the eighth patch; two positions a second.
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back().t - seen.back().h, axes[1] ? 0 : 14);
    EXPECT_EQ(seen.back().t, seen.back().w);
    room.desk.close("gate");
  }
}

// A source that samples at another rate from now on, and one that was away: time goes on at its own pace.
TEST(RefreshTest, PositionsFollowTheTime) {
  for (const std::string policy : {"all", "none"}) {
    Room room;
    room.desk.open("gate", make_refresh(policy));
    std::vector<std::int32_t> times;
    room.passes.before = [&](const run::Pass& pass) {
      for (const model::Position& position : pass.positions) times.push_back(position.t);
    };
    // Two of 2 s, two of 1 s, one that is late by a frame, and one after 3 s of nothing.
    room.append("gate", patch_of(1, 1, 1, 0, 2));
    room.append("gate", patch_of(2, 1, 1, 2, 2));
    room.append("gate", patch_of(3, 1, 1, 4, 1));
    room.append("gate", patch_of(4, 1, 1, 5, 1));
    room.append("gate", patch_of(5, 1, 1, 6.1, 1));
    room.append("gate", patch_of(6, 1, 1, 10, 1));
    const WindowId id = room.ask("gate", {0, 6}, {});
    room.run();
    ASSERT_NE(room.answered(id), nullptr);
    ASSERT_EQ(times.size(), static_cast<std::size_t>(room.prompts.before() + 6));
    const std::int32_t first = times[times.size() - 6];
    std::vector<std::int32_t> since;
    for (std::size_t i = times.size() - 6; i < times.size(); ++i) since.push_back(times[i] - first);
    EXPECT_EQ(since, (std::vector<std::int32_t>{0, 4, 8, 10, 12, 20})) << "two a second, in steps of a patch";
    room.desk.close("gate");
  }
}

// The same with the demo model's numbers.
TEST(RefreshTest, TheModelAnswersAsIfItWereAsked) {
  DemoDesk room(4096);
  room.desk.open("fresh", make_refresh("all"));
  room.desk.open("anew", make_refresh("first-k", {.share = 1}));
  room.desk.open("by keys", make_refresh("topk", {.share = 1}));
  room.desk.open("some by keys", make_refresh("topk", {.share = 0.5}));
  room.desk.open("kept", make_refresh("none"));
  std::vector<model::VisualTokensPtr> patches = testing::noise_window(3, 1);
  for (auto& patch : testing::noise_window(9, 2, 112, 84, kernels::DType::f32, 30 * 86'400))
    patches.push_back(std::move(patch));
  std::map<std::string, std::vector<float>> told;
  for (std::int64_t number = 0; number < 12; ++number) {
    for (const std::string camera : {"fresh", "anew", "by keys", "some by keys", "kept"}) {
      room.desk.append(camera, patches[static_cast<std::size_t>(number)]);
      if (number < 4) continue;
      room.desk.slide(camera, number - 4);
      Asking asking;
      asking.patches = {number - 4, number + 1};
      asking.questions.push_back({room.questions.compile(testing::rules().front()), {}});
      const WindowId id = room.desk.ask(camera, std::move(asking));
      const DeskNews news = room.work();
      ASSERT_EQ(news.answered.size(), 1U);
      told[camera].push_back(news.answered[0].answers[0].probability_yes);
      room.desk.done(id);
    }
  }
  float most = 0, most_by_keys = 0, most_kept = 0, sum_of_some = 0, sum_kept = 0;
  for (std::size_t i = 0; i < told["fresh"].size(); ++i) {
    most = std::max(most, std::abs(told["anew"][i] - told["fresh"][i]));
    most_by_keys = std::max(most_by_keys, std::abs(told["by keys"][i] - told["fresh"][i]));
    sum_of_some += std::abs(told["some by keys"][i] - told["fresh"][i]);
    sum_kept += std::abs(told["kept"][i] - told["fresh"][i]);
    most_kept = std::max(most_kept, std::abs(told["kept"][i] - told["fresh"][i]));
  }
  EXPECT_LT(most, 2e-5);
  EXPECT_LT(most_by_keys, 2e-5);
  EXPECT_GT(sum_of_some, 2e-4) << "some are not all";
  EXPECT_LT(sum_of_some, 0.75F * sum_kept);
  EXPECT_GT(most_kept, 2e-4) << "else this would prove nothing";
}

}  // namespace
}  // namespace vigil::stream
