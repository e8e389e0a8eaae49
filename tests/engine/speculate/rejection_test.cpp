// Rejection against exact enumeration.
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/speculate/rounds.h"
#include "engine/speculate/verify.h"
#include "tests/engine/speculate/support.h"

namespace vigil::speculate {
namespace {

using ::testing::ElementsAre;
using testing::Logits;
using testing::MadeUpTarget;
using testing::Rows;
using testing::rows_of;
using testing::Tokens;

constexpr int kAnswers = 100000;
constexpr std::size_t kLength = 3;

/// A target and a drafter that are like each other, and not the same; both conditional on all that was said.
struct Pair {
  MadeUpTarget target;
  MadeUpTarget drafter;
  model::Sampling sampling;
  Tokens prompt;

  Logits drafted_after(const Tokens& prefix) const {
    const Logits own = drafter.after(prefix);
    Logits logits = target.after(prefix);
    for (std::size_t id = 0; id < logits.size(); ++id) logits[id] = 0.6F * logits[id] + 0.4F * own[id];
    return logits;
  }
};

Pair made_up_pair(std::size_t vocabulary) {
  Pair pair;
  pair.target.vocabulary = pair.drafter.vocabulary = vocabulary;
  pair.target.seed = 3;
  pair.drafter.seed = 4;
  pair.sampling.temperature = 2;
  return pair;
}

/// The probability of every answer, from the target alone.
void enumerate(const Pair& pair, const model::Sampler& sampler, const Tokens& said, double probability,
               std::map<Tokens, double>& to) {
  if (said.size() == kLength) {
    to[said] += probability;
    return;
  }
  Tokens prefix = pair.prompt;
  prefix.insert(prefix.end(), said.begin(), said.end());
  for (const model::Likelihood& one : sampler.distribution(pair.target.after(prefix))) {
    model::Sampler then = sampler;
    then.follow(one.id);
    Tokens next = said;
    next.push_back(one.id);
    enumerate(pair, then, next, probability * one.probability, to);
  }
}

struct Told {
  std::map<Tokens, int> counts;
  int accepted = 0, judged = 0;
};

enum class Kind { drawn, outright };

/// One answer, in rounds of `most` drafts, the last row with or without a draft of its own.
Tokens answer(const Pair& pair, const Uniform& uniform, std::size_t most, Kind kind, Told& told) {
  model::Sampler target(pair.sampling, pair.prompt);
  Tokens said;
  while (said.size() < kLength) {
    model::Sampler drafter(pair.sampling, pair.prompt);
    Tokens prefix = pair.prompt;
    for (const std::int32_t token : said) {
      drafter.follow(token);
      prefix.push_back(token);
    }
    std::vector<Draft> drafts;
    Tokens ids, with_drafts = prefix;
    for (std::size_t i = 0; i < most; ++i) {
      Draft draft = draw_draft(drafter, pair.drafted_after(with_drafts), uniform, said.size() + i);
      // An n-gram is none that was drawn: here the likeliest.
      if (kind == Kind::outright) draft = {draft.from.front().id, {}};
      drafter.follow(draft.id);
      with_drafts.push_back(draft.id);
      ids.push_back(draft.id);
      drafts.push_back(std::move(draft));
    }
    Rows rows = rows_of(pair.target, prefix, ids, most + (most == 0 || said.size() % 2 == 0 ? 1 : 0));
    const Verdict verdict =
        verify_by_rejection(target, uniform, said.size(), drafts, rows, [&](std::int32_t token) {
          said.push_back(token);
          return said.size() < kLength;
        });
    told.accepted += static_cast<int>(verdict.accepted);
    told.judged += static_cast<int>(std::min(verdict.accepted + 1, drafts.size()));
  }
  return said;
}

Told tell(const Pair& pair, std::size_t most, Kind kind, std::uint64_t first_seed, bool one_stream = false) {
  Told told;
  for (int i = 0; i < kAnswers; ++i) {
    Uniform uniform = streams_of(first_seed + static_cast<std::uint64_t>(i));
    if (one_stream) {
      uniform = [independent = std::move(uniform)](Stream stream, std::uint64_t step) {
        return independent(stream == Stream::resample ? Stream::accept : stream, step);
      };
    }
    ++told.counts[answer(pair, uniform, most, kind, told)];
  }
  return told;
}

/// One answer by rounds.h. Drafter and target go on in any order, so that a pass finds the draft behind it,
/// or does not.
Tokens answer_in_rounds(const Pair& pair, Method method, std::uint64_t seed) {
  const Uniform uniform = streams_of(seed);
  std::minstd_rand order(static_cast<std::uint32_t>(seed * 2654435761U));
  Rounds rounds(method, {2, 0}, {4, 4});
  model::Sampler target(pair.sampling, pair.prompt);
  Tokens said;
  std::vector<Draft> has;
  std::size_t until = 0;
  std::uint64_t round = 0;
  std::optional<VerifyDrafts> pass;
  const auto apply = [&](const Actions& actions) {
    for (const Action& action : actions) {
      if (const auto* cut = std::get_if<Cut>(&action)) {
        has.resize(cut->at);
        for (const std::int32_t token : cut->said) has.push_back({token, {}});
        until = 0;
        round = cut->round;
      } else if (const auto* on = std::get_if<DraftOn>(&action)) {
        until = on->until;
        round = on->round;
      } else {
        pass = std::get<VerifyDrafts>(action);
      }
    }
  };
  apply(rounds.start());
  apply(rounds.target_ready());
  while (said.size() < kLength) {
    if (has.size() < until && (!pass || order() / 8 % 3 > 0)) {
      model::Sampler drafter(pair.sampling, pair.prompt);
      Tokens prefix = pair.prompt;
      for (const Draft& one : has) {
        drafter.follow(one.id);
        prefix.push_back(one.id);
      }
      has.push_back(draw_draft(drafter, pair.drafted_after(prefix), uniform, has.size()));
      apply(rounds.drafted(round, Tokens{has.back().id}));
      continue;
    }
    const VerifyDrafts done = pass.value();
    pass.reset();
    Tokens ids = done.drafts, prefix = pair.prompt;
    if (const auto behind = rounds.draft_behind_pass()) ids.push_back(*behind);
    prefix.insert(prefix.end(), said.begin(), said.end());
    const std::span<const Draft> drafts = std::span(has).subspan(std::min(done.at, has.size()));
    Rows rows = rows_of(pair.target, prefix, ids, done.drafts.size() + 1);
    const Verdict verdict = verify_by_rejection(target, uniform, done.at, drafts.first(ids.size()), rows,
                                                [&](std::int32_t token) {
                                                  said.push_back(token);
                                                  return said.size() < kLength;
                                                });
    if (verdict.ended) break;
    apply(rounds.verified(done.round, verdict.tokens));
    apply(rounds.target_ready());
  }
  return said;
}

/// What a statistic of so many degrees of freedom exceeds once in a million times (Wilson and Hilferty).
double bound(double degrees) {
  constexpr double kZ = 4.7534;
  const double part = 2 / (9 * degrees);
  return degrees * std::pow(1 - part + kZ * std::sqrt(part), 3);
}

struct Fit {
  double statistic = 0;
  double degrees = -1;
};

/// Outcomes that are expected fewer than 8 times are one; one that cannot be makes the statistic infinite.
Fit fit(const std::map<Tokens, double>& expected, const Told& told) {
  Fit fit;
  double rare = 0;
  int rare_count = 0, all = 0;
  const auto add = [&fit](double wanted, double count) {
    fit.statistic += (count - wanted) * (count - wanted) / wanted;
    fit.degrees += 1;
  };
  for (const auto& [tokens, probability] : expected) {
    const auto found = told.counts.find(tokens);
    const int count = found == told.counts.end() ? 0 : found->second;
    all += count;
    const double wanted = probability * kAnswers;
    if (wanted >= 8) {
      add(wanted, count);
    } else {
      rare += wanted;
      rare_count += count;
    }
  }
  if (rare > 0) add(rare, rare_count);
  if (all != kAnswers) fit.statistic = testing::kInfinity;
  return fit;
}

void expect_fits(const Pair& pair, std::size_t outcomes) {
  std::map<Tokens, double> expected;
  enumerate(pair, model::Sampler(pair.sampling, pair.prompt), {}, 1, expected);
  ASSERT_GE(expected.size(), outcomes);
  std::uint64_t seed = 1;
  for (const Kind kind : {Kind::drawn, Kind::outright})
    for (const std::size_t most : {1U, 2U, 4U}) {
      const Told told = tell(pair, most, kind, seed, false);
      seed += kAnswers;
      const Fit of = fit(expected, told);
      EXPECT_LT(of.statistic, bound(of.degrees)) << most << ' ' << of.degrees;
      // Neither all nor nothing was accepted.
      EXPECT_GT(told.accepted, told.judged / 4);
      EXPECT_LT(told.accepted, told.judged * 9 / 10);
    }
}

TEST(Rejection, HasTheTargetsDistributionWithTopK) {
  Pair pair = made_up_pair(6);
  pair.sampling.top_k = 4;
  std::map<Tokens, double> expected;
  enumerate(pair, model::Sampler(pair.sampling, {}), {}, 1, expected);
  ASSERT_EQ(expected.size(), 64U);
  expect_fits(pair, 64);
}

TEST(Rejection, HasTheTargetsDistributionWithTopPAndPenalties) {
  Pair pair = made_up_pair(8);
  pair.sampling.top_p = 0.9F;
  pair.sampling.repetition_penalty = 1.5F;
  pair.prompt = {5, 0, 5};
  expect_fits(pair, 120);
}

TEST(Rejection, HasTheTargetsDistributionInRoundsOfEveryKind) {
  Pair pair = made_up_pair(6);
  pair.sampling.top_k = 4;
  pair.sampling.repetition_penalty = 1.3F;
  std::map<Tokens, double> expected;
  enumerate(pair, model::Sampler(pair.sampling, {}), {}, 1, expected);
  std::uint64_t seed = 7000000;
  for (const Method method : {Method::serial, Method::pearl, Method::hippo, Method::automatic}) {
    Told told;
    for (int i = 0; i < kAnswers; ++i) ++told.counts[answer_in_rounds(pair, method, seed++)];
    const Fit of = fit(expected, told);
    EXPECT_LT(of.statistic, bound(of.degrees)) << static_cast<int>(method);
  }
}

TEST(Rejection, WithoutDraftsIsThePlainDraw) {
  Pair pair = made_up_pair(6);
  pair.sampling.top_k = 4;
  std::map<Tokens, double> expected;
  enumerate(pair, model::Sampler(pair.sampling, {}), {}, 1, expected);
  const Fit of = fit(expected, tell(pair, 0, Kind::drawn, 1));
  EXPECT_LT(of.statistic, bound(of.degrees));
}

// What the streams are apart for: a number that rejected a draft is a large one, and would choose a late
// token.
TEST(Rejection, OneStreamForAcceptingAndResamplingIsSeen) {
  Pair pair = made_up_pair(6);
  pair.sampling.top_k = 4;
  std::map<Tokens, double> expected;
  enumerate(pair, model::Sampler(pair.sampling, {}), {}, 1, expected);
  const Fit of = fit(expected, tell(pair, 2, Kind::drawn, 1, true));
  EXPECT_GT(of.statistic, 3 * bound(of.degrees));
}

TEST(Rejection, GreedyIsTheLikeliestWhateverIsDrafted) {
  std::mt19937 random(9);
  MadeUpTarget target;
  target.vocabulary = 12;
  model::Sampler plain({}, {}), sampler({}, {});
  Tokens said;
  int accepted = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Draft> drafts;
    Tokens ids;
    for (int i = 0; i < 3; ++i) {
      const auto id = static_cast<std::int32_t>(random() % 14);  // two that the target does not have
      drafts.push_back({id, {{id, 0.25}, {id + 1, 0.75}}});
      if (random() % 2 == 0) drafts.back().from.clear();
      ids.push_back(id);
    }
    Rows rows = rows_of(target, said, ids, 4);
    const Verdict verdict = verify_by_rejection(sampler, streams_of(random()), said.size(), drafts, rows, {});
    EXPECT_EQ(rows.whole_rows, 0);
    for (const std::int32_t token : verdict.tokens) {
      ASSERT_EQ(token, plain.next(target.after(said)));
      said.push_back(token);
    }
    accepted += static_cast<int>(verdict.accepted);
  }
  EXPECT_GT(accepted, 5);
}

TEST(Rejection, LeavesTheSamplerAsPlainDecodingOfItsTokensDoes) {
  Pair pair = made_up_pair(8);
  pair.sampling.repetition_penalty = 2;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    model::Sampler sampler(pair.sampling, {}), plain(pair.sampling, {});
    const Tokens ids = {1, 2, 3};
    Rows rows = rows_of(pair.target, {}, ids, 4);
    const std::vector<Draft> drafts = {{1, {{1, 1}}}, {2, {}}, {3, {{3, 0.5}, {4, 0.5}}}};
    const Verdict verdict = verify_by_rejection(sampler, streams_of(seed), 0, drafts, rows, {});
    for (const std::int32_t token : verdict.tokens) plain.follow(token);
    const Logits flat(8, 1.F);
    EXPECT_EQ(sampler.next(flat), plain.next(flat));
    EXPECT_EQ(sampler.next(flat), plain.next(flat));
  }
}

