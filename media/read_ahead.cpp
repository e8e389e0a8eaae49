#include "media/read_ahead.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace vigil::media {
namespace {

/// What one `next` of the inner reader left behind.
struct Step {
  std::optional<SampledFrame> frame;
  ReadStats stats;
  std::vector<FrameMotion> rest;
  std::exception_ptr error;

  bool last() const { return !frame; }
};

class ReadAhead final : public VideoReader {
 public:
  ReadAhead(std::unique_ptr<VideoReader> inner, std::size_t frames)
      : inner_(std::move(inner)),
        frames_(frames),
        info_(inner_->info()),
        stats_(inner_->stats()),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  const SourceInfo& info() const override { return info_; }
  const ReadStats& stats() const override { return stats_; }
  const std::vector<FrameMotion>& rest() const override { return rest_; }

  std::optional<SampledFrame> next() override {
    if (ended_) return std::nullopt;
    Step step = take();
    stats_ = std::move(step.stats);
    rest_ = std::move(step.rest);
    ended_ = step.last();
    if (step.error) std::rethrow_exception(step.error);
    return std::move(step.frame);
  }

 private:
  void run(const std::stop_token& stop) {
    bool last = false;
    while (!last) {
      Step step = read();
      last = step.last();
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return steps_.size() < frames_; })) return;
      steps_.push_back(std::move(step));
      lock.unlock();
      changed_.notify_one();
    }
  }

  Step read() {
    Step step;
    try {
      step.frame = inner_->next();
    } catch (...) {
      step.error = std::current_exception();
    }
    step.stats = inner_->stats();
    if (step.last()) step.rest = inner_->rest();
    return step;
  }

  Step take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !steps_.empty(); });
    Step step = std::move(steps_.front());
    steps_.pop_front();
    lock.unlock();
    changed_.notify_one();
    return step;
  }

  // Of the reading thread.
  std::unique_ptr<VideoReader> inner_;
  const std::size_t frames_;

  // Of the caller.
  const SourceInfo info_;
  ReadStats stats_;
  std::vector<FrameMotion> rest_;
  bool ended_ = false;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Step> steps_;
  // Last: it stops before what it uses goes.
  std::jthread thread_;
};

}  // namespace

std::unique_ptr<VideoReader> read_ahead(std::unique_ptr<VideoReader> inner, std::size_t frames) {
  if (frames == 0) throw std::invalid_argument("reading ahead needs room for at least one frame");
  return std::make_unique<ReadAhead>(std::move(inner), frames);
}

}  // namespace vigil::media
