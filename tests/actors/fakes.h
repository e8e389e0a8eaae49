// Twins of what the pipeline stands on: a clock that is told the time, scripted sources, a scripted vision
// tower.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/publisher.h"
#include "actors/camera/camera.h"
#include "actors/messages/data.h"
#include "base/clock.h"
#include "engine/run/vision_encoder.h"
#include "media/media.h"

namespace vigil::actors::testing {

using namespace std::chrono_literals;

class ManualClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::hours(1)) + elapsed_.load(); }
  // 2026-08-01T10:00:00Z
  WallTime wall() const override {
    return WallTime(std::chrono::seconds(1785578400)) + elapsed_.load() + jumped_.load();
  }
  void advance(base::Duration by) { elapsed_.store(elapsed_.load() + by); }
  /// Sets the wall clock, and nothing else, forward or back.
  void jump(base::Duration by) { jumped_.store(jumped_.load() + by); }

 private:
  std::atomic<base::Duration> elapsed_{base::Duration(0)};
  std::atomic<base::Duration> jumped_{base::Duration(0)};
};

/// A camera of 2 frames a second in windows of 4 s every 2 s, with one rule, "person".
inline std::shared_ptr<OwnCamera> camera(const std::string& name = "gate",
                                         config::Pace pace = config::Pace::fast,
                                         const std::string& url = "/clips/gate.mp4") {
  auto settings = std::make_shared<OwnCamera>();
  settings->name = name;
  settings->stream.window = {4s, 2s};
  settings->stream.pace = pace;
  settings->stream.loop = false;
  // All of its windows, unless a test is about what is not computed.
  config::set_preset(settings->stream.pruning, config::Preset::exact);
  settings->inputs = {{{url, url}, {config::Role::detect}}};
  settings->labels = {{"tenant", "north"}};
  config::RuleSettings rule;
  rule.name = "person";
  rule.prompt = "Is there a person in the room?";
  rule.cooldown = 0s;
  settings->rules = {rule};
  return settings;
}

/// What the pipeline knows of a camera.
inline WatchPtr watched(const config::CameraSettings& settings, std::uint64_t version = 1) {
  return std::make_shared<const WatchSettings>(watch_of(settings, version));
}
inline WatchPtr watch(const std::string& name = "gate", std::uint64_t version = 1) {
  return watched(*camera(name), version);
}

/// An image that carries a number, for the engine's twin to read.
inline std::shared_ptr<const media::Image> image(std::uint8_t value, media::Size size = {4, 2}) {
  auto picture = std::make_shared<media::Image>();
  picture->size = size;
  picture->rgb.assign(static_cast<std::size_t>(3 * size.width * size.height), value);
  return picture;
}

inline std::shared_ptr<const media::Image> halves(std::uint8_t left, std::uint8_t right, media::Size size) {
  auto picture = std::make_shared<media::Image>(*image(left, size));
  const auto width = static_cast<std::size_t>(3 * size.width);
  for (std::size_t i = 0; i < picture->rgb.size(); ++i)
    if (i % width >= width / 2) picture->rgb[i] = right;
  return picture;
}

/// What a scripted source does next: a frame, or an error.
struct Event {
  double seconds = 0;
  std::uint8_t value = 0;
  std::string error;
  media::Size size = {4, 2};
  /// Packets that were passed over before it.
  std::uint64_t damaged = 0;
  /// Of the right half, if that is another.
  std::optional<std::uint8_t> right = {};
};

class FakeReader final : public media::VideoReader {
 public:
  explicit FakeReader(std::deque<Event> script) : script_(std::move(script)) {}

  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return stats_; }
  const std::vector<media::FrameMotion>& rest() const override { return rest_; }
  std::optional<media::SampledFrame> next() override {
    if (script_.empty()) return std::nullopt;
    const Event event = script_.front();
    script_.pop_front();
    stats_.damaged_packets += event.damaged;
    if (!event.error.empty()) throw media::Error(event.error);
    media::SampledFrame frame;
    frame.image =
        event.right ? halves(event.value, *event.right, event.size) : image(event.value, event.size);
    frame.motion = std::make_shared<media::MotionField>();
    frame.seconds = event.seconds;
    frame.sequence = stats_.sampled_frames++;
    return frame;
  }

 private:
  std::deque<Event> script_;
  media::SourceInfo info_;
  media::ReadStats stats_;
  std::vector<media::FrameMotion> rest_;
};

