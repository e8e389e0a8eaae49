#include "actors/supervisor/camera_log.h"

#include "actors/messages/log_fields.h"

namespace vigil::actors {

void CameraLog::changed(const Fleet::Change& change, bool expected) {
  const LogFields about(*change.watch);
  const std::string line = "camera " + change.watch->name + ": " + std::string(name_of(change.state));
  const bool leaving = expected || change.leaving;
  if ((change.state == CameraState::down && !leaving) || change.state == CameraState::stalled) {
    log(spdlog::level::warn, line + ": " + change.reason);
  } else {
    // Who was told that it was lost is told that it is back.
    log(change.recovered ? spdlog::level::warn : spdlog::level::info, line);
  }
}

void CameraLog::recorded(const RecorderReport& news, const WatchSettings& watch) {
  const LogFields about(watch);
  if (news.recording) {
    log(spdlog::level::info, "camera " + news.camera + ": recorded");
  } else {
    log(spdlog::level::warn, "camera " + news.camera + ": not recorded: " + news.reason);
  }
}

// Of all cameras, and seldom: no bound on lines about each may hide it.
void CameraLog::exhausted(bool exhausted) {
  if (exhausted) {
    logger_.error("no file descriptor is left: cameras that are down wait until there is one (ulimit -n)");
  } else {
    logger_.warn("there are file descriptors again: cameras that waited for them are opened");
  }
}

void CameraLog::tick() {
  if (const std::size_t missed = lines_.take_missed(clock_.now()))
    logger_.warn("cameras: {} more lines in the last minute are left out; /status tells the state of each",
                 missed);
}

void CameraLog::log(spdlog::level::level_enum level, const std::string& line) {
  if (logger_.should_log(level) && lines_.take(clock_.now())) logger_.log(level, line);
}

}  // namespace vigil::actors
