#include "engine/window/guard.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "kernels/device/error.h"

namespace vigil::window {
namespace {

/// Whether the error that is being handled leaves the device unusable. Not every library that reports one
/// says so, but the next call to the device does.
bool is_lost(const kernels::Stream& stream, const std::exception& error) {
  const auto* device = dynamic_cast<const kernels::DeviceError*>(&error);
  if (device != nullptr && device->lost()) return true;
  try {
    stream.synchronize();
    return false;
  } catch (const kernels::DeviceError& next) {
    return next.lost();
  }
}

template <typename Compute>
auto guard(const kernels::Stream& stream, const Compute& compute) {
  try {
    return compute();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::logic_error&) {
    throw;  // of what was asked, before it was computed
  } catch (const std::exception& error) {
    if (is_lost(stream, error)) throw DeviceLost(error.what());
    throw;
  }
}

class GuardedEncoder final : public VisionEncoder {
 public:
  GuardedEncoder(std::unique_ptr<VisionEncoder> part, kernels::Stream stream)
      : stream_(std::move(stream)), part_(std::move(part)) {}

  int frames_per_patch() const override { return part_->frames_per_patch(); }
  model::PictureSize frame_size(model::PictureSize source) const override {
    return part_->frame_size(source);
  }
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override {
    return guard(stream_, [&] { return part_->encode(patches); });
  }

 private:
  kernels::Stream stream_;
  std::unique_ptr<VisionEncoder> part_;
};

class GuardedPrefiller final : public WindowPrefiller {
 public:
  GuardedPrefiller(std::unique_ptr<WindowPrefiller> part, kernels::Stream stream)
      : stream_(std::move(stream)), part_(std::move(part)) {}

  std::int64_t max_visual_tokens() const override { return part_->max_visual_tokens(); }
  std::int64_t room() const override { return part_->room(); }
  std::int64_t room_for(const WindowRequest& request) const override { return part_->room_for(request); }
  std::vector<AskedWindowPtr> ask(std::span<const WindowRequest> requests) override {
    return guard(stream_, [&] { return part_->ask(requests); });
  }

 private:
  kernels::Stream stream_;
  std::unique_ptr<WindowPrefiller> part_;
};

class GuardedGenerator final : public AnswerGenerator {
 public:
  GuardedGenerator(std::unique_ptr<AnswerGenerator> part, kernels::Stream stream)
      : stream_(std::move(stream)), part_(std::move(part)) {}

  std::vector<Answer> generate(std::span<const Continuation> continuations) override {
    return guard(stream_, [&] { return part_->generate(continuations); });
  }

 private:
  kernels::Stream stream_;
  std::unique_ptr<AnswerGenerator> part_;
};

}  // namespace

std::unique_ptr<VisionEncoder> guarded(std::unique_ptr<VisionEncoder> part, kernels::Stream stream) {
  return std::make_unique<GuardedEncoder>(std::move(part), std::move(stream));
}

std::unique_ptr<WindowPrefiller> guarded(std::unique_ptr<WindowPrefiller> part, kernels::Stream stream) {
  return std::make_unique<GuardedPrefiller>(std::move(part), std::move(stream));
}

std::unique_ptr<AnswerGenerator> guarded(std::unique_ptr<AnswerGenerator> part, kernels::Stream stream) {
  return std::make_unique<GuardedGenerator>(std::move(part), std::move(stream));
}

}  // namespace vigil::window
