#include "engine/stream/guarded_parts.h"

#include <utility>

#include "engine/run/guard.h"

namespace vigil::stream {
namespace {

template <typename Compute>
auto guard(const std::vector<kernels::Stream>& streams, const Compute& compute) {
  try {
    return compute();
  } catch (...) {
    run::rethrow_judged(streams);
  }
}

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

std::unique_ptr<WindowPrefiller> guarded(std::unique_ptr<WindowPrefiller> part,
                                         std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedPrefiller>(std::move(part), std::move(streams));
}

std::unique_ptr<AnswerGenerator> guarded(std::unique_ptr<AnswerGenerator> part,
                                         std::vector<kernels::Stream> streams) {
  return std::make_unique<GuardedGenerator>(std::move(part), std::move(streams));
}

}  // namespace vigil::stream
