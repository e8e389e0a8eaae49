#include "bench/floor.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

using namespace std::chrono_literals;

Figures of_a_window() {
  Figures figures;
  for (const double seconds : {0.11, 0.10, 0.90}) figures.add("vision", "s", seconds);
  figures.add("prefill", "s", 0.25);
  figures.add("decode_token", "s", 0.004);
  return figures;
}

TEST(FloorTest, AStrideIsItsOwnFramesAndTheWholeWindow) {
  const Floor floor = floor_of(of_a_window(), 40, 8, 16);
  EXPECT_NEAR(floor.window, 0.11 / 5 + 0.25, 1e-12) << "by the medians";
  EXPECT_NEAR(floor.answer, 15 * 0.004, 1e-12) << "the first of 16 tokens came with the window";
  EXPECT_NEAR(floor.together(28, 8), 28 * 0.272 / 8, 1e-12);
  EXPECT_NEAR(floor.one_by_one(28, 8), 28 * 0.332 / 8, 1e-12);
}

TEST(FloorTest, AnAnswerOfOneTokenTakesNoPassOfItsOwn) {
  EXPECT_EQ(floor_of(of_a_window(), 40, 8, 1).answer, 0);
  Figures figures;
  figures.add("vision", "s", 0.1);
  figures.add("prefill", "s", 0.25);
  EXPECT_EQ(floor_of(figures, 40, 8, 16).answer, 0) << "the model never says more";
}

TEST(FloorTest, IsMeasuredOfTheCamerasWindowAndItsLongestAnswerThatIsTold) {
  config::CameraSettings camera;
  camera.stream.fps = 2;
  camera.stream.window = {40s, 8s};
  camera.rules.resize(3);
  for (config::RuleSettings& rule : camera.rules) rule.explain = true;
  camera.rules[0].max_tokens = 30;
  camera.rules[1].max_tokens = 50;
  camera.rules[2].max_tokens = 90;
  camera.rules[2].explain = false;
  EXPECT_EQ(floor_tokens(camera, true), 50);
  EXPECT_EQ(floor_tokens(camera, false), 1) << "nothing is told but what an alert asks for";
  const EngineBenchOptions bench = floor_bench(camera, 448, 224, 1);
  EXPECT_EQ(bench.frames, 80);
  EXPECT_EQ(bench.width, 448);
  EXPECT_EQ(bench.height, 224);
  EXPECT_EQ(bench.tokens, 2) << "a token beside the first is timed";
  EXPECT_EQ(bench.sequences, 1);
  EXPECT_EQ(floor_bench(camera, 448, 224, 50).tokens, 50);
}

TEST(FloorTest, WithoutAWindowThereIsNone) {
  Figures figures;
  figures.add("vision", "s", 1);
  EXPECT_THROW(floor_of(figures, 40, 8, 1), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::bench
