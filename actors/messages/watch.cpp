#include "actors/messages/watch.h"

namespace vigil::actors {

WatchSettings watch_of(const config::CameraSettings& camera, std::uint64_t version) {
  WatchSettings watch;
  watch.name = camera.name;
  watch.version = version;
  watch.tenant = camera.tenant();
  watch.labels = camera.labels;
  watch.rules = camera.rules;
  for (config::RuleSettings& rule : watch.rules) rule.snooze_until = camera.snoozed_until(rule);
  watch.window = camera.stream.window;
  watch.pruning = camera.stream.pruning;
  watch.fps = camera.stream.fps;
  watch.lossless = camera.is_file() && camera.stream.pace == config::Pace::fast;
  watch.keep = camera.stream.keep;
  return watch;
}

}  // namespace vigil::actors
