// Why a blocking call of FFmpeg has to end: it was cancelled, took too long, or wanted what it may not have.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "media/ffmpeg.h"

namespace vigil::media {

/// Tells FFmpeg to give up a blocking call. Its address is held by FFmpeg: neither copied nor moved.
class Interrupt {
 public:
  explicit Interrupt(std::stop_token stop) : stop_(std::move(stop)) {}
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  AVIOInterruptCB callback() { return {&Interrupt::check, this}; }

  /// Calls may block so long from now; zero: for ever. What timed out once stays so: a demuxer may answer the
  /// interrupt with what it had, and with an end of file only after that.
  void allow(std::chrono::milliseconds time);

  /// Ends the source for good; the first reason stays.
  void refuse(const std::string& reason);

  /// A source is being opened: it is refused when it was read so far that it cannot be a source of pictures,
  /// since what a demuxer keeps before the first of them has no other bound. Nothing: it is open, or is not.
  void watch(const AVFormatContext* opening) { opening_ = opening; }

  /// Whether a blocking call has to end now.
  bool expired();

  bool cancelled() const { return stop_.stop_requested(); }
  bool timed_out() const { return timed_out_; }
  /// Empty unless it was refused.
  const std::string& refusal() const { return refusal_; }

 private:
  static int check(void* self);

  std::stop_token stop_;
  const AVFormatContext* opening_ = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  bool timed_out_ = false;
  std::string refusal_;
};

}  // namespace vigil::media
