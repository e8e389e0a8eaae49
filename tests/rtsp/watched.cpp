#include "tests/rtsp/watched.h"

#include <algorithm>
#include <utility>

#include "config/values/masked_text.h"

namespace vigil::testing {
namespace {

constexpr auto kPatience = 30s;
constexpr auto kWatchInterval = 20ms;

}  // namespace

std::shared_ptr<actors::OwnCamera> live_camera(const std::string& url, const std::string& name) {
  auto settings = std::make_shared<actors::OwnCamera>();
  settings->name = name;
  settings->stream.fps = 5;
  settings->stream.window = {4s, 2s};
  settings->stream.reconnect = {100ms, 400ms};
  settings->stream.stall_after = 2s;
  // Whatever the frames' size.
  config::set_preset(settings->stream.pruning, config::Preset::exact);
  settings->inputs = {{{url, config::mask_credentials(url)}, {config::Role::detect}}};
  return settings;
}

std::size_t Watched::Story::count(const std::string& state) const {
  return static_cast<std::size_t>(std::count_if(
      states.begin(), states.end(), [&](const std::string& each) { return each.starts_with(state); }));
}

Watched::Watched(std::shared_ptr<actors::OwnCamera> settings)
    : settings_(std::move(settings)),
      fleet_({settings_}, 1),
      camera_(
          {settings_,
           std::make_shared<const actors::WatchSettings>(actors::watch_of(*settings_)),
           {2, {}},
           false,
           0,
           1},
          [this](const std::string& url, const media::ReadOptions& options) {
            media::ReadOptions counting = options;
            counting.on_packet = [this, inner = options.on_packet](const media::PacketInfo& packet) {
              inner(packet);
              const std::lock_guard lock(mutex_);
              ++story_.packets;
              changed_.notify_all();
            };
            return media::VideoReader::open(url, counting);
          },
          clock_, *fleet_.pulse(settings_->name), *this),
      runner_([this](const std::stop_token& stop) { run(stop); }),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

Watched::~Watched() {
  runner_.request_stop();
  watcher_.request_stop();
  fleet_.pulse(settings_->name)->cancel();
}

void Watched::run(const std::stop_token& stop) {
  camera_.grant(1000);
  while (!stop.stop_requested()) {
    const actors::CameraStep step = camera_.step();
    std::unique_lock lock(mutex_);
    if (step.patch) {
      for (const auto& frame : step.patch->frames)
        story_.frames.push_back({step.patch->seconds, frame.image->size});
      camera_.grant(1);
      changed_.notify_all();
    }
    if (step.next == actors::CameraStep::Next::finished) return;
    if (step.next == actors::CameraStep::Next::wait)
      changed_.wait_until(lock, stop, step.until, [] { return false; });
  }
}

void Watched::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    for (const auto& change : fleet_.watch(clock_.now())) tell(change);
    changed_.wait_for(lock, stop, kWatchInterval, [] { return false; });
  }
}

void Watched::tell(const actors::Fleet::Change& change) {
  story_.states.push_back(std::string(actors::name_of(change.state)) +
                          (change.reason.empty() ? "" : ": " + change.reason));
  changed_.notify_all();
}

void Watched::on_state(actors::CameraState state, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (const auto change = fleet_.report(settings_->name, state, reason)) tell(*change);
}

void Watched::on_dropped(std::uint64_t frames, const char*) {
  const std::lock_guard lock(mutex_);
  story_.dropped += frames;
}

void Watched::on_reconnect() {
  const std::lock_guard lock(mutex_);
  ++story_.reconnects;
  changed_.notify_all();
}

Watched::Story Watched::story() const {
  const std::lock_guard lock(mutex_);
  return story_;
}

bool Watched::await(const std::function<bool(const Story&)>& holds) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return holds(story_); });
}

bool Watched::await_state(const std::string& state, std::size_t seen) const {
  return await([&](const Story& story) {
    return std::any_of(
        story.states.begin() + static_cast<std::ptrdiff_t>(std::min(seen, story.states.size())),
        story.states.end(), [&](const std::string& each) { return each.starts_with(state); });
  });
}

bool Watched::await_frames(std::size_t more) const {
  const std::size_t before = story().frames.size();
  return await([&](const Story& story) { return story.frames.size() >= before + more; });
}

}  // namespace vigil::testing
