// Keeps the packets of an input that is recorded and not watched, without actors: reads, keeps the camera's
// time, reconnects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/camera/backoff.h"
#include "actors/camera/pulse.h"
#include "actors/messages/data.h"
#include "base/clock.h"
#include "media/packet_history.h"
#include "media/packet_reader.h"

namespace vigil::actors {

/// Opens a source; `media::PacketReader::open`, or a scripted one in tests. Throws media::Error.
using PacketReaderFactory = std::function<std::unique_ptr<media::PacketReader>(
    const std::string& url, const media::ReadOptions& options)>;

struct RecorderOptions {
  CameraPtr camera;
  /// Where its packets are kept, in the camera's time.
  std::shared_ptr<media::PacketHistory> history;
  /// Of the jitter.
  std::uint64_t seed = 0;
  /// As that of a camera.
  std::shared_ptr<Backoff> backoff = nullptr;
};

/// Told in the recorder's own thread.
class RecorderListener {
 public:
  virtual ~RecorderListener() = default;
  /// The input delivers, or does not any more, and why.
  virtual void on_recording(bool recording, const std::string& reason) = 0;
};

/// Not thread-safe. A step blocks as long as its source does, and no longer.
///
/// Two inputs of a camera share no clock: what comes now is taken to show what the watched input shows now,
/// whose time the pulse knows. So a clip may be off by as much as one input comes later than the other.
class Recorder {
 public:
  /// What to do after a step: call `step` again at once, or at `until`, its source being closed until then,
  /// or never.
  struct Step {
    enum class Next : std::uint8_t { again, rest, finished };
    Next next = Next::again;
    base::Clock::TimePoint until;
    /// Why it rests: no file descriptor was left.
    bool no_descriptor = false;
  };

  /// The clock, the pulse of the camera and the listener have to outlive the recorder. It ends when the pulse
  /// is cancelled.
  Recorder(RecorderOptions options, PacketReaderFactory open, const base::Clock& clock, const Pulse& pulse,
           RecorderListener& listener);

  Step step();

 private:
  using TimePoint = base::Clock::TimePoint;

  void connect();
  void read();
  void anchor(const media::KeptPacket& packet);
  Step fail(const std::string& reason, media::Error::Kind kind);

  RecorderOptions options_;
  PacketReaderFactory open_;
  const base::Clock& clock_;
  const Pulse& pulse_;
  RecorderListener& listener_;
  std::shared_ptr<Backoff> backoff_;
  std::unique_ptr<media::PacketReader> reader_;
  TimePoint retry_at_{};
  /// What was said last; nothing was.
  std::optional<bool> recording_;
  /// Camera time of the source's second 0, as the history knows it.
  std::optional<double> offset_;
};

}  // namespace vigil::actors
