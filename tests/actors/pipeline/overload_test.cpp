// Twice the work that can be done, for five minutes of simulated time: what the two queues of the pipeline,
// of which each is the bottleneck once, give to whom.
#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "actors/stream/window_desk.h"
#include "actors/vision/patch_queue.h"
#include "bench/window_log.h"
#include "engine/run/executor.h"
#include "tests/actors/fakes.h"
#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using std::chrono::milliseconds;

constexpr milliseconds kTick(20);
constexpr milliseconds kEnd = 5min;

/// Cameras that started one after the other: a patch each second, a window each two.
struct Scene {
  explicit Scene(int count = 11, milliseconds between = 180ms) : apart(between) {
    for (int i = 0; i < count; ++i) {
      names.push_back("camera-" + std::to_string(i));
      const auto settings = camera(names.back(), config::Pace::realtime);
      settings->rules[0].explain = true;
      cameras.push_back(watched(*settings));
    }
  }

  /// The patches that are complete at this time: camera and second.
  std::vector<std::pair<std::size_t, int>> captured(milliseconds now) const {
    std::vector<std::pair<std::size_t, int>> patches;
    for (std::size_t i = 0; i < cameras.size(); ++i) {
      const milliseconds since = now - i * apart;
      if (since >= 1s && since % 1000ms == 0ms) patches.emplace_back(i, static_cast<int>(since / 1s) - 1);
    }
    return patches;
  }

  void serve(const std::string& who, milliseconds now) { served.push_back({who, begin + now, 0, 0, 0, 0}); }

  double fairness() const { return bench::least_share(served, names, begin, begin + kEnd, 60s).value_or(0); }

  milliseconds apart;
  base::Clock::TimePoint begin{1h};
  std::vector<std::string> names;
  std::vector<WatchPtr> cameras;
  std::vector<bench::AnsweredWindow> served;
};

TEST(Overload, EveryCameraGetsItsWindowsAnswered) {
  Scene scene;
  ScriptedLanguage language;
  WindowDesk desk(language.desk, language.questions, {});
  desk.grant(1'000'000);
  for (const WatchPtr& each : scene.cameras) desk.join(each);
  milliseconds busy_until(0);
  milliseconds now(0);
  language.passes.on_ask = [&](std::size_t windows) { busy_until = now + windows * 360ms; };
  for (; now < kEnd; now += kTick) {
    for (const auto& [index, second] : scene.captured(now)) {
      const auto patch = visual_patch(scene.cameras[index], second);
      patch->captured.steady = scene.begin + now;
      desk.push(*patch);
    }
    while (now >= busy_until && desk.due()) desk.work({scene.begin + now});
    for (const auto& [window, tokens, begun, asked] : desk.take_news().answered)
      scene.serve(window->watch->name, busy_until);
  }
  EXPECT_LT(scene.served.size(), 11 * 150 * 6 / 10) << "no overload";
  EXPECT_GE(scene.fairness(), 0.5);
}

TEST(Overload, EveryCameraGetsItsPatchesEncoded) {
  Scene scene;
  PatchQueue queue(2);
  std::map<std::string, std::uint32_t> credits;
  std::map<std::string, bool> dropping;
  for (const WatchPtr& each : scene.cameras) {
    credits[each->name] = queue.join(*each).credits;
    queue.grant(each->name, 1'000'000);
  }
  milliseconds busy_until(0);
  std::vector<FramePatchPtr> under_way;
  for (milliseconds now(0); now < kEnd; now += kTick) {
    for (const auto& [index, second] : scene.captured(now)) {
      const WatchPtr& each = scene.cameras[index];
      std::uint32_t& credit = credits[each->name];
      // Without credit for a whole stride, a camera drops it.
      if (second % 2 == 0) dropping[each->name] = credit < 2;
      if (dropping[each->name]) continue;
      --credit;
      auto patch = std::make_shared<FramePatch>();
      patch->watch = each->ref();
      patch->seconds = second;
      ASSERT_TRUE(queue.push(std::move(patch)));
    }
    if (now < busy_until) continue;
    for (const FramePatchPtr& patch : under_way) ++credits[patch->watch.camera];
    under_way = queue.pop(8);
    busy_until = now + under_way.size() * 180ms;
    for (const FramePatchPtr& patch : under_way) scene.serve(patch->watch.camera, busy_until);
  }
  EXPECT_LT(scene.served.size(), 11 * 300 * 6 / 10) << "no overload";
  EXPECT_GE(scene.fairness(), 0.5);
}

/// Patches that a vision tower takes a while for.
class Vision final : public run::WorkSource {
 public:
  Vision(const Scene& scene, ManualClock& clock, WindowDesk& desk)
      : scene_(scene), clock_(clock), desk_(desk) {}
  void push(std::size_t camera, int second) { waiting_.push_back({camera, second, clock_.now()}); }
  std::optional<base::Clock::TimePoint> due() const override {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_.front().captured);
  }
  void work(const run::Turn&) override {
    const Waiting next = waiting_.front();
    waiting_.pop_front();
    clock_.advance(2ms);
    const auto patch = visual_patch(scene_.cameras[next.camera], next.second, 90);
    patch->captured.steady = next.captured;
    desk_.push(*patch);
  }

 private:
  struct Waiting {
    std::size_t camera;
    int second;
    base::Clock::TimePoint captured;
  };
  const Scene& scene_;
  ManualClock& clock_;
  WindowDesk& desk_;
  std::deque<Waiting> waiting_;
};

// One device for all of it, and every answer is told. What is answered is news: windows that had to wait are
// overtaken by newer ones.
TEST(Overload, WhatIsAnsweredIsNotOld) {
  Scene scene(110, 20ms);
  ManualClock clock;
  const base::Clock::TimePoint begin = clock.now();
  ScriptedLanguage language;
  WindowDesk desk(language.desk, language.questions, {});
  desk.grant(1'000'000);
  for (const WatchPtr& each : scene.cameras) desk.join(each);
  language.passes.on_ask = [&](std::size_t windows) { clock.advance(windows * 36ms); };
  language.passes.on_generate = [&](std::size_t) { clock.advance(3ms); };
  Vision vision(scene, clock, desk);
  run::Executor executor(clock, {&vision, &desk});
  std::vector<base::Clock::TimePoint::duration> ages;
  std::size_t told = 0;
  milliseconds tick(0);
  while (tick < kEnd) {
    for (; begin + tick <= clock.now(); tick += kTick)
      for (const auto& [index, second] : scene.captured(tick)) vision.push(index, second);
    if (!executor.run_one()) clock.advance(kTick);
    WindowDesk::News news = desk.take_news();
    for (const auto& [window, tokens, begun, asked] : news.answered) {
      ages.push_back(clock.now() - window->captured.steady);
      language.desk.explain(*window->id, 0);
    }
    told += news.told.size();
  }
  EXPECT_LT(ages.size(), 110 * 150 * 6 / 10) << "no overload";
  EXPECT_GT(told, ages.size() * 9 / 10);
  std::sort(ages.begin(), ages.end());
  // A window waits for a stride at most, and for the pass that is being computed.
  EXPECT_LT(ages[ages.size() * 95 / 100], 4s);
}

}  // namespace
}  // namespace vigil::actors
