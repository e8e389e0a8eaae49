// How cameras are recorded: what keeps their packets, and who fills it. Without actors.
#pragma once

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
#include "config/settings.h"
#include "media/packet_history.h"

namespace vigil::actors {

/// A history for each camera, for as long as the camera's time goes on, which another pulse begins anew. The
/// camera fills it, or a recorder does of an input that is recorded and not watched; of the recorders of a
/// camera the last one counts. Not thread-safe.
class Recordings {
 public:
  /// Whatever tells a recorder from all others; the caller chooses it.
  using RecorderId = std::uint64_t;

  struct Options {
    /// How much longer than its window a clip is.
    config::Duration pre_roll{0};
    config::Duration post_roll{0};
    /// Packets of each camera, at most.
    std::size_t memory = 0;
    /// Of all jitter.
    std::uint64_t seed = 0;
  };

  explicit Recordings(Options options) : options_(options) {}
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  struct Start {
    std::shared_ptr<media::PacketHistory> history;
    /// The camera's time begins anew, and the history with it.
    bool anew = false;
    /// Fills the history before this one, and is to be stopped.
    std::optional<RecorderId> outdated;
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
  /// Of the attempts to open the input that is recorded, whoever makes them.
  Backoff& backoff(const std::string& camera) const { return *find(camera).backoff; }
  /// This recorder fills the history from now on.
  void begun(const std::string& camera, RecorderId recorder);
  /// It is recorded, or not: whether that was not said before.
  bool is_news(const std::string& camera, bool recording);

  /// Whether it is the one that counts, of any camera.
  bool is_current(RecorderId recorder) const { return recorders_.contains(recorder); }
  /// It fills nothing any more: the camera; nothing if it was not the one that counts.
  std::optional<std::string> ended(RecorderId recorder);

 private:
  struct Entry {
    std::shared_ptr<Pulse> pulse;
    std::shared_ptr<media::PacketHistory> history;
    std::shared_ptr<Backoff> backoff;
    std::optional<RecorderId> recorder = {};
    /// What was said last.
    std::optional<bool> recording = {};
  };

  const Entry& find(const std::string& camera) const { return entries_.at(camera); }
  double seconds_kept(const config::CameraSettings& camera) const;
  std::optional<RecorderId> let_go(Entry& entry);

  Options options_;
  std::map<std::string, Entry> entries_;
  /// The cameras of those that count.
  std::map<RecorderId, std::string> recorders_;
};

}  // namespace vigil::actors
