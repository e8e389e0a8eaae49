#include "engine/speculate/draft_planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/speculate/acceptance.h"

namespace vigil::speculate {
namespace {

using ::testing::IsEmpty;

/// Seconds of a 7B target and a small drafter: 16 rows cost 1.1 times one row's.
constexpr StepGuess kTarget{3.8e-3, 2.6e-5, 1e-8};
constexpr StepGuess kDrafter{0.5e-3, 1e-6, 1e-9};

double expected_tokens(double acceptance, std::size_t length) {
  double tokens = 1, value = 1;
  for (std::size_t j = 0; j < length; ++j) tokens += value *= acceptance;
  return tokens;
}

/// What a plan is expected to bring, added up place by place.
double rate_of(const std::vector<Draftable>& sequences, const std::vector<std::size_t>& lengths,
               const StepTimes& target, const StepTimes& drafter, const PlanSettings& settings) {
  const std::size_t count = sequences.size();
  std::size_t rows = count, context = 0, draft_context = 0;
  double tokens = 0, drafting = 0;
  for (std::size_t i = 0; i < count; ++i) {
    rows += lengths[i];
    context += sequences[i].context;
    draft_context += sequences[i].draft_context;
    tokens += expected_tokens(sequences[i].acceptance, lengths[i]);
    if (lengths[i] > 0 && sequences[i].behind > 1) {
      drafting +=
          drafter.expected({sequences[i].behind, 1, sequences[i].draft_context}) / settings.wake_passes;
    }
  }
  for (std::size_t place = 1; place <= 15; ++place) {
    const auto with = static_cast<std::size_t>(std::count_if(
        lengths.begin(), lengths.end(), [place](std::size_t length) { return length >= place; }));
    if (with > 0) drafting += drafter.expected({with, with, draft_context * with / count});
  }
  const double pass = target.expected({rows, count, context});
  return tokens / (settings.is_beside ? std::max(pass, drafting) : pass + drafting);
}

std::vector<Draftable> sequences_of(std::size_t count, double acceptance, std::size_t context = 2000) {
  return std::vector<Draftable>(count, Draftable{acceptance, context, context / 10, 0, 15});
}

TEST(DraftPlanner, IsAsGoodAsTheBestOfAllPlans) {
  std::mt19937 random(3);
  const auto uniform = [&random] { return static_cast<double>(random() % 10000) / 10000; };
  int drafting = 0, resting = 0, uneven = 0;
  double share = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t count = 1 + random() % 4;
    const StepTimes target({1e-3 + 4e-3 * uniform(), uniform() < 0.5 ? 3e-5 : 1.5e-3 * uniform(), 1e-8});
    const StepTimes drafter({2e-3 * uniform() * uniform() + 1e-5, 1e-4 * uniform(), 1e-8});
    PlanSettings settings;
    settings.margin = 1;
    settings.is_beside = round % 2 == 0;
    std::vector<Draftable> sequences;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t most = count > 2 ? 4 + random() % 2 : random() % 16;
      const std::size_t behind = random() % 3 == 0 ? random() % 4000 : 0;
      sequences.push_back({uniform(), 2000 + random() % 8000, random() % 1000, behind, most});
    }
    std::vector<std::size_t> lengths(count, 0);
    double best = 0;
    for (bool more = true; more;) {
      const double here = rate_of(sequences, lengths, target, drafter, settings);
      best = std::max(best, here);
      std::size_t i = 0;
      for (; i < count && lengths[i] == sequences[i].most; ++i) lengths[i] = 0;
      more = i < count;
      if (more) ++lengths[i];
    }
    const DraftPlan plan = plan_drafts(sequences, target, drafter, settings);
    const double rate = rate_of(sequences, plan.lengths, target, drafter, settings);
    ASSERT_NEAR(plan.tokens_per_second / rate, 1, 1e-9);
    // Whom to wake is tried in one order alone.
    const bool wakes =
        std::any_of(sequences.begin(), sequences.end(), [](const auto& one) { return one.behind > 1; });
    EXPECT_GT(rate, (wakes ? 0.95 : 0.995) * best) << round << ' ' << count;
    share += rate / best / 400;
    EXPECT_GE(plan.tokens_per_second, plan.plain_tokens_per_second);
    for (std::size_t i = 0; i < count; ++i) EXPECT_LE(plan.lengths[i], sequences[i].most);
    const auto [least, most] = std::minmax_element(plan.lengths.begin(), plan.lengths.end());
    drafting += *most > 0 ? 1 : 0;
    resting += *most == 0 ? 1 : 0;
    uneven += *least < *most ? 1 : 0;
  }
  EXPECT_GT(share, 0.998);
  EXPECT_GT(drafting, 100);
  EXPECT_GT(resting, 20);
  EXPECT_GT(uneven, 50);
}

