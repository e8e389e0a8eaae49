// How cameras are recorded: what keeps their packets and how much of them, who fills it, and what is said of
// it. Without actors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/camera/backoff.h"
#include "actors/camera/pulse.h"
#include "actors/camera/recorder.h"
#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/supervisor/dialer.h"
#include "config/settings.h"
#include "media/packet_history.h"

namespace vigil::actors {

/// A history for each camera, for as long as the camera's time goes on, which another pulse begins anew. The
/// camera fills it, or a recorder does of an input that is recorded and not watched; of the recorders of a
/// camera the last one counts. Not thread-safe.
class RecorderFleet {
 public:
  /// Whatever tells a recorder from all others; the caller chooses it.
  using RecorderId = std::uint64_t;

  struct Options {
    /// How much longer than its window a clip is.
    base::Duration pre_roll{0};
    base::Duration post_roll{0};
    /// Packets of each camera, at most.
    std::size_t memory = 0;
    /// Of all jitter.
    std::uint64_t seed = 0;
  };

  explicit RecorderFleet(Options options) : options_(options) {}
  RecorderFleet(const RecorderFleet&) = delete;
  RecorderFleet& operator=(const RecorderFleet&) = delete;

  /// Until a recorder that failed, which reading does not make it, is started again.
  static constexpr std::chrono::seconds kRest{10};

  struct Start {
    std::shared_ptr<media::PacketHistory> history;
    /// Where the camera keeps those that it reads itself; null: a recorder does.
    std::shared_ptr<media::PacketHistory> own;
    /// The camera's time begins anew, and the history with it.
    bool anew = false;
    /// Fills the history before this one, and is to be stopped.
    std::optional<RecorderId> outdated = {};
  };
  /// A camera is about to be watched: where its packets are kept.
  Start start(const config::CameraSettings& camera, const std::shared_ptr<Pulse>& pulse);

  /// Its window may be another.
  void alter(const config::CameraSettings& camera);

  /// The camera is gone; who is to be stopped.
  std::optional<RecorderId> remove(const std::string& camera);

  /// Cancels the pulses of all that are recorded by others than themselves; who is to be stopped.
  std::vector<RecorderId> stop();

  // Of cameras that were started, and not removed.

  /// What a recorder is made with.
  RecorderOptions recorder_options(const CameraPtr& camera) const;
  std::shared_ptr<const Pulse> pulse(const std::string& camera) const { return find(camera).pulse; }
  /// This recorder fills the history from now on.
  void begun(const std::string& camera, RecorderId recorder);
  /// Whether it is recorded, and if not, why: the same, unless that was said before.
  std::optional<RecorderReport> said(RecorderReport report);
  /// The input could not be reached, or not be tried, which no recorder tried.
  struct Unreachable {
    base::Clock::TimePoint again;
    std::optional<RecorderReport> news;
  };
  Unreachable unreachable(const std::string& camera, const std::string& reason, base::Clock::TimePoint now);

  // Of any recorder.

  /// Whether it is the one that counts, of any camera.
  bool is_current(RecorderId recorder) const { return recorders_.contains(recorder); }
  /// It gives its source back. What comes of it is decided when it has ended, since there must not be two.
  void rests(RecorderId recorder, const SourceRest& rest);
  /// It fills nothing any more. Nothing if it was not the one that counts. `failed`: not by its own will.
  struct Loss {
    std::string camera;
    SourceEnd source;
  };
  std::optional<Loss> lost(RecorderId recorder, bool failed, base::Clock::TimePoint now);

 private:
  struct Entry {
    std::shared_ptr<Pulse> pulse;
    std::shared_ptr<media::PacketHistory> history;
    std::shared_ptr<Backoff> backoff;
    std::optional<RecorderId> recorder = {};
    /// Of the recorder, which has not ended yet.
    std::optional<SourceRest> rest = {};
    /// What was said last.
    std::optional<bool> recording = {};
  };

  const Entry& find(const std::string& camera) const { return entries_.at(camera); }
  static std::shared_ptr<media::PacketHistory> own(const Entry& entry, const config::CameraSettings& camera);
  double seconds_kept(const config::CameraSettings& camera) const;
  std::optional<RecorderId> let_go(Entry& entry);

  Options options_;
  std::map<std::string, Entry> entries_;
  /// The cameras of those that count.
  std::map<RecorderId, std::string> recorders_;
};

}  // namespace vigil::actors