/// Frames at 2 a second, each with its value.
inline std::deque<Event> frames(const std::vector<int>& values) {
  std::deque<Event> script;
  for (const int value : values) {
    script.push_back({static_cast<double>(script.size()) / 2, static_cast<std::uint8_t>(value), "", {4, 2}});
  }
  return script;
}

/// Opens the scripts of a URL one after the other; when they are used up, fails. Thread-safe.
class FakeSources {
 public:
  void add(const std::string& url, std::deque<Event> script) { scripts_[url].push_back(std::move(script)); }
  int opened() const { return opened_.load(); }

  ReaderFactory factory() {
    return [this](const std::string& url, const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
      const std::lock_guard lock(mutex_);
      ++opened_;
      auto& scripts = scripts_[url];
      if (scripts.empty()) throw media::Error(url + ": Connection refused");
      auto script = std::move(scripts.front());
      scripts.pop_front();
      return std::make_unique<FakeReader>(std::move(script));
    };
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::deque<std::deque<Event>>> scripts_;
  std::atomic<int> opened_{0};
};

/// The embeddings of so many equal tokens in a model of width 1.
inline kernels::Buffer numbers(float value, int count = 1) {
  kernels::Buffer buffer(kernels::Stream::cpu(1), static_cast<std::size_t>(count) * sizeof(float));
  std::fill_n(buffer.as<float>(), count, value);
  return buffer;
}

/// One token of a patch, which holds this value.
inline model::VisualTokensPtr one_token(const run::PatchFrames& patch, std::uint8_t value) {
  auto tokens = std::make_shared<model::VisualTokens>();
  tokens->embeddings = numbers(value);
  tokens->width = 1;
  tokens->kept = base::GridMask::all(1, 1);
  tokens->seconds = patch.seconds;
  tokens->duration = patch.duration;
  tokens->intra = patch.intra;
  return tokens;
}

/// One token a patch, which holds the value of the patch's first pixel. A patch of value 255 cannot be
/// encoded.
class FakeEncoder final : public run::VisionEncoder {
 public:
  int frames_per_patch() const override { return 2; }
  model::PictureSize frame_size(model::PictureSize source) const override { return source; }
  std::vector<model::VisualTokensPtr> encode(std::span<const run::PatchFrames> patches) override {
    std::vector<model::VisualTokensPtr> result;
    batches.push_back(patches.size());
    if (on_encode) on_encode();
    for (const run::PatchFrames& patch : patches) {
      frames += patch.frames.size();
      groups.push_back(patch.encoded);
      kept.push_back(patch.kept);
      standing_out.push_back(patch.standing_out);
      cameras.push_back(patch.camera);
      const std::uint8_t value = *patch.frames.front().rgb;
      if (value == 255) throw std::invalid_argument("a frame of 4 by 2 pixels");
      result.push_back(one_token(patch, value));
    }
    return result;
  }
  void forget(const std::string& camera) override { forgotten.push_back(camera); }

  std::vector<std::size_t> batches;
  /// Encoded so far.
  std::size_t frames = 0;
  /// Asked for of each patch.
  std::vector<std::optional<base::GridMask>> groups, kept, standing_out;
  std::vector<std::string> cameras;
  /// Those of which nothing is remembered any more.
  std::vector<std::string> forgotten;
  /// What happens while it computes.
  std::function<void()> on_encode;
};

/// Keeps what was published.
class FakePublisher : public Publisher {
 public:
  bool publish(const OutboxEvent& event) override {
    if (refuses) return false;
    messages.push_back(event);
    if (!holds_back) handed_over = event.position;
    return true;
  }
  std::uint64_t published() const override { return handed_over; }
  void drain() override {
    ++drained;
    if (!messages.empty()) handed_over = messages.back().position;
  }
  void start_over() override { handed_over = 0; }
  void remember(const OutboxEvent& event) override { remembered.push_back(event); }
  void serve() override { ++served; }
  std::uint64_t take_dropped() override { return std::exchange(dropped, 0); }

  std::vector<OutboxEvent> messages;
  std::vector<OutboxEvent> remembered;
  bool refuses = false;
  /// Whether what is taken is handed over later.
  bool holds_back = false;
  std::uint64_t handed_over = 0;
  int drained = 0;
  int served = 0;
  std::uint64_t dropped = 0;
};

}  // namespace vigil::actors::testing
