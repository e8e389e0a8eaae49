#include "engine/run/guard.h"

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/vision_encoder.h"
#include "engine/stream/guarded_parts.h"
#include "kernels/device/error.h"

namespace vigil::stream {
namespace {

/// Throws what it is told to, in each of its calls that computes.
template <typename Error>
struct Failing final : run::VisionEncoder, WindowPrefiller, AnswerGenerator {
  explicit Failing(Error thrown) : error(std::move(thrown)) {}
  int frames_per_patch() const override { return 2; }
  model::PictureSize frame_size(model::PictureSize source) const override { return source; }
  std::vector<model::VisualTokensPtr> encode(std::span<const run::PatchFrames>) override { throw error; }
  std::int64_t max_visual_tokens() const override { return 3; }
  std::int64_t room() const override { return 4; }
  std::int64_t room_for(const WindowRequest&) const override { return 5; }
  std::vector<AskedWindowPtr> ask(std::span<const WindowRequest>) override { throw error; }
  std::vector<Completion> generate(std::span<const Continuation>) override { throw error; }
  Error error;
};

template <typename Expected, typename Error>
void expect(const Error& error) {
  const std::vector<kernels::Stream> streams{kernels::Stream::cpu(1), kernels::Stream::cpu(1)};
  const auto encoder = guarded(std::unique_ptr<run::VisionEncoder>(new Failing<Error>(error)), streams);
  const auto prefiller = guarded(std::unique_ptr<WindowPrefiller>(new Failing<Error>(error)), streams);
  const auto generator = guarded(std::unique_ptr<AnswerGenerator>(new Failing<Error>(error)), streams);
  EXPECT_THROW(encoder->encode({}), Expected);
  EXPECT_THROW(prefiller->ask({}), Expected);
  EXPECT_THROW(generator->generate({}), Expected);
}

TEST(Guard, AnErrorThatStaysIsALostDevice) {
  expect<run::DeviceLost>(kernels::DeviceError("unspecified launch failure", true));
  const auto encoder = guarded(std::unique_ptr<run::VisionEncoder>(new Failing<kernels::DeviceError>(
                                   kernels::DeviceError("unspecified launch failure", true))),
                               {kernels::Stream::cpu(1)});
  try {
    encoder->encode({});
    FAIL();
  } catch (const run::DeviceLost& error) {
    EXPECT_EQ(std::string(error.what()), "unspecified launch failure");
  }
}

TEST(Guard, OtherErrorsAreWhatTheyWere) {
  expect<kernels::DeviceError>(kernels::DeviceError("invalid argument"));
  expect<kernels::OutOfDeviceMemory>(kernels::OutOfDeviceMemory("GPU 0 has no room for 5 MiB"));
  expect<std::bad_alloc>(std::bad_alloc());
  expect<std::invalid_argument>(std::invalid_argument("a window without frames"));
  expect<std::runtime_error>(std::runtime_error("something else"));
}

TEST(Guard, WhatDoesNotComputeIsPassedOn) {
  using Part = Failing<std::bad_alloc>;
  const std::vector<kernels::Stream> streams{kernels::Stream::cpu(1), kernels::Stream::cpu(1)};
  const auto encoder = guarded(std::unique_ptr<run::VisionEncoder>(new Part({})), streams);
  const auto prefiller = guarded(std::unique_ptr<WindowPrefiller>(new Part({})), streams);
  EXPECT_EQ(encoder->frames_per_patch(), 2);
  EXPECT_EQ(encoder->frame_size({30, 40}).height, 40);
  EXPECT_EQ(prefiller->max_visual_tokens(), 3);
  EXPECT_EQ(prefiller->room(), 4);
  EXPECT_EQ(prefiller->room_for({}), 5);
}

}  // namespace
}  // namespace vigil::stream
