#include "engine/speculate/rounds.h"

#include <array>
#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/speculate/rounds_world.h"

namespace vigil::speculate {
namespace {

using testing::DrafterSide;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::judged;
using testing::truth;
using Tokens = std::vector<std::int32_t>;

constexpr std::array kMethods = {Method::serial, Method::pearl, Method::hippo, Method::automatic};

TEST(Rounds, SerialWaitsForItsDraftsAndTheDrafterForThePass) {
  Rounds rounds(Method::serial, {2, 0});
  EXPECT_THAT(rounds.start(), IsEmpty());
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{2, 0, {}, Mode::question}));
  EXPECT_THAT(rounds.verified(2, Tokens{7}), ElementsAre(Cut{3, 0, {7}}, DraftOn{3, 3}));
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  EXPECT_THAT(rounds.drafted(3, Tokens{8}), IsEmpty());
  EXPECT_THAT(rounds.drafted(3, Tokens{9}), ElementsAre(VerifyDrafts{4, 1, {8, 9}, Mode::optimistic}));
  EXPECT_THAT(rounds.verified(2, Tokens{7}), IsEmpty());  // the question's pass once more
  EXPECT_EQ(rounds.said(), 1U);
  // The second one was wrong.
  EXPECT_THAT(rounds.verified(4, Tokens{8, 1}), ElementsAre(Cut{5, 2, {1}}, DraftOn{5, 5}));
  EXPECT_EQ(rounds.said(), 3U);
}

TEST(Rounds, PearlVerifiesTheFirstDraftWhileTheRestIsDrafted) {
  Rounds rounds(Method::pearl, {3, 0});
  EXPECT_THAT(rounds.start(), ElementsAre(DraftOn{1, 3}));
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{2, 0, {}, Mode::question}));
  EXPECT_THAT(rounds.drafted(1, Tokens{5}), IsEmpty());
  // The first draft was right: the rest of the batch is waited for, and the next one drafted beside its pass.
  EXPECT_THAT(rounds.verified(2, Tokens{5}), IsEmpty());
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  EXPECT_THAT(rounds.drafted(1, Tokens{6, 7}),
              ElementsAre(VerifyDrafts{3, 1, {6, 7}, Mode::optimistic}, DraftOn{1, 6}));
  EXPECT_EQ(rounds.draft_behind_pass(), std::nullopt);
  EXPECT_THAT(rounds.drafted(1, Tokens{8, 9}), IsEmpty());
  EXPECT_EQ(rounds.draft_behind_pass(), 8);
  // All right, and what follows them is what was drafted by then.
  EXPECT_THAT(rounds.verified(3, Tokens{6, 7, 8}), IsEmpty());
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  EXPECT_THAT(rounds.drafted(1, Tokens{4}),
              ElementsAre(VerifyDrafts{4, 4, {9, 4}, Mode::optimistic}, DraftOn{1, 9}));
  // Rejected: the target goes on alone, at once, while the drafter begins anew.
  EXPECT_THAT(rounds.verified(4, Tokens{1}), ElementsAre(Cut{5, 4, {1}}, DraftOn{5, 8}));
  EXPECT_THAT(rounds.drafted(1, Tokens{3}), IsEmpty());  // late, of what was cut
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{6, 5, {}, Mode::conservative}));
  // The target is quicker than one draft: whether that was right shows when it comes.
  EXPECT_THAT(rounds.verified(6, Tokens{2}), IsEmpty());
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  EXPECT_THAT(rounds.drafted(5, Tokens{3}),
              ElementsAre(Cut{7, 5, {2}}, VerifyDrafts{8, 6, {}, Mode::conservative}, DraftOn{7, 9}));
}

TEST(Rounds, PearlVerifiesNoDraftAfterARejectionHoweverLateThePassBegins) {
  Rounds rounds(Method::pearl, {3, 0});
  rounds.start();
  rounds.target_ready();
  rounds.drafted(1, Tokens{5});
  EXPECT_THAT(rounds.verified(2, Tokens{6}), ElementsAre(Cut{3, 0, {6}}, DraftOn{3, 4}));
  rounds.drafted(3, Tokens{7, 8});
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{4, 1, {}, Mode::conservative}));
}

