#include "engine/speculate/verify.h"

#include <array>
#include <limits>
#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/speculate/support.h"

namespace vigil::speculate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kInfinity;
using testing::Logits;
using testing::MadeUpTarget;
using testing::Rows;
using testing::rows_of;
using testing::Tokens;

constexpr std::size_t kAnswer = 24;

Tokens plain_answer(const MadeUpTarget& target, model::Sampler sampler, const Tokens& prompt,
                    std::size_t length) {
  Tokens all = prompt;
  for (std::size_t i = 0; i < length; ++i) all.push_back(sampler.next(target.after(all)));
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

/// Both say the same from here on, whatever the target says: they remember the same steps and tokens.
void expect_same_state(model::Sampler a, model::Sampler b, std::size_t vocabulary) {
  MadeUpTarget probe;
  probe.vocabulary = vocabulary;
  probe.seed = 99;
  Tokens said;
  for (int i = 0; i < 4; ++i) {
    const Logits logits = probe.after(said);
    const std::int32_t token = a.next(logits);
    ASSERT_EQ(token, b.next(logits));
    said.push_back(token);
  }
  const Logits flat(vocabulary, 1.F);
  const auto of_a = a.distribution(flat), of_b = b.distribution(flat);
  ASSERT_EQ(of_a.size(), of_b.size());
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    ASSERT_EQ(of_a[i].id, of_b[i].id);
    ASSERT_EQ(of_a[i].probability, of_b[i].probability);
  }
}

std::vector<model::Sampling> samplings() {
  std::vector<model::Sampling> all;
  for (const float temperature : {0.F, 0.8F})
    for (const int top_k : {0, 3, 40})
      for (const float top_p : {1.F, 0.7F})
        for (const float penalty : {1.F, 1.6F}) {
          model::Sampling sampling;
          sampling.temperature = temperature;
          sampling.top_k = top_k;
          sampling.top_p = top_p;
          sampling.repetition_penalty = penalty;
          sampling.seed = 17 + all.size();
          all.push_back(sampling);
        }
  return all;
}

/// Drafts of what plain decoding will say, each right with probability `a`; wrong ones are any id, also such
/// that no vocabulary has.
Tokens made_up_drafts(std::span<const std::int32_t> plain, std::size_t count, double a,
                      std::size_t vocabulary, std::mt19937& random) {
  Tokens drafts;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_right = i < plain.size() && static_cast<double>(random() % 1000) < 1000 * a;
    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    const Tokens wrong = {-1, kMost, static_cast<std::int32_t>(vocabulary),
                          static_cast<std::int32_t>(random() % vocabulary)};
    drafts.push_back(is_right ? plain[i] : wrong[random() % wrong.size()]);
  }
  return drafts;
}

struct Seen {
  int rounds = 0, accepted = 0, rejected = 0, bonus = 0, whole_rows = 0;
};

/// An answer in rounds of up to `most` drafts is plain decoding's, token by token, and so is the sampler
/// after every round.
void expect_plain(const MadeUpTarget& target, const model::Sampling& sampling, std::size_t most, double a,
                  std::mt19937& random, Seen& seen, std::size_t likeliest = 512) {
  const Tokens prompt = {3, 1, 0};
  model::Sampler sampler(sampling, prompt), step_by_step(sampling, prompt);
  const Tokens plain = plain_answer(target, sampler, prompt, kAnswer + most + 1);
  Tokens said;
  while (said.size() < kAnswer) {
    Tokens prefix = prompt;
    prefix.insert(prefix.end(), said.begin(), said.end());
    const std::span<const std::int32_t> ahead(plain.begin() + static_cast<std::ptrdiff_t>(said.size()),
                                              plain.end());
    const std::size_t count = random() % (most + 1);
    const Tokens drafts = made_up_drafts(ahead, count, a, target.vocabulary, random);
    const std::size_t rows = count > 0 && random() % 3 == 0 ? count : count + 1;
    Rows out = rows_of(target, prefix, drafts, rows, likeliest);
    const Verdict verdict = verify_by_seed(sampler, drafts, out, {});

    std::size_t right = 0;
    while (right < count && drafts[right] == ahead[right]) ++right;
    ASSERT_EQ(verdict.accepted, right);
    ASSERT_EQ(verdict.tokens.size(), std::min(right + 1, rows));
    ASSERT_FALSE(verdict.ended);
    for (const std::int32_t token : verdict.tokens) {
      ASSERT_EQ(token, plain[said.size()]);
      prefix.resize(prompt.size());
      prefix.insert(prefix.end(), said.begin(), said.end());
      ASSERT_EQ(step_by_step.next(target.after(prefix)), token);
      said.push_back(token);
    }
    expect_same_state(sampler, step_by_step, target.vocabulary);
    if (::testing::Test::HasFatalFailure()) return;
    ++seen.rounds;
    seen.accepted += static_cast<int>(right);
    seen.rejected += right < count ? 1 : 0;
    seen.bonus += right == count && rows > count ? 1 : 0;
    seen.whole_rows += out.whole_rows;
  }
}