TEST(DraftPlanner, IsNeverExpectedToBeSlowerThanPlainDecoding) {
  for (const std::size_t count : {1U, 2U, 7U, 16U, 32U, 64U})
    for (const double acceptance : {0.0, 0.1, 0.3, 0.6, 0.92, 1.0})
      for (const double row : {2.6e-5, 3e-4, 4e-3})
        for (const double step : {2e-4, 2e-3, 2e-2})
          for (const std::size_t context : {2000U, 10000U}) {
            const StepTimes target({3.8e-3, row, 1e-8}), drafter({step, 1e-6, 1e-9});
            const auto sequences = sequences_of(count, acceptance, context);
            const DraftPlan plan = plan_drafts(sequences, target, drafter, {});
            const std::vector<std::size_t> none(count, 0);
            const double plain = rate_of(sequences, none, target, drafter, {});
            EXPECT_NEAR(plan.plain_tokens_per_second / plain, 1, 1e-9);
            const double rate = rate_of(sequences, plan.lengths, target, drafter, {});
            EXPECT_GE(rate, plain * (plan.lengths == none ? 1 - 1e-9 : PlanSettings{}.margin));
            // Nor slower than if all drafted alike.
            for (std::size_t length = 1; length <= 15; ++length) {
              const std::vector<std::size_t> alike(count, length);
              EXPECT_GT(rate, 0.98 * rate_of(sequences, alike, target, drafter, {}))
                  << count << ' ' << length;
            }
            // A drafter as slow as five passes is of no use, nor drafts that are never right.
            if (acceptance == 0 || step == 2e-2) {
              EXPECT_EQ(plan.lengths, none);
            }
          }
  const DraftPlan one = plan_drafts(sequences_of(1, 0.92), StepTimes(kTarget), StepTimes(kDrafter), {});
  EXPECT_GE(one.lengths.at(0), 5U);
  EXPECT_GT(one.tokens_per_second, 2 * one.plain_tokens_per_second);
}

TEST(DraftPlanner, GivesRowsToThoseWhoseDraftsAreAccepted) {
  std::vector<Draftable> sequences = sequences_of(4, 0.9);
  sequences[1].acceptance = 0.3;
  sequences[2].most = 2;
  const StepTimes target({3.8e-3, 3e-4, 0}), drafter({2e-4, 1e-6, 0});
  const DraftPlan plan = plan_drafts(sequences, target, drafter, {});
  EXPECT_EQ(plan.lengths[0], plan.lengths[3]);
  EXPECT_GT(plan.lengths[0], plan.lengths[1] + 2);
  EXPECT_EQ(plan.lengths[2], 2U);
}

TEST(DraftPlanner, WakesADrafterOnlyForWhatItCosts) {
  const StepTimes target(kTarget), drafter({0.5e-3, 2e-5, 0});
  std::vector<Draftable> sequences = sequences_of(2, 0.6);
  sequences[0].behind = 1;
  EXPECT_GT(plan_drafts(sequences, target, drafter, {}).lengths[0], 0U);
  sequences[0].behind = 20000;
  const DraftPlan plan = plan_drafts(sequences, target, drafter, {});
  EXPECT_EQ(plan.lengths[0], 0U);
  EXPECT_GT(plan.lengths[1], 0U);  // the other one goes on
  PlanSettings patient;
  patient.wake_passes = 1e6;
  EXPECT_GT(plan_drafts(sequences, target, drafter, patient).lengths[0], 0U);
}

TEST(DraftPlanner, DecidesForManyWithFewOperations) {
  std::mt19937 random(4);
  std::vector<Draftable> sequences;
  for (std::size_t i = 0; i < 64; ++i) {
    sequences.push_back(
        {0.1 + 0.013 * static_cast<double>(random() % 64), 10000, 1000, i % 3 == 0 ? 500 : 0U, 15});
  }
  const DraftPlan plan = plan_drafts(sequences, StepTimes(kTarget), StepTimes(kDrafter), {});
  EXPECT_GT(std::accumulate(plan.lengths.begin(), plan.lengths.end(), std::size_t{0}), 64U);
  EXPECT_GT(plan.operations, 1000U);
  // A few nanoseconds each are well under a hundredth of a step.
  EXPECT_LT(plan.operations, 7000U);
}

TEST(DraftPlanner, RefusesWhatIsNoAcceptance) {
  const StepTimes times(kTarget);
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROW(plan_drafts(sequences_of(1, bad), times, times, {}), std::invalid_argument);
    EXPECT_THROW(Acceptance(bad, 1), std::invalid_argument);
  }
  EXPECT_THROW(Acceptance(0.5, 0), std::invalid_argument);
  EXPECT_THAT(plan_drafts({}, times, times, {}).lengths, IsEmpty());
  for (const StepGuess& bad : {StepGuess{0, 0, 0}, StepGuess{1, -1, 0}, StepGuess{1, 0, std::nan("")}}) {
    EXPECT_THROW(StepTimes{bad}, std::invalid_argument);
  }
}

