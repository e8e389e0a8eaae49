#include "actors/supervisor/recordings.h"

#include <chrono>
#include <functional>
#include <utility>

namespace vigil::actors {
namespace {

/// Evidence that is asked for later than this finds the beginning of its clip gone.
constexpr std::chrono::seconds kLatestAnswer{10};

}  // namespace

// As long as the clip, and as it takes until an answer asks for it.
double Recordings::seconds_kept(const config::CameraSettings& camera) const {
  const config::WindowSettings& window = camera.stream.window;
  return config::seconds(options_.pre_roll + window.length + options_.post_roll + 2 * window.stride +
                         kLatestAnswer);
}

Recordings::Start Recordings::start(const config::CameraSettings& camera,
                                    const std::shared_ptr<Pulse>& pulse) {
  Entry& entry = entries_[camera.name];
  if (entry.pulse == pulse) {
    // Its window may have changed while no actor of it ran.
    entry.history->keep(seconds_kept(camera));
    return {entry.history, false, std::nullopt};
  }
  const auto outdated = let_go(entry);
  const std::uint64_t seed = options_.seed + std::hash<std::string>{}(camera.name) + 1;
  entry = {pulse,
           std::make_shared<media::PacketHistory>(
               media::PacketHistory::Limits{seconds_kept(camera), options_.memory}),
           std::make_shared<Backoff>(camera.stream.reconnect, seed)};
  return {entry.history, true, outdated};
}

void Recordings::alter(const config::CameraSettings& camera) {
  const auto entry = entries_.find(camera.name);
  if (entry != entries_.end()) entry->second.history->keep(seconds_kept(camera));
}

std::optional<Recordings::RecorderId> Recordings::let_go(Entry& entry) {
  if (!entry.recorder) return std::nullopt;
  entry.pulse->cancel();
  recorders_.erase(*entry.recorder);
  return std::exchange(entry.recorder, std::nullopt);
}

std::optional<Recordings::RecorderId> Recordings::remove(const std::string& camera) {
  const auto entry = entries_.find(camera);
  if (entry == entries_.end()) return std::nullopt;
  const auto outdated = let_go(entry->second);
  entries_.erase(entry);
  return outdated;
}

std::vector<Recordings::RecorderId> Recordings::stop() {
  std::vector<RecorderId> running;
  for (const auto& [recorder, camera] : recorders_) {
    find(camera).pulse->cancel();
    running.push_back(recorder);
  }
  return running;
}

RecorderOptions Recordings::recorder_options(const CameraPtr& camera) const {
  const Entry& entry = find(camera->name);
  RecorderOptions options{camera, entry.history};
  options.backoff = entry.backoff;
  return options;
}

void Recordings::begun(const std::string& camera, RecorderId recorder) {
  Entry& entry = entries_.at(camera);
  if (entry.recorder) recorders_.erase(*entry.recorder);
  entry.recorder = recorder;
  recorders_[recorder] = camera;
}

bool Recordings::is_news(const std::string& camera, bool recording) {
  return std::exchange(entries_.at(camera).recording, recording) != recording;
}

std::optional<std::string> Recordings::ended(RecorderId recorder) {
  const auto found = recorders_.extract(recorder);
  if (!found) return std::nullopt;
  entries_.at(found.mapped()).recorder.reset();
  return found.mapped();
}

}  // namespace vigil::actors
