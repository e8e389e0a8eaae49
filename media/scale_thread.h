// Scaling beside decoding: a scaler on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>

#include "media/ffmpeg.h"
#include "media/media.h"
#include "media/scaler.h"

namespace vigil::media {

/// Converts frames in the order of `start` on one thread. Only the owner calls it. Destroying it waits for
/// the frame in work and drops the rest.
class ScaleThread {
 public:
  ScaleThread();
  ~ScaleThread();

  /// The future throws what Scaler::convert throws.
  std::future<Image> start(Frame frame, Size size);

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::packaged_task<Image(Scaler&)>> tasks_;
  // Last: it stops before what it uses goes.
  std::jthread thread_;
};

}  // namespace vigil::media
