#include "media/read_ahead.h"

#include <stdexcept>
#include <utility>

namespace vigil::media {

ReadAhead::ReadAhead(std::unique_ptr<VideoReader> inner, std::size_t frames)
    : inner_(std::move(inner)), frames_(frames), info_(inner_->info()), stats_(inner_->stats()) {
  if (frames == 0) throw std::invalid_argument("reading ahead needs room for at least one frame");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ReadAhead::~ReadAhead() = default;

std::optional<SampledFrame> ReadAhead::next() {
  if (ended_) return std::nullopt;
  Step step = take();
  stats_ = std::move(step.stats);
  rest_ = std::move(step.rest);
  ended_ = step.last();
  if (step.error) std::rethrow_exception(step.error);
  return std::move(step.frame);
}

bool ReadAhead::ready() const {
  if (ended_) return true;
  const std::lock_guard lock(mutex_);
  return !steps_.empty();
}

void ReadAhead::run(const std::stop_token& stop) {
  bool last = false;
  while (!last && !stop.stop_requested()) {
    Step step = read();
    last = step.last();
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return steps_.size() < frames_; })) return;
    steps_.push_back(std::move(step));
    lock.unlock();
    changed_.notify_one();
  }
}

ReadAhead::Step ReadAhead::read() {
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

ReadAhead::Step ReadAhead::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !steps_.empty(); });
  Step step = std::move(steps_.front());
  steps_.pop_front();
  lock.unlock();
  changed_.notify_one();
  return step;
}

}  // namespace vigil::media
