// From the timestamps that a container gives, missing, jumping or wild, to seconds that never run backwards.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vigil::media {

/// Turns the timestamps of frames, in order of presentation, into seconds after the first frame. A timestamp
/// that goes back, or more than `kSuspicious` ahead, waits for the next frame: if that one continues where
/// the timestamps had been, the strange one was a single wild value and is replaced; if not, the source's
/// clock was really set.
class Timeline {
 public:
  /// A longer step ahead than this is not believed at once.
  static constexpr double kSuspicious = 10.0;

  /// `largest_gap`: a lasting step ahead of up to so many seconds is kept as a gap in time; a longer one, and
  /// every step back, is closed: time goes on by one frame's duration. `origin` is the timestamp of second 0;
  /// without it the first frame's.
  explicit Timeline(double largest_gap, std::optional<double> origin = std::nullopt);

  /// Adds a frame with its timestamp (nothing if it has none) and how long it is normally shown, both in
  /// seconds. Returns the times of the frames now certain: of none, this one, or the waiting one and this
  /// one.
  std::vector<double> push(std::optional<double> timestamp, double duration);

  /// The time of the frame that still waits when the source ends.
  std::vector<double> finish();

  /// Wild values replaced, steps back and gaps of more than `kSuspicious`.
  std::uint64_t jumps() const { return jumps_; }

 private:
  struct Doubt {
    double timestamp;
    double duration;
  };

  bool continues(double from, double to) const { return to >= from && to - from <= kSuspicious; }
  double accept(double timestamp, double duration);
  double replace(double duration);
  double settle_lasting(const Doubt& doubt);

  double largest_gap_;
  /// seconds = timestamp - origin; unset until a timestamp was seen.
  std::optional<double> origin_;
  /// Timestamp, time and duration of the last certain frame.
  std::optional<double> last_timestamp_;
  double last_seconds_ = 0;
  double last_duration_ = 0;
  bool started_ = false;
  std::optional<Doubt> doubt_;
  std::uint64_t jumps_ = 0;
};

}  // namespace vigil::media
