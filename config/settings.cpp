#include "config/settings.h"

#include <algorithm>

#include "config/values/address.h"

namespace vigil::config {

void set_preset(PruningSettings& pruning, Preset preset) {
  pruning.policy = meaning(preset).policy;
  pruning.refresh = meaning(preset).refresh;
  pruning.refresh_share = PruningSettings().refresh_share;
}

std::string AlertSettings::replay_endpoint() const {
  return replay.empty() ? endpoint_next_to(bind) : replay;
}

std::string CameraSettings::tenant() const {
  const auto label = labels.find("tenant");
  return label == labels.end() ? "default" : label->second;
}

MaskedText CameraSettings::address(Role role) const {
  const auto serves = [role](const InputSettings& input) {
    return std::find(input.roles.begin(), input.roles.end(), role) != input.roles.end();
  };
  auto input = std::find_if(inputs.begin(), inputs.end(), serves);
  if (input == inputs.end()) {
    if (role != Role::detect) return address(Role::detect);
    input = inputs.begin();
  }
  return with_credentials(input->url, username.value,
                          password_file.empty() ? password.value : password_read.value);
}

bool CameraSettings::has_labels(const std::map<std::string, std::string>& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& each) {
    const auto label = labels.find(each.first);
    return label != labels.end() && label->second == each.second;
  });
}

std::optional<base::Clock::WallTime> CameraSettings::snoozed_until(const RuleSettings& rule) const {
  return std::max(snooze_until, rule.snooze_until);
}

bool is_file(std::string_view url) {
  if (has_scheme(url)) return url.starts_with("file://");
  // What is kept in memory is a file like any other.
  return !url.starts_with("/dev/") || url.starts_with("/dev/shm/");
}

bool same_stream(const CameraSettings& a, const CameraSettings& b) {
  StreamSettings stream = a.stream;
  stream.window.length = b.stream.window.length;
  stream.window.memory = b.stream.window.memory;
  stream.pruning.refresh = b.stream.pruning.refresh;
  stream.pruning.refresh_share = b.stream.pruning.refresh_share;
  stream.pruning.kv_budget = b.stream.pruning.kv_budget;
  stream.pruning.audit = b.stream.pruning.audit;
  stream.pruning.kept = b.stream.pruning.kept;
  stream.degrade = b.stream.degrade;
  stream.priority = b.stream.priority;
  stream.keep = b.stream.keep;
  return stream == b.stream && a.inputs == b.inputs && a.username == b.username && a.password == b.password &&
         a.password_file == b.password_file && a.password_read == b.password_read;
}

}  // namespace vigil::config