TEST(Rounds, HippoPilesUpDraftsUntilTheTargetHasTheQuestion) {
  Rounds rounds(Method::hippo, {3, 0}, {4, 10});
  EXPECT_THAT(rounds.start(), ElementsAre(DraftOn{1, 10}));
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{2, 0, {}, Mode::question}));
  EXPECT_THAT(rounds.drafted(1, Tokens{1, 2, 3, 4, 5, 6, 7}), IsEmpty());
  EXPECT_THAT(rounds.verified(2, Tokens{1}), ElementsAre(DraftOn{1, 7}));  // enough
  // As many as fit into a pass; what is left is of the next batch.
  EXPECT_THAT(rounds.target_ready(),
              ElementsAre(VerifyDrafts{3, 1, {2, 3, 4, 5}, Mode::optimistic}, DraftOn{1, 8}));
  EXPECT_THAT(rounds.verified(3, Tokens{2, 9}), ElementsAre(Cut{4, 2, {9}}, DraftOn{4, 6}));
}

TEST(Rounds, AutomaticVerifiesWhatIsThereWithTheQuestionToo) {
  Rounds rounds(Method::automatic, {3, 1});
  EXPECT_THAT(rounds.start(), ElementsAre(DraftOn{1, 18}));
  EXPECT_THAT(rounds.drafted(1, Tokens{1, 2}), IsEmpty());
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{2, 0, {1, 2}, Mode::question}));
  EXPECT_THAT(rounds.verified(2, Tokens{1, 2, 3}), ElementsAre(DraftOn{1, 6}));
  // It waits for one draft, and what is behind the token that it does not know yet is not one.
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  EXPECT_THAT(rounds.drafted(1, Tokens{3}), IsEmpty());
  EXPECT_THAT(rounds.drafted(1, Tokens{4}),
              ElementsAre(VerifyDrafts{3, 3, {4}, Mode::optimistic}, DraftOn{1, 7}));
  // Others' pass began without it, and drafts pile up.
  EXPECT_THAT(rounds.verified(3, Tokens{4, 5}), ElementsAre(DraftOn{1, 8}));
  EXPECT_THAT(rounds.target_ready(), IsEmpty());
  rounds.target_busy();
  EXPECT_THAT(rounds.drafted(1, Tokens{5, 6, 7}), IsEmpty());
  EXPECT_THAT(rounds.target_ready(),
              ElementsAre(VerifyDrafts{4, 5, {6, 7}, Mode::optimistic}, DraftOn{1, 10}));
}

TEST(Rounds, ADrafterThatRestedIsToldWhatItMissed) {
  for (const Method method : kMethods) {
    Rounds rounds(method, {0, 0});
    EXPECT_THAT(rounds.start(), IsEmpty());
    for (std::size_t i = 0; i < 3; ++i) {
      const Actions actions = rounds.target_ready();
      ASSERT_THAT(actions,
                  ElementsAre(VerifyDrafts{i + 2, i, {}, i == 0 ? Mode::question : Mode::conservative}));
      EXPECT_THAT(rounds.verified(i + 2, Tokens{truth(i)}), IsEmpty());
    }
    EXPECT_EQ(rounds.behind(), 3U);
    const Actions woken = rounds.set_plan({2, 0});
    ASSERT_THAT(woken, ElementsAre(Cut{5, 0, {truth(0), truth(1), truth(2)}}, DraftOn{5, 5}));
    EXPECT_EQ(rounds.behind(), 0U);
    EXPECT_THAT(rounds.set_plan({0, 0}), ElementsAre(DraftOn{5, 3}));
  }
}

TEST(Rounds, ADrafterThatIsSlowerThanTheTargetIsToldWhatWasSaid) {
  Rounds rounds(Method::automatic, {3, 0}, {4, 10});
  EXPECT_THAT(rounds.start(), ElementsAre(DraftOn{1, 7}));
  rounds.target_ready();
  EXPECT_THAT(rounds.verified(2, Tokens{5}), ElementsAre(DraftOn{1, 4}));
  EXPECT_THAT(rounds.target_ready(), ElementsAre(VerifyDrafts{3, 1, {}, Mode::conservative}));
  EXPECT_THAT(rounds.verified(3, Tokens{6}), ElementsAre(DraftOn{1, 5}));
  EXPECT_EQ(rounds.behind(), 2U);
  // Its first draft was right, and the second one is known by now.
  EXPECT_THAT(rounds.drafted(1, Tokens{5}), ElementsAre(Cut{4, 1, {6}}, DraftOn{4, 5}));
}

