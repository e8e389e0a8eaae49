// Twice the work that can be done, for five minutes of simulated time: what the two queues of the pipeline,
// of which each is the bottleneck once, give to whom.
#include <map>

#include <gtest/gtest.h>

#include "actors/stream/window_desk.h"
#include "actors/vision/patch_queue.h"
#include "bench/window_log.h"
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
  Scene() {
    for (char name = 'a'; name <= 'k'; ++name) {
      names.emplace_back(1, name);
      cameras.push_back(watched(*camera(names.back(), config::Pace::realtime)));
    }
  }

  /// The patches that are complete at this time: camera and second.
  std::vector<std::pair<std::size_t, int>> captured(milliseconds now) const {
    std::vector<std::pair<std::size_t, int>> patches;
    for (std::size_t i = 0; i < cameras.size(); ++i) {
      const milliseconds since = now - milliseconds(i * 180);
      if (since >= 1s && since % 1000ms == 0ms) patches.emplace_back(i, static_cast<int>(since / 1s) - 1);
    }
    return patches;
  }

  void serve(const std::string& who, milliseconds now) { served.push_back({who, begin + now, 0, 0, 0, 0}); }

  double fairness() const { return bench::least_share(served, names, begin, begin + kEnd, 60s).value_or(0); }

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
    for (const auto& [window, begun] : desk.take_news().answered)
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

}  // namespace
}  // namespace vigil::actors