TEST(VerifyBySeed, SaysWhatPlainDecodingSays) {
  std::mt19937 random(5);
  Seen seen;
  for (const model::Sampling& sampling : samplings())
    for (const std::size_t vocabulary : {1U, 8U, 300U})
      for (std::size_t most = 0; most <= 15; most += most < 3 ? 1 : 4)
        for (const double a : {0.0, 0.5, 0.95}) {
          MadeUpTarget target;
          target.vocabulary = vocabulary;
          target.seed = random();
          ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, most, a, random, seen))
              << vocabulary << ' ' << most;
        }
  EXPECT_GT(seen.accepted, 10000);
  EXPECT_GT(seen.rejected, 5000);
  EXPECT_GT(seen.bonus, 5000);
}

TEST(VerifyBySeed, SaysItOfTiesAndOfRowsWithNaNAndInfinities) {
  std::mt19937 random(6);
  Seen seen;
  for (const model::Sampling& sampling : samplings())
    for (const unsigned values : {1U, 2U, 50U})
      for (const bool ugly : {false, true})
        for (const std::size_t most : {1U, 4U, 15U}) {
          MadeUpTarget target;
          target.vocabulary = 40;
          target.values = values;
          target.ugly = ugly;
          target.seed = random();
          ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, most, 0.7, random, seen))
              << values << ' ' << ugly;
        }
  EXPECT_GT(seen.accepted, 3000);
  EXPECT_GT(seen.rejected, 1000);
}

TEST(VerifyBySeed, AsksForNoMoreOfARowThanItNeeds) {
  std::mt19937 random(7);
  MadeUpTarget target;
  target.vocabulary = 300;
  model::Sampling sampling;
  Seen seen;
  ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, 8, 0.8, random, seen, 1));  // the likeliest alone
  sampling.temperature = 0.9F;
  sampling.top_k = 40;
  ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, 8, 0.8, random, seen));
  EXPECT_EQ(seen.whole_rows, 0);
  // Ties at the last of top-k, or fewer candidates than it wants: all logits.
  target.values = 2;
  ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, 8, 0.8, random, seen));
  EXPECT_GT(seen.whole_rows, 0);
  target.values = 4000;
  seen.whole_rows = 0;
  ASSERT_NO_FATAL_FAILURE(expect_plain(target, sampling, 8, 0.8, random, seen, 47));
  EXPECT_GT(seen.whole_rows, 0);
}

TEST(VerifyBySeed, ARowWithoutATokenThrowsWherePlainDecodingDoes) {
  const Logits nothing(5, -kInfinity), nan(5, std::nanf("")), two = {0, 0, 9, 0, 0};
  for (const Logits& bad : {nothing, nan})
    for (const model::Sampling& sampling : samplings()) {
      model::Sampler sampler(sampling, {}), plain(sampling, {});
      Tokens taken;
      const auto take = [&](std::int32_t token) {
        taken.push_back(token);
        return true;
      };
      // The draft may be wrong: then the bad row is not looked at.
      const std::int32_t right = plain.next(two);
      Rows rows({two, bad, two});
      EXPECT_THROW(verify_by_seed(sampler, Tokens{right, 2}, rows, take), std::invalid_argument);
      EXPECT_THAT(taken, ElementsAre(right));
      expect_same_state(sampler, plain, 5);
      EXPECT_THAT(
          verify_by_seed(sampler, Tokens{-7, 2}, *std::make_unique<Rows>(std::vector{two, bad, two}), take)
              .tokens,
          ElementsAre(plain.next(two)));
    }
}