TEST(Rejection, RefusesADraftThatWasNotDrawnFromWhatItNames) {
  model::Sampling sampling;
  sampling.temperature = 1;
  model::Sampler sampler(sampling, {});
  const std::vector<Logits> two(2, Logits(4, 0.F));
  for (const Draft& draft : {Draft{2, {{1, 1}}}, Draft{2, {{1, 1}, {2, 0}}}, Draft{2, {{2, std::nan("")}}}}) {
    Rows rows(two);
    EXPECT_THROW(verify_by_rejection(sampler, streams_of(1), 0, std::vector{draft}, rows, {}),
                 std::invalid_argument);
  }
  Rows bad({Logits(4, std::nanf("")), Logits(4, 0.F)});
  EXPECT_THROW(verify_by_rejection(sampler, streams_of(1), 0, std::vector{Draft{2, {}}}, bad, {}),
               std::invalid_argument);
  // One that the target cannot say is a draft like any other, and rejected.
  Rows rows(two);
  EXPECT_EQ(
      verify_by_rejection(sampler, streams_of(1), 0, std::vector{Draft{77, {{77, 1}}}}, rows, {}).accepted,
      0U);
}

TEST(Streams, AreTheSameEachTimeAndIndependent) {
  const Uniform a = streams_of(1), again = streams_of(1), b = streams_of(2);
  constexpr int kDraws = 20000;
  constexpr std::array kStreams = {Stream::draft, Stream::accept, Stream::resample};
  // Correlations of independent uniform numbers have a deviation of 1 / sqrt(draws): five of these.
  const auto expect_apart = [&](const auto& x, const auto& y) {
    double sum = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) sum += 12 * (x(i) - 0.5) * (y(i) - 0.5);
    EXPECT_LT(std::abs(sum / kDraws), 5 / std::sqrt(kDraws));
  };
  for (const Stream x : kStreams) {
    EXPECT_EQ(a(x, 7), again(x, 7));
    const auto of = [](const Uniform& uniform, Stream stream, std::uint64_t shift) {
      return [&uniform, stream, shift](std::uint64_t step) { return uniform(stream, step + shift); };
    };
    for (const std::uint64_t shift : {0U, 1U}) {
      expect_apart(of(a, x, 0), of(b, x, shift));
      for (const Stream y : kStreams)
        if (x != y || shift > 0) expect_apart(of(a, x, 0), of(a, y, shift));
    }
  }
  // Nor any the one that a sampler of this seed draws from: the token at a point of 1000 equal ones tells it.
  model::Sampling sampling;
  sampling.temperature = 1;
  sampling.seed = 1;
  model::Sampler sampler(sampling, {});
  const Logits flat(1000, 0.F);
  std::vector<double> drawn;
  for (int i = 0; i < 3000; ++i) drawn.push_back(sampler.next(flat) / 1000.0);
  for (const Stream x : kStreams) {
    double sum = 0;
    for (std::uint64_t i = 0; i < drawn.size(); ++i) sum += 12 * (a(x, i) - 0.5) * (drawn[i] - 0.5);
    EXPECT_LT(std::abs(sum / static_cast<double>(drawn.size())), 5 / std::sqrt(3000));
  }
}

}  // namespace
}  // namespace vigil::speculate
