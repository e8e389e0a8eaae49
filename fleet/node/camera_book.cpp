#include "fleet/node/camera_book.h"

#include <exception>
#include <utility>

#include "cluster/planning/plan.h"
#include "config/file/references.h"
#include "config/running/degradation.h"

namespace vigil::fleet {

CameraBook::CameraBook(const base::Clock& clock, Options options)
    : clock_(clock), options_(std::move(options)), looked_(clock.now()) {}

void CameraBook::run_by(SettingsPtr settings) {
  settings_ = std::move(settings);
  cameras_.clear();
  for (const config::CameraSettings& camera : settings_->cameras)
    if (camera.enabled) cameras_.emplace(camera.name, &camera);
  for (auto each = open_.begin(); each != open_.end();) {
    const auto camera = cameras_.find(each->first);
    if (camera == cameras_.end()) {
      each = open_.erase(each);
      continue;
    }
    Open now = resolved(*camera->second);
    if (now.fault != each->second.fault && !now.fault.empty() && options_.warn)
      options_.warn("camera " + each->first + ": " + now.fault);
    replace((each++)->second, std::move(now));
  }
}

const config::CameraSettings* CameraBook::find(const std::string& camera) const {
  const auto found = cameras_.find(camera);
  return found == cameras_.end() ? nullptr : found->second;
}

std::vector<std::string> CameraBook::names() const {
  std::vector<std::string> names;
  names.reserve(cameras_.size());
  for (const auto& [name, camera] : cameras_) names.push_back(name);
  return names;
}

CameraBook::Open CameraBook::resolved(const config::CameraSettings& camera) const {
  try {
    return {options_.resolve(camera), {}};
  } catch (const std::exception& error) {
    return {config::without_secrets(camera, error.what()), error.what()};
  }
}

void CameraBook::replace(Open& open, Open now) {
  now.rung = std::move(open.rung);
  open = std::move(now);
}

CameraBook::Open& CameraBook::find_open(const std::string& camera) {
  const auto found = open_.find(camera);
  if (found != open_.end()) return found->second;
  Open& made = open_.emplace(camera, resolved(*cameras_.at(camera))).first->second;
  if (!made.fault.empty() && options_.warn) options_.warn("camera " + camera + ": " + made.fault);
  return made;
}

config::CameraSettings CameraBook::open(const std::string& camera, const std::string& rung) {
  Open& open = find_open(camera);
  if (rung != cluster::kRefused) open.rung = rung;
  config::CameraSettings settings = open.settings;
  config::apply_snoozes(settings, snoozes_);
  config::lower(settings, open.rung);
  return settings;
}

void CameraBook::keep(const std::set<std::string>& own) {
  std::erase_if(open_, [&own](const auto& each) { return !own.contains(each.first); });
}

bool CameraBook::look_again() {
  if (!is_time()) return false;
  looked_ = clock_.now();
  bool differs = false;
  for (auto& [name, open] : open_) {
    const config::CameraSettings& camera = *cameras_.at(name);
    if (open.fault.empty() && !config::may_change(camera)) continue;
    Open now = resolved(camera);
    // While a secret is being replaced it may not be there: what was read holds.
    if (!now.fault.empty() && open.fault.empty()) continue;
    if (now.settings == open.settings) continue;
    replace(open, std::move(now));
    differs = true;
  }
  return differs;
}

std::string CameraBook::fault_by(const config::Settings& other) const {
  for (const config::CameraSettings& camera : other.cameras) {
    const auto open = open_.find(camera.name);
    // One that cannot be opened as it is holds nothing up.
    if (!camera.enabled || open == open_.end() || !open->second.fault.empty()) continue;
    if (std::string fault = resolved(camera).fault; !fault.empty())
      return "cameras." + camera.name + '.' + fault;
  }
  return {};
}

}  // namespace vigil::fleet