TEST(Verify, RefusesRowsThatAreNotThoseOfTheDrafts) {
  model::Sampler sampler({}, {});
  const Logits row(4, 0.F);
  const Uniform uniform = streams_of(0);
  for (const auto& [drafts, rows] : {std::pair{0, 0}, {0, 2}, {2, 1}, {2, 4}}) {
    Rows out(std::vector<Logits>(static_cast<std::size_t>(rows), row));
    const Tokens ids(static_cast<std::size_t>(drafts), 0);
    EXPECT_THROW(verify_by_seed(sampler, ids, out, {}), std::invalid_argument) << drafts << ' ' << rows;
    const std::vector<Draft> drawn(static_cast<std::size_t>(drafts), Draft{0, {}});
    EXPECT_THROW(verify_by_rejection(sampler, uniform, 0, drawn, out, {}), std::invalid_argument);
  }
}

/// The text of token t is "a" + t; what an answer with a stop string, an end token and a length is.
struct Taker {
  model::StopStrings stops;
  std::int32_t end = -1;
  std::size_t length = 1000;
  std::string text;
  Tokens tokens;

  bool take(std::int32_t token) {
    if (token == end) return false;
    tokens.push_back(token);
    text += stops.push(std::string(1, static_cast<char>('a' + token)));
    return !stops.stopped() && tokens.size() < length;
  }
};

TEST(VerifyBySeed, AnAnswerEndsInsideOfAnAcceptedRunAsPlainDecodingEndsIt) {
  std::mt19937 random(8);
  int inside = 0;
  std::array<int, 3> why{};
  for (int round = 0; round < 3000; ++round) {
    MadeUpTarget target;
    target.vocabulary = 6;
    target.seed = random();
    model::Sampling sampling;
    sampling.temperature = round % 2 == 0 ? 0.F : 1.F;
    sampling.repetition_penalty = round % 4 < 2 ? 1.F : 1.2F;
    sampling.seed = random();
    // One stop string lies across tokens, one has a beginning that is held back.
    const Taker fresh{model::StopStrings({"bc", "dde", "fa"}),
                      static_cast<std::int32_t>(random() % 12),
                      1 + random() % 9,
                      {},
                      {}};
    model::Sampler plain(sampling, {}), sampler(sampling, {});
    const Tokens ahead = plain_answer(target, plain, {}, 40);
    Taker expected = fresh, actual = fresh;
    Tokens prefix;
    for (bool more = true; more;) {
      const std::int32_t token = plain.next(target.after(prefix));
      more = expected.take(token);
      prefix.push_back(token);
    }
    why[expected.stops.stopped() ? 0 : expected.tokens.size() == expected.length ? 1 : 2] += 1;

    Verdict verdict;
    for (Tokens said; !verdict.ended; said.insert(said.end(), verdict.tokens.begin(), verdict.tokens.end())) {
      const Tokens drafts = made_up_drafts(std::span(ahead).subspan(said.size()), 7, 0.9, 6, random);
      Rows rows = rows_of(target, said, drafts, drafts.size() + 1);
      verdict = verify_by_seed(sampler, drafts, rows, [&](std::int32_t token) { return actual.take(token); });
      inside += verdict.ended && verdict.accepted == verdict.tokens.size() && verdict.accepted < 7 ? 1 : 0;
    }
    ASSERT_EQ(actual.text, expected.text);
    ASSERT_EQ(actual.stops.finish(), expected.stops.finish());
    ASSERT_EQ(actual.tokens, expected.tokens);
    ASSERT_NO_FATAL_FAILURE(expect_same_state(sampler, plain, 6));  // no draw more than plain decoding had
  }
  EXPECT_GT(inside, 1000);
  for (const int count : why) EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace vigil::speculate
