// What a whole node has in a simulation instead of sources, an engine, topics and a log.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>

#include "tests/actors/fakes.h"
#include "tests/fleet/sim/actor_node.h"

namespace vigil::fleet::sim {

/// A camera without an end: of three windows, one after the other, somebody is in two, so that each is news.
class EndlessReader final : public media::VideoReader {
 public:
  EndlessReader(double fps, std::chrono::seconds stride) : fps_(fps), stride_(stride) {}
  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return stats_; }
  const std::vector<media::FrameMotion>& rest() const override { return rest_; }
  std::optional<media::SampledFrame> next() override {
    media::SampledFrame frame;
    frame.seconds = static_cast<double>(stats_.sampled_frames) / fps_;
    const auto windows = static_cast<int>(frame.seconds) / static_cast<int>(stride_.count());
    frame.image = actors::testing::image(static_cast<std::uint8_t>(windows % 3 < 2 ? 90 : 10));
    frame.motion = std::make_shared<media::MotionField>();
    frame.sequence = stats_.sampled_frames++;
    return frame;
  }

 private:
  const double fps_;
  const std::chrono::seconds stride_;
  media::SourceInfo info_;
  media::ReadStats stats_;
  std::vector<media::FrameMotion> rest_;
};

/// Tells whose patches it was given.
class Encoder final : public run::VisionEncoder {
 public:
  explicit Encoder(std::function<void(const std::string& camera)> taken) : taken_(std::move(taken)) {}
  int frames_per_patch() const override { return 2; }
  model::PictureSize frame_size(model::PictureSize source) const override { return source; }
  std::vector<model::VisualTokensPtr> encode(std::span<const run::PatchFrames> patches) override {
    std::vector<model::VisualTokensPtr> result;
    for (const run::PatchFrames& patch : patches) {
      taken_(patch.camera);
      result.push_back(actors::testing::one_token(patch, *patch.frames.front().rgb));
    }
    return result;
  }

 private:
  const std::function<void(const std::string&)> taken_;
};

/// A gateway's topics, that everybody reads at once, for one time of serving.
class Topics final : public actors::Publisher {
 public:
  Topics(ActorCommons& commons, Host& host, const actors::Outbox& outbox)
      : commons_(commons), host_(host), outbox_(outbox) {}
  bool publish(const actors::OutboxEvent& event) override {
    if (!host_.does(Point::publish)) return false;
    handed_over_ = event.position;
    const auto last = last_.find(event.topic);
    if (last != last_.end() && event.sequence > last->second + 1)
      commons_.world.fail("gateway " + host_.name + " published " + event.topic + '#' +
                          std::to_string(event.sequence) + " after #" + std::to_string(last->second));
    // What was told before a crash is told again, maybe behind what was read of another gateway since.
    std::uint64_t& newest = last_[event.topic];
    newest = std::max(newest, event.sequence);
    commons_.events.published(host_, event, outbox_);
    return true;
  }
  std::uint64_t published() const override { return handed_over_; }
  void drain() override {}
  void start_over() override { handed_over_ = 0; }
  void remember(const actors::OutboxEvent& event) override { last_[event.topic] = event.sequence; }
  void serve() override {}
  std::uint64_t take_dropped() override { return 0; }

 private:
  ActorCommons& commons_;
  Host& host_;
  const actors::Outbox& outbox_;
  std::map<std::string, std::uint64_t> last_;
  std::uint64_t handed_over_ = 0;
};

/// What nodes log, with the world's time, if somebody wants to see it.
class Shown final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  Shown(const World& world, const Host& host) : world_(world), host_(host) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::clog << static_cast<double>(world_.now().count()) / 1e6 << ' ' << host_.name << ": "
              << std::string_view(message.payload.data(), message.payload.size()) << '\n';
  }
  void flush_() override {}

  const World& world_;
  const Host& host_;
};

inline spdlog::sink_ptr sink_of(const World& world, const Host& host) {
  // Nothing in this process writes to the environment.
  if (std::getenv("VIGIL_SIM_LOG") == nullptr)  // NOLINT(concurrency-mt-unsafe)
    return std::make_shared<spdlog::sinks::null_sink_mt>();
  return std::make_shared<Shown>(world, host);
}

}  // namespace vigil::fleet::sim
