// Reading beside whatever uses the frames: a reader on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "media/media.h"

namespace vigil::media {

/// A reader that yields what another yields, but reads ahead of its caller on a thread of its own.
class ReadAhead final : public VideoReader {
 public:
  /// Up to `frames` samples ahead (at least 1, else std::invalid_argument). `inner` and its SizePolicy are
  /// called on the other thread only.
  ReadAhead(std::unique_ptr<VideoReader> inner, std::size_t frames);
  /// Waits for the `next` of `inner` in work: cancel a source that may block through ReadOptions::stop first.
  ~ReadAhead() override;

  const SourceInfo& info() const override { return info_; }
  /// An error of `inner` comes after the samples before it.
  std::optional<SampledFrame> next() override;
  /// As of the sample that `next` gave last.
  const ReadStats& stats() const override { return stats_; }
  /// Empty until `next` gave nothing.
  const std::vector<FrameMotion>& rest() const override { return rest_; }

  /// Whether `next` would return at once.
  bool ready() const;

 private:
  /// What one `next` of `inner` left behind.
  struct Step {
    std::optional<SampledFrame> frame;
    ReadStats stats;
    std::vector<FrameMotion> rest;
    std::exception_ptr error;

    bool last() const { return !frame; }
  };

  void run(const std::stop_token& stop);
  Step read();
  Step take();

  // Of the reading thread.
  std::unique_ptr<VideoReader> inner_;
  const std::size_t frames_;

  // Of the caller.
  const SourceInfo info_;
  ReadStats stats_;
  std::vector<FrameMotion> rest_;
  bool ended_ = false;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Step> steps_;
  // Last: it stops before what it uses goes.
  std::jthread thread_;
};

}  // namespace vigil::media
