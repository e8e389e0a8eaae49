#include "bench/read_cost.h"

#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

config::CameraSettings of_file(const std::string& file) {
  config::CameraSettings camera;
  camera.inputs = {{{file, "shown"}, {config::Role::detect}}};
  return camera;
}

TEST(ReadCost, IsTheProcessorTimeOfASecondOfVideo) {
  const std::string video = std::string(VIGIL_SOURCE_DIR) + "/tests/videos/car-detection.mp4";
  const media::Size small{56, 56};
  const ReadCost cost = read_cost(of_file(video), small);
  const auto reader = media::VideoReader::open(video, {});
  EXPECT_NEAR(cost.stream_seconds, reader->info().duration_seconds, 0.5);
  // What a machine takes is none of a test's business, but it is something, and less than a thousand times
  // real time.
  EXPECT_GT(cost.read, 0);
  EXPECT_LT(cost.read, 1000);
  EXPECT_GT(cost.null_decode, 0);
  EXPECT_LT(cost.null_decode, 1000);
}

TEST(ReadCost, OfNoVideoIsAnErrorThatShowsTheFileAsItMayBeShown) {
  try {
    read_cost(of_file(std::string(VIGIL_SOURCE_DIR) + "/tests/videos/none.mp4"), std::nullopt);
    ADD_FAILURE();
  } catch (const media::Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("shown", 0), 0U) << error.what();
  }
}

}  // namespace
}  // namespace vigil::bench