TEST(Rounds, RefusesWhatNobodyAskedFor) {
  Rounds rounds(Method::pearl, {2, 0});
  rounds.start();
  rounds.target_ready();
  EXPECT_THROW(rounds.drafted(1, Tokens{1, 2, 3}), std::invalid_argument);
  EXPECT_THROW(rounds.verified(2, Tokens{}), std::invalid_argument);
  EXPECT_THROW(rounds.verified(2, Tokens{1, 2}), std::invalid_argument);
  EXPECT_THAT(rounds.start(), IsEmpty());
  EXPECT_THAT(rounds.verified(9, Tokens{1}), IsEmpty());
  EXPECT_EQ(rounds.said(), 0U);
}

// --- In virtual time
// --------------------------------------------------------------------------------------------

struct Times {
  double draft = 1;
  double pass = 5;
  double question = 40;
};

struct Told {
  std::map<Mode, double> passes, tokens;
  double time = 0, all = 0;

  double share(Mode mode) { return passes[mode] / (passes[Mode::conservative] + passes[Mode::optimistic]); }
  double brings(Mode mode) { return tokens[mode] / passes[mode]; }
  double a_pass() {
    return (tokens[Mode::conservative] + tokens[Mode::optimistic]) /
           (passes[Mode::conservative] + passes[Mode::optimistic]);
  }
  double a_time() const { return all / time; }
};

/// `a`: how many drafts are right, each by itself. A step of the drafter that is cut begins anew at once.
Told simulate(Method method, RoundPlan plan, double a, const Times& times, double until = 200000) {
  Rounds rounds(method, plan);
  DrafterSide drafter;
  std::mt19937 random(7);
  const auto is_right = [&](std::size_t) { return static_cast<double>(random()) < a * 0x1p32; };
  Told told;
  std::optional<VerifyDrafts> pass;
  double pass_ends = 0, draft_ends = 0;
  bool drafts = false;
  const auto apply = [&](const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* cut = std::get_if<Cut>(&action)) {
        drafter.hear(*cut);
        drafts = false;
      } else if (const auto* on = std::get_if<DraftOn>(&action)) {
        drafter.hear(*on);
      } else {
        pass = std::get<VerifyDrafts>(action);
        EXPECT_EQ(static_cast<double>(pass->at), told.all);
        EXPECT_LE(pass->drafts.size(), 15U);
        pass_ends = told.time + (pass->mode == Mode::question ? times.question : times.pass);
      }
    }
    if (drafter.works() && !drafts) draft_ends = told.time + times.draft;
    drafts = drafter.works();
  };
  apply(rounds.start());
  apply(rounds.target_ready());
  while (told.all < until) {
    if (!pass && !drafts) {
      ADD_FAILURE() << "nobody works";
      break;
    }
    if (drafts && (!pass || draft_ends <= pass_ends)) {
      told.time = draft_ends;
      const std::size_t at = drafter.has.size();
      drafter.has.push_back(is_right(at) ? truth(at) : truth(at) + 5);
      drafts = false;
      apply(rounds.drafted(drafter.round, Tokens{drafter.has.back()}));
    } else {
      told.time = pass_ends;
      const Tokens tokens = judged(*pass);
      const VerifyDrafts done = *pass;
      pass.reset();
      told.passes[done.mode] += 1;
      told.tokens[done.mode] += static_cast<double>(tokens.size());
      told.all += static_cast<double>(tokens.size());
      apply(rounds.verified(done.round, tokens));
      EXPECT_EQ(static_cast<double>(rounds.said()), told.all);
      apply(rounds.target_ready());
    }
  }
  return told;
}

double geometric(double a, std::size_t terms) {
  return (1 - std::pow(a, static_cast<double>(terms))) / (1 - a);
}

TEST(RoundsInTime, SerialBringsWhatIndependentDraftsBring) {
  for (const std::size_t gamma : {1U, 4U, 8U, 15U})
    for (const double a : {0.1, 0.5, 0.92}) {
      Told told = simulate(Method::serial, {gamma, 0}, a, {});
      EXPECT_NEAR(told.a_pass() / geometric(a, gamma + 1), 1, 0.01) << gamma << ' ' << a;
      // They wait for each other.
      const double passes = told.passes[Mode::optimistic];
      EXPECT_NEAR(told.time, 40 + passes * (5 + static_cast<double>(gamma)), 20);
    }
}

