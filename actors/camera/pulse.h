// What the supervisor can see of a camera without asking: a camera that waits inside of its source answers no
// message.
#pragma once

#include <atomic>
#include <optional>
#include <stop_token>

#include "base/clock.h"

namespace vigil::actors {

/// Shared by a camera's incarnations (one at a time writes when it waits and where it is), its recorder,
/// which only reads, and the supervisor, which reads, cancels, and ends the waiting of an incarnation that is
/// gone. Thread-safe.
class Pulse {
 public:
  using TimePoint = base::Clock::TimePoint;

  /// The camera is about to wait for its source, or a packet came and it waits for the next; `awaited` is
  /// when it is done.
  void await(TimePoint now) { awaiting_since_.store(now.time_since_epoch().count()); }
  void awaited() { awaiting_since_.store(0); }

  /// Since when the camera has been waiting without a packet, if it waits.
  std::optional<TimePoint> awaiting_since() const {
    const auto since = awaiting_since_.load();
    if (since == 0) return std::nullopt;
    return TimePoint(TimePoint::duration(since));
  }

  /// Camera time of the last frame, so that the next incarnation's goes on behind it; negative before the
  /// first.
  void set_position(double seconds, TimePoint now) {
    position_at_.store(now.time_since_epoch().count());
    position_.store(seconds);
  }
  double position() const { return position_.load(); }
  TimePoint position_at() const { return TimePoint(TimePoint::duration(position_at_.load())); }

  /// Ends the waiting for the source, now and for ever.
  void cancel() { stop_.request_stop(); }
  std::stop_token cancelled() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::atomic<TimePoint::rep> awaiting_since_{0};
  std::atomic<double> position_{-1};
  std::atomic<TimePoint::rep> position_at_{0};
};

}  // namespace vigil::actors