// --- What is believed, and what is so
// -----------------------------------------------------------------------------

/// Passes that are planned from what was measured, of a target, a drafter and drafts as they really are.
struct Loop {
  StepTimes target{kTarget}, drafter{kDrafter};
  std::vector<Acceptance> acceptances;
  std::vector<std::size_t> behind;
  StepGuess true_target = kTarget, true_drafter = kDrafter;
  double true_acceptance = 0.8;
  std::mt19937 random{5};
  std::size_t decisions = 0;
  std::size_t drafted = 0;

  Loop(std::size_t count, double prior) : acceptances(count, Acceptance(prior)), behind(count, 0) {}

  static double seconds(const StepGuess& of, const StepShape& shape) { return StepTimes(of).expected(shape); }

  std::vector<Draftable> now() const {
    auto sequences = sequences_of(acceptances.size(), 0);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].acceptance = acceptances[i].rate();
      sequences[i].behind = behind[i];
    }
    return sequences;
  }

  /// Tokens a second over so many passes. One measurement in 20 is a hiccup, ten times as long.
  double run(int passes) {
    double time = 0, tokens = 0;
    const auto measured = [&](StepTimes& times, const StepGuess& of, const StepShape& shape) {
      const double took = seconds(of, shape) * (0.95 + 0.1 * static_cast<double>(random() % 100) / 100);
      time += took;
      times.measured(shape, random() % 20 == 0 ? 10 * took : took);
    };
    for (int pass = 0; pass < passes; ++pass) {
      const auto sequences = now();
      const DraftPlan plan = plan_drafts(sequences, target, drafter, {});
      const std::size_t count = sequences.size();
      std::size_t rows = count;
      for (std::size_t place = 1; place <= 15; ++place) {
        const auto with =
            static_cast<std::size_t>(std::count_if(plan.lengths.begin(), plan.lengths.end(),
                                                   [place](std::size_t length) { return length >= place; }));
        if (with > 0) measured(drafter, true_drafter, {with, with, 200 * with});
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t length = plan.lengths[i];
        rows += length;
        drafted += length;
        std::size_t accepted = 0;
        while (accepted < length && static_cast<double>(random() % 10000) < 10000 * true_acceptance)
          ++accepted;
        tokens += static_cast<double>(accepted + 1);
        if (length > 0) {
          if (behind[i] > 1) time += seconds(true_drafter, {behind[i], 1, 200});
          acceptances[i].judged(length, accepted);
          behind[i] = 0;
        } else {
          acceptances[i].rested(1);
          ++behind[i];
        }
      }
      measured(target, true_target, {rows, count, 2000 * count});
      if (++decisions % 64 != 0) continue;
      target.fade(64);
      drafter.fade(64);
    }
    return tokens / time;
  }

  /// Expected of the best plan by who knows all.
  double best() const {
    auto sequences = sequences_of(acceptances.size(), true_acceptance);
    return plan_drafts(sequences, StepTimes(true_target), StepTimes(true_drafter), {}).tokens_per_second;
  }
  double plain() const {
    return static_cast<double>(behind.size()) /
           seconds(true_target, {behind.size(), behind.size(), 2000 * behind.size()});
  }
};

TEST(DraftPlanner, FindsItsWayFromWrongBeliefs) {
  for (const std::size_t count : {1U, 8U})
    for (const double acceptance : {0.1, 0.5, 0.92})
      for (const double prior : {0.2, 0.9})
        for (const double slower : {0.25, 1.0, 4.0}) {
          Loop loop(count, prior);
          loop.true_acceptance = acceptance;
          loop.true_drafter.step *= slower;
          loop.true_target.row *= 2;
          loop.run(3000);
          const double rate = loop.run(3000);
          EXPECT_GT(rate, 0.93 * loop.best()) << count << ' ' << acceptance << ' ' << prior << ' ' << slower;
          // What trying costs.
          EXPECT_GT(rate, 0.97 * loop.plain()) << count << ' ' << acceptance << ' ' << prior << ' ' << slower;
        }
}

TEST(DraftPlanner, ComesBackWhenDraftsOrTheDrafterDo) {
  Loop loop(4, 0.8);
  loop.true_acceptance = 0.9;
  loop.run(500);
  loop.true_acceptance = 0.05;
  loop.run(500);
  const std::size_t before = loop.drafted;
  loop.run(300);
  EXPECT_LT(loop.drafted - before, 4 * 300 / 4);  // it rests, mostly
  loop.true_acceptance = 0.9;
  loop.run(1500);
  EXPECT_GT(loop.run(1000), 0.93 * loop.best());
  // Somebody else had its device for a while.
  loop.true_drafter.step *= 40;
  loop.run(300);
  loop.true_drafter = kDrafter;
  loop.run(3000);
  EXPECT_GT(loop.run(1000), 0.93 * loop.best());
}