// A conservative pass brings one token, and is followed by an optimistic one if that was the first draft (a).
// An optimistic one has the other gamma - 1 drafts of its batch, and its last row judges the first of the
// next batch: one token at least, gamma if all are right (a^gamma), and then an optimistic one follows again.
TEST(RoundsInTime, PearlAndHippoAreOptimisticAsOftenAsTheirChainSays) {
  for (const Method method : {Method::pearl, Method::hippo})
    for (const std::size_t gamma : {1U, 2U, 5U, 15U})
      for (const double a : {0.1, 0.5, 0.92})
        for (const double pass : {0.5, 5.0, 9.0}) {
          Told told = simulate(method, {gamma, 0}, a, {1, pass, 40});
          const double s = a / (1 + a - std::pow(a, static_cast<double>(gamma)));
          EXPECT_NEAR(told.share(Mode::optimistic) / s, 1, 0.015) << gamma << ' ' << a;
          EXPECT_EQ(told.brings(Mode::conservative), 1);
          EXPECT_NEAR(told.brings(Mode::optimistic) / geometric(a, gamma), 1, 0.015) << gamma << ' ' << a;
          EXPECT_NEAR(told.a_pass() / (1 - s + s * geometric(a, gamma)), 1, 0.01) << gamma << ' ' << a;
        }
}

TEST(RoundsInTime, WithGammaOfTheStepTimesNobodyWaits) {
  for (const Method method : {Method::pearl, Method::hippo})
    for (const double a : {0.1, 0.5, 0.92}) {
      Told told = simulate(method, {5, 0}, a, {});
      const double passes = told.passes[Mode::conservative] + told.passes[Mode::optimistic];
      EXPECT_NEAR(told.time / (40 + passes * 5), 1, 0.001);
    }
}

TEST(RoundsInTime, HippoHasItsFirstBatchWhenTheTargetHasTheQuestion) {
  // All are right: 40 drafts by then, of which the first is the question's token; then 16, 16, 8, 5 and 5.
  const Told pearl = simulate(Method::pearl, {5, 0}, 1, {}, 50),
             hippo = simulate(Method::hippo, {5, 0}, 1, {}, 50);
  EXPECT_EQ(hippo.time, 40 + 5 * 5);
  EXPECT_EQ(pearl.time, 40 + 10 * 5);
}

TEST(RoundsInTime, AutomaticIsQuickest) {
  const Times times;
  const auto automatic = [&](double a, std::size_t least) {
    return simulate(Method::automatic, {15, least}, a, times).a_time();
  };
  for (const double a : {0.1, 0.3, 0.6, 0.8, 0.92}) {
    // Where hardly a draft is right it does not pay to wait for one.
    const double rate = automatic(a, a < 0.3 ? 0 : 1);
    EXPECT_GT(rate, automatic(a, 4)) << a;
    for (const Method method : {Method::serial, Method::pearl, Method::hippo}) {
      EXPECT_GT(rate, simulate(method, {5, 0}, a, times).a_time()) << a;
    }
    EXPECT_GT(rate, 1 / times.pass) << a;
  }
}

// --- Every interleaving
// -------------------------------------------------------------------------------------------

enum class Trouble { none, lost, rest };

struct World {
  Rounds rounds;
  DrafterSide drafter;
  std::deque<Action> to_drafter;
  std::deque<std::pair<std::uint64_t, std::int32_t>> from_drafter;
  std::optional<VerifyDrafts> pass;
  bool is_ready = false;
  int trouble_left = 0;
  std::uint64_t stale_round = 0;
};

class Interleavings {
 public:
  Interleavings(std::size_t length, std::uint32_t right, Trouble trouble)
      : length_(length), right_(right), trouble_(trouble) {}

  std::size_t explore(Method method, std::size_t gamma) {
    gamma_ = gamma;
    World world{Rounds(method, {gamma, gamma / 2}, {3, 4}), {}, {}, {}, {}, false, 0, 0};
    world.trouble_left = trouble_ == Trouble::none ? 0 : trouble_ == Trouble::lost ? 1 : 2;
    apply(world, world.rounds.start());
    visit(std::move(world));
    return ends_;
  }

