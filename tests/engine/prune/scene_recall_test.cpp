// How many of the changes that are drawn into pictures are kept, beside other policies and beside chance.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/prune/pruning_policy.h"
#include "tests/engine/prune/street.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::choose;
using testing::Street;

/// A rectangle that is so much brighter, or darker, than what is behind it.
struct Change {
  int contrast;
  int wide;
  int high;
};

void draw(const Change& change, int left, int top, int sign, Canvas& on) {
  for (int y = top; y < top + change.high; ++y)
    for (int i = 3 * (y * on.width + left); i < 3 * (y * on.width + left + change.wide); ++i) {
      std::uint8_t& value = on.rgb[static_cast<std::size_t>(i)];
      value = static_cast<std::uint8_t>(std::clamp(value + sign * change.contrast, 0, 255));
    }
}

struct Found {
  /// Turns of which the group that shows most of the change was kept.
  double changes = 0;
  /// Kept of all groups, in the turns that show a change and in those that show none.
  double share = 0;
  double share_without = 0;
};

/// Noise has a standard deviation of 2.9. Every second patch shows a change at a place of its own, in both
/// frames. `policy`: a name, or "chance", which keeps any four of the 64 groups.
Found recall(const std::string& policy, const Change& change, const Street& street, int turns) {
  const auto chosen = policy == "chance" ? nullptr : make_pruning(policy, {.anchor_seconds = 1e9});
  std::mt19937 random(11), dice(5);
  double seconds = 0;
  const auto kept_of = [&](const Canvas& a, const Canvas& b) {
    if (chosen) return choose(*chosen, seconds++, {&a, &b});
    base::GridMask kept = base::GridMask::none(8, 8);
    while (kept.count() < 4) kept.add(static_cast<std::int64_t>(dice() % 64));
    return kept;
  };
  const Canvas still = street.film({.noise = 0}, random);
  const auto film = [&] {
    Canvas noisy = still;
    noisy.noise(5, random);
    return noisy;
  };
  kept_of(film(), film());
  Found found;
  for (int turn = 0; turn < turns; ++turn) {
    found.share_without += static_cast<double>(kept_of(film(), film()).count()) / (64.0 * turns);
    const int left = static_cast<int>(random() % static_cast<unsigned>(224 - change.wide));
    const int top = static_cast<int>(random() % static_cast<unsigned>(224 - change.high));
    const int sign = turn % 2 == 0 ? 1 : -1;
    Canvas a = film(), b = film();
    draw(change, left, top, sign, a);
    draw(change, left, top, sign, b);
    const base::GridMask kept = kept_of(a, b);
    std::map<int, int> pixels;
    for (int y = top; y < top + change.high; ++y)
      for (int x = left; x < left + change.wide; ++x) ++pixels[y / 28 * 8 + x / 28];
    const auto most = std::max_element(pixels.begin(), pixels.end(),
                                       [](const auto& p, const auto& q) { return p.second < q.second; });
    if (kept.has(most->first)) found.changes += 1.0 / turns;
    found.share += static_cast<double>(kept.count()) / (64.0 * turns);
  }
  return found;
}

// The figures are in docs/experiments/2026-11-25-default-pruning.md; --gtest_output=json:FILE writes them.
TEST(SceneRecallTest, FaintAndSmallChangesAreKeptFarMoreOftenThanByChance) {
  constexpr int kTurns = 60;
  const std::map<std::string, Street> streets = {{"plain", Street(1, 8, 0)}, {"boxes", Street(1)}};
  for (const Change& change : {Change{12, 14, 28}, {20, 14, 28}, {40, 14, 28}, {12, 28, 56}, {20, 14, 14}})
    for (const auto& [name, street] : streets) {
      std::map<std::string, Found> found;
      for (const char* policy : {"changes", "reference", "chance"}) {
        found[policy] = recall(policy, change, street, kTurns);
        const std::string of = std::string(policy) + "_" + name + "_" + std::to_string(change.contrast) +
                               "_" + std::to_string(change.wide) + "x" + std::to_string(change.high);
        RecordProperty(of, std::to_string(found[policy].changes) + " of changes, share " +
                               std::to_string(found[policy].share) + ", without " +
                               std::to_string(found[policy].share_without));
      }
      const Found& scene = found["changes"];
      const std::string what = name + ", " + std::to_string(change.contrast) + " levels";
      EXPECT_GE(scene.changes, 0.9) << what;
      EXPECT_LT(scene.share, 0.07) << what;
      EXPECT_LT(found["chance"].changes, 0.2) << what;
    }
}

}  // namespace
}  // namespace vigil::prune