TEST(StepTimes, FollowsWhatWasMeasuredAndNoHiccup) {
  std::mt19937 random(6);
  StepTimes times(kTarget);
  const auto truth = [](const StepShape& shape) {
    // Steps by rows, as tiles of a product have them.
    return 2e-3 + 4e-4 * static_cast<double>((shape.rows + 15) / 16) +
           4e-8 * static_cast<double>(shape.context);
  };
  const auto expect_near = [&](double within) {
    for (const std::size_t rows : {1U, 4U, 16U, 64U}) {
      const StepShape shape{rows, 4, 20000};
      EXPECT_NEAR(times.expected(shape) / truth(shape), 1, within) << rows;
    }
  };
  for (int i = 0; i < 2000; ++i) {
    const StepShape shape{1U << (2 * (random() % 4)), 4, 20000};
    const double noise = 0.98 + 0.04 * static_cast<double>(random() % 100) / 100;
    times.measured(shape, (random() % 10 == 0 ? 50 : noise) * truth(shape));
  }
  expect_near(0.05);
  // One hiccup after quiet hours is no news.
  const StepShape shape{16, 4, 20000};
  const double before = times.expected(shape);
  times.measured(shape, 1000 * before);
  EXPECT_NEAR(times.expected(shape) / before, 1, 0.02);
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) times.measured(shape, bad);
  EXPECT_NEAR(times.expected(shape) / before, 1, 0.1);
}

TEST(StepTimes, FollowsWhenAllHasBecomeSlower) {
  StepTimes times(kTarget);
  const StepShape shape{8, 1, 10000};
  for (int i = 0; i < 300; ++i) times.measured(shape, 4e-3);
  EXPECT_NEAR(times.expected(shape), 4e-3, 1e-4);
  int taken = 0;
  while (times.expected(shape) < 0.9 * 12e-3 && taken < 1000) {
    times.measured(shape, 12e-3);
    ++taken;
  }
  EXPECT_LT(taken, 60);
  EXPECT_GT(taken, 3);
  // What was learned there says something of its like, and that fades.
  EXPECT_GT(times.expected({1, 64, 200000}), 1.3 * StepTimes(kTarget).expected({1, 64, 200000}));
  times.fade(1e5);
  EXPECT_NEAR(times.expected(shape), StepTimes(kTarget).expected(shape), 1e-6);
}

TEST(StepTimes, ByRowsSaysTheSame) {
  StepTimes times(kTarget);
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i)
    times.measured({1 + random() % 3000, 3, 9000}, 1e-3 * static_cast<double>(1 + random() % 9));
  const StepTimes::ByRows by_rows = times.by_rows(3, 9000);
  for (const std::size_t rows : {0U, 1U, 2U, 3U, 17U, 1000U, 2048U, 5000U}) {
    EXPECT_NEAR(by_rows.at(rows) / times.expected({rows, 3, 9000}), 1, 1e-9) << rows;
  }
}

TEST(Acceptance, IsThatOfTheDraftsThatWereJudged) {
  std::mt19937 random(8);
  for (const double a : {0.1, 0.5, 0.92}) {
    Acceptance acceptance(0.3, 4);
    EXPECT_NEAR(acceptance.rate(), 0.3, 0.12);
    double sum = 0;
    for (int round = 0; round < 5000; ++round) {
      std::size_t accepted = 0;
      while (accepted < 8 && static_cast<double>(random() % 10000) < 10000 * a) ++accepted;
      acceptance.judged(8, accepted);
      if (round >= 1000) sum += acceptance.rate();
    }
    // Not the share of all drafts, most of which were behind a rejected one.
    EXPECT_NEAR(sum / 4000, a, 0.03);
    // What nobody has tried for long may be anything.
    double before = 0.3;
    for (int i = 0; i < 8; ++i) {
      acceptance.rested(512);
      EXPECT_TRUE(i < 4 || i > 5 || acceptance.rate() > before) << i;
      before = acceptance.rate();
    }
    EXPECT_NEAR(before, 0.95, 0.01);
    acceptance.judged(4, 0);
    EXPECT_LT(acceptance.rate(), 0.45);
  }
  Acceptance none;
  const double at_first = none.rate();
  none.judged(0, 0);
  EXPECT_EQ(none.rate(), at_first);
  none.judged(2, 9);
  EXPECT_LE(none.rate(), 1);
}

}  // namespace
}  // namespace vigil::speculate