 private:
  void apply(World& world, const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* pass = std::get_if<VerifyDrafts>(&action)) {
        ASSERT_FALSE(world.pass) << "two passes at once";
        ASSERT_EQ(pass->at, world.rounds.said());
        world.pass = *pass;
        world.is_ready = false;
      } else {
        world.to_drafter.push_back(action);
      }
    }
  }

  void visit(World world) {
    if (::testing::Test::HasFatalFailure()) return;
    if (world.rounds.said() >= length_) {
      ++ends_;
      world.rounds.end();
      ASSERT_THAT(world.rounds.target_ready(), IsEmpty());
      if (world.pass) {
        ASSERT_THAT(world.rounds.verified(world.pass->round, judged(*world.pass)), IsEmpty());
      }
      for (const auto& [round, token] : world.from_drafter)
        ASSERT_THAT(world.rounds.drafted(round, Tokens{token}), IsEmpty());
      return;
    }
    if (was_here(world)) return;
    bool any = false;
    const auto then = [&](const auto& change) {
      any = true;
      World next = world;
      change(next);
      visit(std::move(next));
    };
    if (!world.to_drafter.empty())
      then([](World& w) {
        if (const auto* cut = std::get_if<Cut>(&w.to_drafter.front())) {
          w.drafter.hear(*cut);
        } else {
          w.drafter.hear(std::get<DraftOn>(w.to_drafter.front()));
        }
        w.to_drafter.pop_front();
      });
    if (world.drafter.works() && !(trouble_ == Trouble::lost && world.trouble_left == 0))
      then([this](World& w) {
        const std::int32_t token =
            w.drafter.draft([this](std::size_t at) { return (right_ >> at & 1U) != 0; });
        w.from_drafter.emplace_back(w.drafter.round, token);
      });
    if (!world.from_drafter.empty())
      then([this](World& w) {
        const auto [round, token] = w.from_drafter.front();
        w.from_drafter.pop_front();
        apply(w, w.rounds.drafted(round, Tokens{token}));
      });
    if (world.pass)
      then([this](World& w) {
        const VerifyDrafts pass = *std::exchange(w.pass, std::nullopt);
        const Tokens tokens = judged(pass);
        const std::size_t before = w.rounds.said();
        apply(w, w.rounds.verified(pass.round, tokens));
        ASSERT_EQ(w.rounds.said(), before + tokens.size());
        // Told twice, it counts once.
        ASSERT_THAT(w.rounds.verified(pass.round, tokens), IsEmpty());
      });
    if (!world.pass && !world.is_ready)
      then([this](World& w) {
        w.is_ready = true;
        apply(w, w.rounds.target_ready());
      });
    if (world.trouble_left > 0)
      then([this](World& w) {
        --w.trouble_left;
        if (trouble_ == Trouble::lost) return apply(w, w.rounds.drafter_lost());
        apply(w, w.rounds.set_plan({w.trouble_left == 1 ? 0 : gamma_, 0}));
      });
    ASSERT_TRUE(any) << "nobody has anything to do, and the answer is not complete";
  }

  bool was_here(const World& world) {
    std::vector<std::uint64_t> key = {world.drafter.until,
                                      world.drafter.round,
                                      world.to_drafter.size(),
                                      world.from_drafter.size(),
                                      world.is_ready ? 1U : 0U,
                                      static_cast<std::uint64_t>(world.trouble_left),
                                      world.pass ? world.pass->round : 0};
    for (const Action& action : world.to_drafter) {
      if (const auto* cut = std::get_if<Cut>(&action)) key.insert(key.end(), {1, cut->round, cut->at});
      if (const auto* on = std::get_if<DraftOn>(&action)) key.insert(key.end(), {2, on->round, on->until});
    }
    for (const auto& one : world.from_drafter) {
      key.insert(key.end(), {one.first, static_cast<std::uint64_t>(one.second)});
    }
    for (const std::int32_t token : world.drafter.has) key.push_back(static_cast<std::uint64_t>(token));
    std::vector<Rounds>& with = seen_[key];
    for (const Rounds& rounds : with)
      if (rounds == world.rounds) return true;
    with.push_back(world.rounds);
    return false;
  }

  std::size_t length_;
  std::uint32_t right_;
  Trouble trouble_;
  std::size_t gamma_ = 0;
  std::size_t ends_ = 0;
  std::map<std::vector<std::uint64_t>, std::vector<Rounds>> seen_;
};

TEST(RoundsInterleaved, TheAnswerIsTheTargetsInWhateverOrderEventsCome) {
  constexpr std::size_t kLength = 4;
  for (const Method method : kMethods)
    for (const std::size_t gamma : {1U, 2U, 3U})
      for (const Trouble trouble : {Trouble::none, Trouble::lost, Trouble::rest})
        for (std::uint32_t right = 0; right < 1U << kLength; right += trouble == Trouble::none ? 1 : 3) {
          const std::size_t ends = Interleavings(kLength, right, trouble).explore(method, gamma);
          ASSERT_FALSE(HasFatalFailure())
              << static_cast<int>(method) << ' ' << gamma << ' ' << right << ' ' << static_cast<int>(trouble);
          ASSERT_GT(ends, 0U);
        }
}

}  // namespace
}  // namespace vigil::speculate
