#include "actors/supervisor/recorder_fleet.h"

#include <chrono>
#include <functional>
#include <utility>

#include "actors/camera/source_options.h"

namespace vigil::actors {
namespace {

/// Evidence that is asked for later than this finds the beginning of its clip gone.
constexpr std::chrono::seconds kLatestAnswer{10};

}  // namespace

// As long as the clip, and as it takes until an answer asks for it.
double RecorderFleet::seconds_kept(const config::CameraSettings& camera) const {
  const config::WindowSettings& window = camera.stream.window;
  return base::seconds(options_.pre_roll + window.length + options_.post_roll + 2 * window.stride +
                       kLatestAnswer);
}

std::shared_ptr<media::PacketHistory> RecorderFleet::own(const Entry& entry,
                                                         const config::CameraSettings& camera) {
  return camera.records_apart() ? nullptr : entry.history;
}

RecorderFleet::Start RecorderFleet::start(const config::CameraSettings& camera,
                                          const std::shared_ptr<Pulse>& pulse) {
  Entry& entry = entries_[camera.name];
  if (entry.pulse == pulse) {
    // Its window may have changed while no actor of it ran.
    entry.history->keep(seconds_kept(camera));
    return {entry.history, own(entry, camera), false};
  }
  const auto outdated = let_go(entry);
  const std::uint64_t seed = options_.seed + std::hash<std::string>{}(camera.name) + 1;
  entry = {pulse,
           std::make_shared<media::PacketHistory>(
               media::PacketHistory::Limits{seconds_kept(camera), options_.memory}),
           std::make_shared<Backoff>(camera.stream.reconnect, seed)};
  return {entry.history, own(entry, camera), true, outdated};
}

void RecorderFleet::alter(const config::CameraSettings& camera) {
  const auto entry = entries_.find(camera.name);
  if (entry != entries_.end()) entry->second.history->keep(seconds_kept(camera));
}

std::optional<RecorderFleet::RecorderId> RecorderFleet::let_go(Entry& entry) {
  if (!entry.recorder) return std::nullopt;
  entry.pulse->cancel();
  recorders_.erase(*entry.recorder);
  entry.rest.reset();
  return std::exchange(entry.recorder, std::nullopt);
}

std::optional<RecorderFleet::RecorderId> RecorderFleet::remove(const std::string& camera) {
  const auto entry = entries_.find(camera);
  if (entry == entries_.end()) return std::nullopt;
  const auto outdated = let_go(entry->second);
  entries_.erase(entry);
  return outdated;
}

std::vector<RecorderFleet::RecorderId> RecorderFleet::stop() {
  std::vector<RecorderId> running;
  for (const auto& [recorder, camera] : recorders_) {
    find(camera).pulse->cancel();
    running.push_back(recorder);
  }
  return running;
}

RecorderOptions RecorderFleet::recorder_options(const CameraPtr& camera) const {
  const Entry& entry = find(camera->name);
  RecorderOptions options{camera, entry.history};
  options.backoff = entry.backoff;
  return options;
}

void RecorderFleet::begun(const std::string& camera, RecorderId recorder) {
  Entry& entry = entries_.at(camera);
  if (entry.recorder) recorders_.erase(*entry.recorder);
  entry.recorder = recorder;
  entry.rest.reset();
  recorders_[recorder] = camera;
}

std::optional<RecorderReport> RecorderFleet::said(RecorderReport report) {
  auto& last = entries_.at(report.camera).recording;
  if (std::exchange(last, report.recording) == report.recording) return std::nullopt;
  return report;
}

RecorderFleet::Unreachable RecorderFleet::unreachable(const std::string& camera, const std::string& reason,
                                                      base::Clock::TimePoint now) {
  const auto again = next_attempt(*find(camera).backoff, media::Error::Kind::source, now);
  return {again, said({camera, false, reason})};
}

void RecorderFleet::rests(RecorderId recorder, const SourceRest& rest) {
  if (const auto found = recorders_.find(recorder); found != recorders_.end())
    entries_.at(found->second).rest = rest;
}

std::optional<RecorderFleet::Loss> RecorderFleet::lost(RecorderId recorder, bool failed,
                                                       base::Clock::TimePoint now) {
  const auto found = recorders_.extract(recorder);
  if (!found) return std::nullopt;
  Entry& entry = entries_.at(found.mapped());
  entry.recorder.reset();
  const auto rest = std::exchange(entry.rest, std::nullopt);
  Loss loss{found.mapped(), {}};
  if (failed) {
    loss.source = {SourceEnd::Next::rest, now + kRest};
  } else if (rest && rest->no_descriptor) {
    loss.source = {SourceEnd::Next::no_descriptor};
  } else if (rest) {
    loss.source = {SourceEnd::Next::rest, rest->until};
  }
  return loss;
}

}  // namespace vigil::actors
