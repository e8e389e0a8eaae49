// What is left of a camera on each step, and what that takes.
#include "config/running/degradation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CameraSettings standard() {
  CameraSettings camera;
  camera.rules.resize(1);
  return camera;
}

double load(const CameraSettings& camera) {
  return load_of(camera).all;
}

std::vector<std::string> names(const std::vector<Rung>& ladder) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder) names.push_back(rung.name);
  return names;
}

TEST(Degradation, TheStandardCameraIsOneUnit) {
  EXPECT_DOUBLE_EQ(load(standard()), 1);
  EXPECT_NEAR(load_of(standard()).vision, 0.5, 0.01);
}

TEST(Degradation, WhatIsComputedIsCounted) {
  CameraSettings camera = standard();
  camera.stream.fps = 4;
  EXPECT_NEAR(load(camera), 2, 0.02) << "twice the frames";

  camera = standard();
  set_preset(camera.stream.pruning, Preset::exact);
  // 2 frames a second through the tower, and 40 s of them each 8 s, over half of 2 and half of 2.
  EXPECT_NEAR(load(camera), 6, 0.1);
  EXPECT_NEAR(load_of(camera).vision, 1, 0.02);

  camera = standard();
  set_preset(camera.stream.pruning, Preset::cheap);
  EXPECT_NEAR(load(camera), 0.5, 0.01);
  camera.stream.pruning.kept = 0.1;
  EXPECT_NEAR(load(camera), 0.2, 0.01);
  camera.stream.pruning.policy = Pruning::none;
  EXPECT_NEAR(load(camera), 2, 0.02) << "which cannot rank what it keeps";

  camera = standard();
  camera.stream.pruning.refresh = Refresh::topk;
  camera.stream.pruning.refresh_share = 0.2;
  EXPECT_NEAR(load(camera), (1 + 0.2 * 5 + 0.8) / 2, 0.02);

  camera = standard();
  camera.rules.resize(41);
  EXPECT_NEAR(load(camera), 1.25, 0.01) << "40 questions more each 8 s, of a tenth of a picture each";
}

TEST(Degradation, StepsAddUp) {
  CameraSettings camera = standard();
  EXPECT_THAT(names(ladder_of(camera)), ElementsAre("fewer frames", "more pruning", "longer stride"));
  lower(camera, "more pruning");
  EXPECT_EQ(camera.stream.fps, 1);
  EXPECT_EQ(camera.stream.pruning.kept, 0.25);
  EXPECT_EQ(camera.stream.window.stride, base::Duration(8000));

  camera = standard();
  lower(camera, "longer stride");
  EXPECT_EQ(camera.stream.fps, 1);
  EXPECT_EQ(camera.stream.pruning.kept, 0.25);
  EXPECT_EQ(camera.stream.window.stride, base::Duration(16'000));
}

TEST(Degradation, ARungTakesWhatTheCameraTakesThatWasLoweredToIt) {
  for (const Preset preset : {Preset::exact, Preset::balanced, Preset::cheap}) {
    CameraSettings camera = standard();
    set_preset(camera.stream.pruning, preset);
    double before = load(camera);
    for (const Rung& rung : ladder_of(camera)) {
      CameraSettings lowered = camera;
      lower(lowered, rung.name);
      EXPECT_DOUBLE_EQ(rung.load.all, load(lowered)) << rung.name;
      EXPECT_DOUBLE_EQ(rung.load.vision, load_of(lowered).vision) << rung.name;
      EXPECT_LT(rung.load.all, before) << rung.name;
      before = rung.load.all;
    }
  }
}

TEST(Degradation, AStepThatSavesNothingIsNoRung) {
  CameraSettings camera = standard();
  set_preset(camera.stream.pruning, Preset::exact);
  EXPECT_THAT(names(ladder_of(camera)), ElementsAre("fewer frames", "longer stride"))
      << "which cannot rank what it keeps";
  camera = standard();
  camera.stream.window.stride = camera.stream.window.length;
  EXPECT_THAT(names(ladder_of(camera)), ElementsAre("fewer frames", "more pruning"));
  camera.stream.degrade = {};
  EXPECT_THAT(ladder_of(camera), IsEmpty());
}

TEST(Degradation, WhatIsLoweredIsStillAConfiguration) {
  CameraSettings camera = standard();
  camera.stream.window.stride = base::Duration(3000);
  camera.stream.window.length = base::Duration(5000);
  camera.stream.fps = 0.4;
  camera.stream.degrade = {{.name = "least", .fps = 0.01, .kept = 0.05, .stride = 100}};
  lower(camera, "least");
  EXPECT_EQ(camera.stream.window.stride, base::Duration(5000)) << "no longer than the window";
  EXPECT_DOUBLE_EQ(camera.stream.fps, 0.2) << "a frame within each stride";
  EXPECT_EQ(camera.stream.pruning.kept, 0.05);
}

TEST(Degradation, NoStepTakesWhatWindowsRemember) {
  CameraSettings camera = standard();
  camera.stream.window.memory = std::chrono::minutes(10);
  for (const DegradeStep& step : camera.stream.degrade) {
    CameraSettings lowered = camera;
    lower(lowered, step.name);
    EXPECT_NE(lowered, camera) << step.name;
    EXPECT_EQ(lowered.stream.window.memory, std::chrono::minutes(10)) << step.name;
  }
}

TEST(Degradation, AStepThatThereIsNotChangesNothing) {
  const CameraSettings camera = standard();
  for (const char* step : {"", "refused", "full", "fewer", "more  pruning"}) {
    CameraSettings same = camera;
    lower(same, step);
    EXPECT_EQ(same, camera) << step;
  }
}

TEST(Degradation, OnlyPruningIsTakenWithoutOpeningTheCameraAnew) {
  CameraSettings camera = standard();
  camera.stream.degrade = {{.name = "pruned", .kept = 0.5}, {.name = "fewer", .fps = 0.5}};
  CameraSettings pruned = camera;
  lower(pruned, "pruned");
  EXPECT_NE(pruned, camera);
  EXPECT_TRUE(same_stream(pruned, camera));
  CameraSettings fewer = camera;
  lower(fewer, "fewer");
  EXPECT_FALSE(same_stream(fewer, camera));
  fewer = camera;
  fewer.stream.degrade = {};
  fewer.stream.priority = 3;
  EXPECT_TRUE(same_stream(fewer, camera)) << "what would be done is none of the stream's business";
}

}  // namespace
}  // namespace vigil::config
