#include "engine/run/guard.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/past/past.h"
#include "engine/run/passes.h"
#include "engine/run/vision_encoder.h"
#include "kernels/device/error.h"

namespace vigil::run {
namespace {

/// Throws what it is told to, in each of its calls that computes.
template <typename Error>
struct FailingEncoder final : VisionEncoder {
  explicit FailingEncoder(Error thrown) : error(std::move(thrown)) {}
  int frames_per_patch() const override { return 2; }
  model::PictureSize frame_size(model::PictureSize source) const override { return source; }
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames>) override { throw error; }
  Error error;
};

template <typename Error>
struct FailingPast final : SequencePast {
  explicit FailingPast(Error thrown) : error(std::move(thrown)) {}
  void append(std::span<const std::int32_t>, std::span<const std::int32_t>) override { throw error; }
  void lay() override { throw error; }
  void forget_block() override { throw error; }
  void resize(std::int64_t) override { throw error; }
  std::int64_t tokens() const override { return 11; }
  std::vector<int> patches() const override { return {2, 1}; }
  std::int64_t host_bytes() const override { return 22; }
  std::int64_t device_bytes() const override { return 33; }
  Error error;
};

template <typename Error>
struct FailingPasses final : Passes {
  explicit FailingPasses(Error thrown, bool* settled_by_call = nullptr)
      : error(std::move(thrown)), settled(settled_by_call) {}
  void run(const Pass& pass) override {
    if (pass.before.empty()) throw error;
    // The past that it has made, and no guard of it.
    dynamic_cast<FailingPast<Error>&>(pass.before.at(0).past->underlying()).append({}, {});
  }
  std::unique_ptr<SequencePast> make_past(const past::PastOptions&) override {
    return std::make_unique<FailingPast<Error>>(error);
  }
  std::span<const float> key_distances(const Pass&) override { throw error; }
  std::int32_t likeliest(std::size_t i) const override { return static_cast<std::int32_t>(i) + 40; }
  std::span<const model::Candidate> likeliest(std::size_t, std::size_t) override { throw error; }
  std::span<const float> logits(std::size_t) override { throw error; }
  void copy_pages(std::span<const kv::PageCopy>) override { throw error; }
  void take_pages(std::span<const kv::PageCopy>) override { throw error; }
  std::size_t page_bytes() const override { return 1; }
  std::uint64_t pages_form() const override { return 1; }
  void read_pages(std::span<const kv::PageId>, std::byte*) override { throw error; }
  void write_pages(std::span<const kv::PageId>, std::span<const std::byte* const>) override { throw error; }
  void settle() noexcept override { *settled = true; }
  Error error;
  bool* settled;
};

template <typename Expected, typename Error>
void expect(const Error& error) {
  const std::vector<kernels::Stream> streams{kernels::Stream::cpu(1), kernels::Stream::cpu(1)};
  const auto encoder = guarded(std::unique_ptr<VisionEncoder>(new FailingEncoder<Error>(error)), streams);
  const auto passes = guarded(std::unique_ptr<Passes>(new FailingPasses<Error>(error)), streams);
  EXPECT_THROW(encoder->encode({}), Expected);
  EXPECT_THROW(passes->run({}), Expected);
  const auto past = passes->make_past({});
  EXPECT_THROW(past->append({}, {}), Expected);
  EXPECT_THROW(past->lay(), Expected);
  EXPECT_THROW(past->forget_block(), Expected);
  EXPECT_THROW(past->resize(1), Expected);
  Pass pass;
  pass.before.push_back({0, past.get(), 0});
  EXPECT_THROW(passes->run(pass), Expected);
  EXPECT_THROW(passes->key_distances({}), Expected);
  EXPECT_THROW(passes->likeliest(0, 2), Expected);
  EXPECT_THROW(passes->logits(0), Expected);
  EXPECT_THROW(passes->copy_pages({}), Expected);
  EXPECT_THROW(passes->take_pages({}), Expected);
}

TEST(Guard, AnErrorThatStaysIsALostDevice) {
  expect<DeviceLost>(kernels::DeviceError("unspecified launch failure", true));
  const auto encoder = guarded(std::unique_ptr<VisionEncoder>(new FailingEncoder<kernels::DeviceError>(
                                   kernels::DeviceError("unspecified launch failure", true))),
                               {kernels::Stream::cpu(1)});
  try {
    encoder->encode({});
    FAIL();
  } catch (const DeviceLost& error) {
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
  const std::vector<kernels::Stream> streams{kernels::Stream::cpu(1), kernels::Stream::cpu(1)};
  bool settled = false;
  const auto encoder =
      guarded(std::unique_ptr<VisionEncoder>(new FailingEncoder<std::bad_alloc>({})), streams);
  const auto passes =
      guarded(std::unique_ptr<Passes>(new FailingPasses<std::bad_alloc>({}, &settled)), streams);
  EXPECT_EQ(encoder->frames_per_patch(), 2);
  EXPECT_EQ(encoder->frame_size({30, 40}).height, 40);
  EXPECT_EQ(passes->likeliest(2), 42);
  const auto past = passes->make_past({});
  EXPECT_EQ(past->tokens(), 11);
  EXPECT_EQ(past->patches(), (std::vector<int>{2, 1}));
  EXPECT_EQ(past->host_bytes(), 22);
  EXPECT_EQ(past->device_bytes(), 33);
  passes->settle();
  EXPECT_TRUE(settled);
}

}  // namespace
}  // namespace vigil::run
