#include "actors/messages/data.h"

#include <algorithm>
#include <cmath>

#include "actors/messages/topic.h"

namespace vigil::actors {

double patch_duration(const WatchSettings& watch, int frames_per_patch) {
  return frames_per_patch / watch.fps;
}

int patches_in(const WatchSettings& watch, base::Duration time, int frames_per_patch) {
  // A hair less than exact, so that 2 s at 1 s each are 2 patches whatever the rounding of fps.
  const double patches = base::seconds(time) / patch_duration(watch, frames_per_patch) - 1e-6;
  return std::max(1, static_cast<int>(std::ceil(patches)));
}

stream::SlidingWindow::Shape window_shape(const WatchSettings& watch) {
  return {.length = base::seconds(watch.window.length),
          .stride = base::seconds(watch.window.stride),
          .tolerance = 0.5 / watch.fps};
}

std::string alert_topic(const WatchSettings& watch, const config::RuleSettings& rule) {
  return text_of(TopicName{TopicKind::rule, "", watch.tenant, watch.name, rule.name});
}

std::vector<std::string> alert_topics(const WatchSettings& watch, const config::RuleSettings& rule) {
  std::vector<std::string> topics = {alert_topic(watch, rule)};
  for (const std::string& name : rule.topics) {
    topics.push_back(text_of(TopicName{TopicKind::shared, name, watch.tenant, watch.name, rule.name}));
  }
  return topics;
}

std::string status_topic(const WatchSettings& watch) {
  return text_of(TopicName{TopicKind::status, "", watch.tenant, watch.name, ""});
}

std::string process_topic(std::string_view process) {
  return text_of(TopicName{TopicKind::process, process, "", "", ""});
}

}  // namespace vigil::actors
