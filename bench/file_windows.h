// The windows of a file, asked one after the other by a camera's settings: what its policies save, and what
// they change of the answers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "actors/camera/camera.h"
#include "actors/messages/data.h"
#include "actors/stream/window_desk.h"
#include "base/clock.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answer.h"
#include "engine/stream/stream_desk.h"

namespace vigil::bench {

struct FileWindow {
  actors::WindowAnswersPtr window;
  stream::WindowTokens tokens;
  /// Since the window before: groups of the frames, and those of them that the vision tower computed.
  std::int64_t groups = 0;
  std::int64_t encoded = 0;
  /// Of the matrix products since the window before.
  double flops = 0;
};

/// The classes of `vigil run` in one thread, so that equal files give equal answers. Not thread-safe.
class FileWindows {
 public:
  struct Parts {
    run::VisionEncoder& encoder;
    stream::StreamDesk& desk;
    stream::QuestionCompiler& questions;
    actors::ReaderFactory open;
    actors::FrameShape shape;
    const base::Clock& clock;
  };

  /// The parts have to outlive it, and the desk is its alone meanwhile. `camera`: of a file, which is read
  /// once, as fast as it can be. Starts the process's product meter.
  FileWindows(Parts parts, config::CameraSettings camera);

  /// The next window with the answers to all rules; nothing after the last one. Throws std::runtime_error for
  /// a source that cannot be read and for a window without answers, run::DeviceLost, and no more of use then.
  std::optional<FileWindow> next();
  /// Passed over so far.
  std::uint64_t damaged_packets() const { return damage_.packets; }

 private:
  /// All else does not concern a file that is read once.
  class Damage final : public actors::CameraListener {
   public:
    std::uint64_t packets = 0;

   private:
    void on_state(actors::CameraState, const std::string&) override {}
    void on_frame() override {}
    void on_dropped(std::uint64_t, const char*) override {}
    void on_reconnect() override {}
    void on_damaged_packets(std::uint64_t more) override { packets += more; }
  };

  void read();
  void encode();
  void ask();

  Parts parts_;
  actors::CameraPtr settings_;
  actors::WatchPtr watch_;
  actors::Pulse pulse_;
  Damage damage_;
  actors::Camera camera_;
  actors::WindowDesk windows_;
  /// Read, and not encoded yet.
  std::vector<actors::FramePatchPtr> patches_;
  std::deque<FileWindow> answered_;
  std::int64_t groups_ = 0, encoded_ = 0;
  double flops_ = 0;
  bool is_over_ = false;
};

/// A line of JSON.
std::string to_json(const FileWindow& window);

}  // namespace vigil::bench
