#include "config/running/changes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "config/schema/fields.h"

namespace vigil::config {
namespace {

/// What can change while running; what the defaults say, cameras tell.
bool is_live(std::string_view key) {
  return key == "defaults" || key == "cameras" || key == "rules" || key == "log.level";
}

/// Visitor of `describe`: where the value of each key is that cannot change while running.
class FixedValues {
 public:
  FixedValues(std::map<std::string, const void*>& places, std::string prefix)
      : places_(places), prefix_(std::move(prefix)) {}

  template <class T, class... Rest>
  void field(const char* key, T& value, Rest&&...) {
    if (!is_live(prefix_ + key)) places_[prefix_ + key] = &value;
  }
  template <class S>
  void section(const char* key, S& value, const char*) {
    if (is_live(prefix_ + key)) return;
    FixedValues below(places_, prefix_ + key + '.');
    describe(below, value);
  }
  template <class S>
  void list(const char* key, std::vector<S>& values, const char* help) {
    field(key, values, help);
  }
  template <class S>
  void named(const char* key, std::vector<S>& values, const S&, const char* help) {
    field(key, values, help);
  }

 private:
  std::map<std::string, const void*>& places_;
  std::string prefix_;
};

/// Visitor of `describe`: which of these values are others here. A key has one type, so that what was found
/// under it is what is compared with it.
class Differences {
 public:
  Differences(const std::map<std::string, const void*>& places, std::vector<std::string>& keys,
              std::string prefix)
      : places_(places), keys_(keys), prefix_(std::move(prefix)) {}

  template <class T, class... Rest>
  void field(const char* key, T& value, Rest&&...) {
    const auto place = places_.find(prefix_ + key);
    if (place == places_.end()) return;
    if (!(*static_cast<const T*>(place->second) == value)) keys_.push_back(prefix_ + key);
  }
  template <class S>
  void section(const char* key, S& value, const char*) {
    Differences below(places_, keys_, prefix_ + key + '.');
    describe(below, value);
  }
  template <class S>
  void list(const char* key, std::vector<S>& values, const char* help) {
    field(key, values, help);
  }
  template <class S>
  void named(const char* key, std::vector<S>& values, const S&, const char* help) {
    field(key, values, help);
  }

 private:
  const std::map<std::string, const void*>& places_;
  std::vector<std::string>& keys_;
  std::string prefix_;
};

std::map<std::string, const CameraSettings*> enabled_cameras(const Settings& settings) {
  std::map<std::string, const CameraSettings*> cameras;
  for (const CameraSettings& camera : settings.cameras) {
    if (camera.enabled) cameras.emplace(camera.name, &camera);
  }
  return cameras;
}

}  // namespace

bool Changes::empty() const {
  return added.empty() && removed.empty() && restarted.empty() && altered.empty() && fixed.empty() &&
         !log_level;
}

Changes compare(const Settings& running, const Settings& wanted) {
  Changes changes;
  const auto before = enabled_cameras(running);
  const auto after = enabled_cameras(wanted);
  for (const CameraSettings& camera : running.cameras) {
    if (camera.enabled && !after.contains(camera.name)) changes.removed.push_back(camera.name);
  }
  for (const CameraSettings& camera : wanted.cameras) {
    if (!camera.enabled) continue;
    const auto known = before.find(camera.name);
    if (known == before.end()) {
      changes.added.push_back(camera.name);
    } else if (!same_stream(*known->second, camera)) {
      changes.restarted.push_back(camera.name);
    } else if (*known->second != camera) {
      changes.altered.push_back(camera.name);
    }
  }
  changes.log_level = running.log.level != wanted.log.level;
  // Visitors take what they visit as theirs to change.
  Settings from = running;
  Settings to = wanted;
  std::map<std::string, const void*> places;
  FixedValues values(places, "");
  describe(values, from);
  Differences differences(places, changes.fixed, "");
  describe(differences, to);
  return changes;
}

std::string describe_changes(const Changes& changes) {
  std::string text;
  const auto add = [&text](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += (text.empty() ? "" : "; ") + std::string(what);
    for (const std::string& name : names) text += (name == names.front() ? " " : ", ") + name;
  };
  add("added", changes.added);
  add("removed", changes.removed);
  add("restarted", changes.restarted);
  add("altered", changes.altered);
  if (changes.log_level) add("altered", {"log.level"});
  add("not applied before a restart:", changes.fixed);
  return text.empty() ? "nothing" : text;
}

std::vector<std::string> fixed_keys() {
  Settings settings;
  std::map<std::string, const void*> places;
  FixedValues values(places, "");
  describe(values, settings);
  std::vector<std::string> keys;
  keys.reserve(places.size());
  for (const auto& [key, place] : places) keys.push_back(key);
  return keys;
}

}  // namespace vigil::config
