#include "bench/engine_bench.h"

#include <atomic>
#include <chrono>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// A second later whenever somebody looks.
class CountingClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::seconds(++looks_)); }
  WallTime wall() const override { return {}; }

 private:
  mutable std::atomic<int> looks_{0};
};

class EngineBenchTest : public ::testing::Test {
 protected:
  EngineBench bench(const EngineBenchOptions& options) const {
    // Made up, as its answers do not end of themselves.
    const auto open = [] {
      const std::string demo = std::string(VIGIL_SOURCE_DIR) + "/models/demo";
      return model::ModelFolder::made_up(demo + "/config.json", demo, 1);
    };
    return EngineBench(open, {}, options, clock_);
  }
  static std::map<std::string, std::size_t> runs(const EngineBench& bench) {
    std::map<std::string, std::size_t> runs;
    for (const Figure& figure : bench.figures().all()) {
      runs[figure.name] = figure.values.size();
      EXPECT_EQ(figure.unit, "s");
      for (const double value : figure.values) EXPECT_GT(value, 0) << figure.name;
    }
    return runs;
  }

  CountingClock clock_;
  EngineBenchOptions small_{.frames = 4,
                            .width = 56,
                            .height = 56,
                            .tokens = 3,
                            .sequences = 2,
                            .sequence_frames = 2,
                            .runs = 2,
                            .warmups = 1};
};

TEST_F(EngineBenchTest, TimesEveryRunThatCounts) {
  EngineBench bench = this->bench(small_);
  EXPECT_THAT(runs(bench), UnorderedElementsAre(Pair("load", 1)));
  bench.run();
  EXPECT_THAT(runs(bench),
              UnorderedElementsAre(Pair("load", 1), Pair("vision", 2), Pair("prefill", 2),
                                   Pair("first_token", 2), Pair("decode_token", 2),
                                   Pair("prefill_sequences", 2), Pair("decode_step_sequences", 2)));
  EXPECT_GT(bench.prompt_tokens(), bench.sequence_tokens()) << "of more frames";
  EXPECT_GT(bench.sequence_tokens(), 0);
}

TEST_F(EngineBenchTest, WhatIsNotDoneHasNoFigure) {
  small_.sequences = 1;
  small_.tokens = 1;
  EngineBench bench = this->bench(small_);
  bench.run();
  EXPECT_THAT(runs(bench),
              UnorderedElementsAre(Key("load"), Key("vision"), Key("prefill"), Key("first_token")))
      << "the only token comes with the prefill";
  EXPECT_EQ(bench.sequence_tokens(), 0);
}

}  // namespace
}  // namespace vigil::bench
