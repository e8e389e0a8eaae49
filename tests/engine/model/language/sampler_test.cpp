#include "engine/model/language/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/language/generation.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::golden;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Sampler, DistributionIsThatOfTransformers) {
  const Json cases = read_json_file(golden("sampling.json"));
  ASSERT_GT(cases.size(), 50U);
  for (const Json& item : cases) {
    SCOPED_TRACE(item.dump());
    Sampling sampling;
    sampling.temperature = item["temperature"].get<float>();
    sampling.top_k = item["top_k"].get<int>();
    sampling.top_p = item["top_p"].get<float>();
    sampling.repetition_penalty = item["repetition_penalty"].get<float>();
    const auto logits = item["logits"].get<std::vector<float>>();
    const auto expected = item["probabilities"].get<std::vector<double>>();
    const Sampler sampler(sampling, item["prompt"].get<std::vector<std::int32_t>>());
    std::vector<double> actual(logits.size());
    double previous = 1;
    for (const Likelihood& choice : sampler.distribution(logits)) {
      EXPECT_LE(choice.probability, previous + 1e-12);
      previous = choice.probability;
      actual[static_cast<std::size_t>(choice.id)] += choice.probability;
    }
    for (std::size_t id = 0; id < logits.size(); ++id) EXPECT_NEAR(actual[id], expected[id], 2e-6) << id;
  }
}

TEST(Sampler, DrawsFromItsDistribution) {
  Sampling sampling;
  sampling.temperature = 1;
  sampling.seed = 11;
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const std::vector<float> logits = {0, std::log(2.F), std::log(4.F), 0};
  Sampler sampler(sampling, {});
  std::array<int, 4> counts{};
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(sampler.next(logits))];
  const std::array<double, 4> expected = {0.125, 0.25, 0.5, 0.125};
  for (std::size_t id = 0; id < 4; ++id) {
    // Five standard deviations of a binomial count.
    const double deviation = std::sqrt(kDraws * expected[id] * (1 - expected[id]));
    EXPECT_NEAR(counts[id], kDraws * expected[id], 5 * deviation) << id;
  }
}

TEST(Sampler, SameSeedSameTokens) {
  Sampling sampling;
  sampling.temperature = 1;
  const std::vector<float> logits(100, 0.F);
  const auto draw = [&](std::uint64_t seed) {
    sampling.seed = seed;
    Sampler sampler(sampling, {});
    std::vector<std::int32_t> ids(8);
    for (std::int32_t& id : ids) id = sampler.next(logits);
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  // SplitMix64 of seed 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec,
  // 1b39896a51a8749b.
  EXPECT_THAT(draw(0), ElementsAre(88, 43, 2, 97, 10, 32, 17, 77));
}

/// The `count` largest, or all that are possible.
std::vector<Candidate> likeliest(const std::vector<float>& logits, std::size_t count) {
  std::vector<Candidate> all;
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (logits[id] > -kInfinity) all.push_back({logits[id], static_cast<std::int32_t>(id)});
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  all.resize(std::min(count, all.size()));
  return all;
}

TEST(Sampler, TheLikeliestFewTellWhatAllLogitsTell) {
  std::mt19937 random(4);
  int settled = 0, tied = 0;
  for (const int steps : {2, 40, 4000})  // how many values logits have: few, and many tie
    for (const int size : {1, 5, 300})
      for (const int top_k : {1, 3, 50, 400})
        for (const float top_p : {1.0F, 0.8F, 0.0F}) {
          Sampling sampling;
          sampling.temperature = 0.7F;
          sampling.top_k = top_k;
          sampling.top_p = top_p;
          sampling.seed = random();
          Sampler of_all(sampling, {}), of_few(sampling, {});
          for (int step = 0; step < 20; ++step) {
            std::vector<float> logits(static_cast<std::size_t>(size));
            for (float& logit : logits)
              logit =
                  6 * static_cast<float>(random() % static_cast<unsigned>(steps)) / static_cast<float>(steps);
            if (size > 2) logits[2] = step % 2 == 0 ? std::nanf("") : -kInfinity;
            const std::int32_t wanted = of_all.next(logits);
            const auto found = of_few.next_of(likeliest(logits, of_few.wanted()));
            (found ? settled : tied) += 1;
            // What it could not tell left no trace: the next draws are the same.
            EXPECT_EQ(found ? *found : of_few.next(logits), wanted) << size << ' ' << top_k << ' ' << step;
          }
        }
  EXPECT_GT(settled, 1000);
  EXPECT_GT(tied, 100);
}

TEST(Sampler, TellsHowManyOfTheLikeliestItWants) {
  Sampling sampling;
  sampling.top_k = 50;
  EXPECT_EQ(Sampler(sampling, {}).wanted(), 0U);  // the likeliest alone
  sampling.temperature = 1;
  EXPECT_GT(Sampler(sampling, {}).wanted(), 50U);
  sampling.repetition_penalty = 1.1F;
  EXPECT_EQ(Sampler(sampling, {}).wanted(), 0U);
  sampling.repetition_penalty = 1;
  sampling.top_k = 0;
  EXPECT_EQ(Sampler(sampling, {}).wanted(), 0U);
  sampling.top_k = 2;
  EXPECT_THROW(Sampler(sampling, {}).next_of({}), std::invalid_argument);
}

TEST(Sampler, PenalisesWhatItChose) {
  Sampling sampling;
  sampling.repetition_penalty = 10;
  Sampler sampler(sampling, std::vector<std::int32_t>{2, -1, 1 << 30});
  const std::vector<float> logits = {5, 4, 30, 1};
  EXPECT_EQ(sampler.next(logits), 0);  // 30 / 10 < 5
  EXPECT_EQ(sampler.next(logits), 1);
  EXPECT_EQ(sampler.next(logits), 2);
}

TEST(Sampler, IgnoresWhatIsNoNumber) {
  Sampling sampling;
  const std::vector<float> logits = {std::nanf(""), -kInfinity, 1, 2, std::nanf("")};
  EXPECT_EQ(Sampler(sampling, {}).next(logits), 3);
  sampling.temperature = 1;
  EXPECT_EQ(Sampler(sampling, {}).distribution(logits).size(), 2U);
  EXPECT_THROW(Sampler(sampling, {}).next(std::vector<float>{std::nanf(""), -kInfinity}),
               std::invalid_argument);
  EXPECT_THROW(Sampler(Sampling{}, {}).next(std::vector<float>{}), std::invalid_argument);
  EXPECT_EQ(Sampler(sampling, {}).next(std::vector<float>{0, kInfinity, 5}), 1);
}

TEST(Sampler, RefusesFieldsOutOfRange) {
  const auto refuses = [](auto change) {
    Sampling sampling;
    change(sampling);
    EXPECT_THROW(Sampler(sampling, {}), std::invalid_argument);
  };
  refuses([](Sampling& s) { s.temperature = -1; });
  refuses([](Sampling& s) { s.temperature = std::nanf(""); });
  refuses([](Sampling& s) { s.top_k = -1; });
  refuses([](Sampling& s) { s.top_p = 1.1F; });
  refuses([](Sampling& s) { s.repetition_penalty = 0; });
  refuses([](Sampling& s) { s.stop = {"x", ""}; });
}

/// What comes out when `text` goes in one character at a time.
std::string through(StopStrings& stops, const std::string& text) {
  std::string out;
  for (const char c : text) out += stops.push({&c, 1});
  return out + stops.finish();
}

TEST(StopStrings, EndTheAnswerWhereTheyBegin) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(through(stops, "a\nb EN d\n\nnever"), "a\nb EN d");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("more"), "");
}

