// A camera on a thread of its own, as its actor runs it, with the supervisor's watch over it; what happens is
// written down, and can be waited for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "actors/camera/camera.h"
#include "actors/supervisor/fleet.h"
#include "cluster/process/clock.h"

namespace vigil::testing {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

/// A live camera of 5 frames a second that is stalled after two seconds, and tried again in a moment.
std::shared_ptr<actors::OwnCamera> live_camera(const std::string& url, const std::string& name = "gate");

class Watched final : actors::CameraListener {
 public:
  explicit Watched(std::shared_ptr<actors::OwnCamera> settings);
  ~Watched() override;
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  struct Frame {
    double seconds;
    media::Size size;
  };

  /// Everything so far.
  struct Story {
    /// "up", or "down: why".
    std::vector<std::string> states;
    std::vector<Frame> frames;
    std::uint64_t packets = 0;
    std::uint64_t reconnects = 0;
    std::uint64_t dropped = 0;

    std::size_t count(const std::string& state) const;
  };
  Story story() const;

  /// Whether it comes true within half a minute.
  bool await(const std::function<bool(const Story&)>& holds) const;
  /// Whether the camera enters a state that starts so, after the first `seen` that it has been in.
  bool await_state(const std::string& state, std::size_t seen = 0) const;
  /// Whether so many more frames come.
  bool await_frames(std::size_t more) const;

 private:
  void on_state(actors::CameraState state, const std::string& reason) override;
  void on_frame() override {}
  void on_dropped(std::uint64_t frames, const char* reason) override;
  void on_reconnect() override;
  void on_damaged_packets(std::uint64_t) override {}

  void run(const std::stop_token& stop);
  void watch(const std::stop_token& stop);
  void tell(const actors::Fleet::Change& change);

  cluster::SystemClock clock_;
  actors::CameraPtr settings_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  actors::Fleet fleet_;
  Story story_;
  actors::Camera camera_;
  // Last: they stop before what they use goes.
  std::jthread runner_;
  std::jthread watcher_;
};

}  // namespace vigil::testing
