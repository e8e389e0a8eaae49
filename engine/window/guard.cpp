#include "engine/window/guard.h"

#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/device/error.h"

namespace vigil::window {
namespace {

/// Whether the error that is being handled leaves a device unusable: not every library that reports one says
/// so, but the next call to the device does. Waits for what was submitted before, since whoever gets the
/// error may give the memory away that it writes.
bool is_lost(std::span<const kernels::Stream> streams, const std::exception& error) {
  const auto* device = dynamic_cast<const kernels::DeviceError*>(&error);
  if (device != nullptr && device->lost()) return true;
  try {
    for (const kernels::Stream& stream : streams) stream.synchronize();
    return false;
  } catch (const kernels::DeviceError& next) {
    return next.lost();
  }
}

template <typename Compute>
auto guard(std::span<const kernels::Stream> streams, const Compute& compute) {
  try {
    return compute();
  } catch (const std::exception& error) {
    if (is_lost(streams, error)) throw DeviceLost(error.what());
    throw;
  }
}

class GuardedEncoder final : public VisionEncoder {
 public:
  GuardedEncoder(std::unique_ptr<VisionEncoder> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  int frames_per_patch() const override { return part_->frames_per_patch(); }
  model::PictureSize frame_size(model::PictureSize source) const override {
    return part_->frame_size(source);
  }
  std::vector<model::VisualTokensPtr> encode(std::span<const PatchFrames> patches) override {
    return guard(streams_, [&] { return part_->encode(patches); });
  }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<VisionEncoder> part_;
};

class GuardedPrefiller final : public WindowPrefiller {
 public:
  GuardedPrefiller(std::unique_ptr<WindowPrefiller> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  std::int64_t max_visual_tokens() const override { return part_->max_visual_tokens(); }
  std::int64_t room() const override { return part_->room(); }
  std::int64_t room_for(const WindowRequest& request) const override { return part_->room_for(request); }
  std::vector<AskedWindowPtr> ask(std::span<const WindowRequest> requests) override {
    return guard(streams_, [&] { return part_->ask(requests); });
  }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<WindowPrefiller> part_;
};

class GuardedGenerator final : public AnswerGenerator {
 public:
  GuardedGenerator(std::unique_ptr<AnswerGenerator> part, std::vector<kernels::Stream> streams)
      : streams_(std::move(streams)), part_(std::move(part)) {}

  std::vector<Completion> generate(std::span<const Continuation> continuations) override {
    return guard(streams_, [&] { return part_->generate(continuations); });
  }

 private:
  std::vector<kernels::Stream> streams_;
  std::unique_ptr<AnswerGenerator> part_;
};

}  // namespace

std::unique_ptr<VisionEncoder> guarded(std::unique_ptr<VisionEncoder> part,
                                       std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedEncoder>(std::move(part), std::move(streams));
}

std::unique_ptr<WindowPrefiller> guarded(std::unique_ptr<WindowPrefiller> part,
                                         std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedPrefiller>(std::move(part), std::move(streams));
}

std::unique_ptr<AnswerGenerator> guarded(std::unique_ptr<AnswerGenerator> part,
                                         std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedGenerator>(std::move(part), std::move(streams));
}

}  // namespace vigil::window