TEST(StopStrings, HoldBackNoMoreThanTheyMust) {
  StopStrings stops({"aab"});
  EXPECT_EQ(stops.push("xa"), "x");
  EXPECT_EQ(stops.push("a"), "");
  EXPECT_EQ(stops.push("a"), "a");  // "aa" may still become "aab"
  EXPECT_EQ(stops.push("c"), "aac");
  EXPECT_EQ(stops.push("a"), "");
  EXPECT_FALSE(stops.stopped());
  EXPECT_EQ(stops.finish(), "a");
}

TEST(StopStrings, TakeTheFirstOfSeveralInOnePiece) {
  StopStrings stops({"later", "no"});
  EXPECT_EQ(stops.push("yes, now or later"), "yes, ");
  EXPECT_TRUE(stops.stopped());
  StopStrings none({});
  EXPECT_EQ(none.push("text"), "text");
  EXPECT_THROW(StopStrings({""}), std::invalid_argument);
}

TEST(GenerationConfig, ReadsThePublishedFile) {
  const testing::ScratchFolder folder;
  folder.write("generation_config.json",
               R"({"bos_token_id": 151643, "pad_token_id": 151643, "do_sample": true,
      "eos_token_id": [151645, 151643], "repetition_penalty": 1.05, "temperature": 0.000001,
      "transformers_version": "4.49.0"})");
  const GenerationConfig config = read_generation_config(folder.path());
  EXPECT_THAT(config.end_token_ids, ElementsAre(151645, 151643));
  EXPECT_TRUE(config.ends(151643));
  EXPECT_FALSE(config.ends(7));
  EXPECT_EQ(config.pad_token_id, 151643);
  const Sampling sampling = config.sampling();
  EXPECT_FLOAT_EQ(sampling.temperature, 1e-6F);
  EXPECT_EQ(sampling.top_k, 50);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.05F);
}

TEST(GenerationConfig, FallsBackToTheConfiguration) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(read_generation_config(folder.path()).end_token_ids, ElementsAre());
  folder.write("config.json", R"({"text_config": {"eos_token_id": 9}})");
  const GenerationConfig config = read_generation_config(folder.path());
  EXPECT_THAT(config.end_token_ids, ElementsAre(9));
  EXPECT_EQ(config.sampling().temperature, 0);  // do_sample is off by default
  folder.write("config.json", R"({"eos_token_id": 8, "text_config": {"eos_token_id": 9}})");
  EXPECT_THAT(read_generation_config(folder.path()).end_token_ids, ElementsAre(8));
  folder.write("generation_config.json", R"({"eos_token_id": 7})");
  EXPECT_THAT(read_generation_config(folder.path()).end_token_ids, ElementsAre(7));
}

TEST(GenerationConfig, NamesTheFault) {
  const testing::ScratchFolder folder;
  const auto error = [&](const char* text) {
    folder.write("generation_config.json", text);
    return error_of([&] { read_generation_config(folder.path()); });
  };
  EXPECT_THAT(error(R"({"eos_token_id": "x"})"),
              HasSubstr("generation_config.json: eos_token_id: an integer was expected"));
  EXPECT_THAT(error(R"({"eos_token_id": [1, -2]})"), HasSubstr("eos_token_id: the list may hold integers"));
  EXPECT_THAT(error(R"({"temperature": -1})"), HasSubstr("temperature: -1 is not between"));
  EXPECT_THAT(error(R"({"top_p": 2})"), HasSubstr("top_p"));
  EXPECT_THAT(error("[]"), HasSubstr("an object was expected"));
}

}  // namespace
}  // namespace vigil::model
