#include "actors/messages/data.h"

#include <algorithm>
#include <cmath>

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
  return "alert/" + watch.tenant + '/' + watch.name + '/' + rule.name + '/';
}

std::vector<std::string> alert_topics(const WatchSettings& watch, const config::RuleSettings& rule) {
  std::vector<std::string> topics = {alert_topic(watch, rule)};
  for (const std::string& name : rule.topics) {
    topics.push_back("topic/" + name + '/' + watch.tenant + '/' + watch.name + '/' + rule.name + '/');
  }
  return topics;
}

bool is_whole_topic(std::string_view topic) {
  std::vector<std::string_view> names;
  for (auto end = topic.find('/'); end != std::string_view::npos; end = topic.find('/')) {
    if (end == 0) return false;
    names.push_back(topic.substr(0, end));
    topic.remove_prefix(end + 1);
  }
  if (!topic.empty() || names.empty()) return false;
  if (names.front() == "alert") return names.size() == 4;
  if (names.front() == "topic") return names.size() == 5;
  if (names.front() == "process") return names.size() == 2;
  return names.front() == "status" && names.size() == 3;
}

std::string status_topic(const WatchSettings& watch) {
  return "status/" + watch.tenant + '/' + watch.name + '/';
}

std::string process_topic(std::string_view process) {
  return "process/" + std::string(process) + '/';
}

}  // namespace vigil::actors
