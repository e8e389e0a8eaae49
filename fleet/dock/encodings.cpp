#include "fleet/dock/encodings.h"

#include <utility>

namespace vigil::fleet {

const Encodings::Camera* Encodings::find(const std::string& camera) const {
  const auto found = cameras_.find(camera);
  return found == cameras_.end() ? nullptr : &found->second;
}

void Encodings::tidy(const std::string& camera) {
  const Camera* const here = find(camera);
  if (here && !here->stream && !here->ends && !here->next && !here->lane) cameras_.erase(camera);
}

bool Encodings::goes_on(const std::string& camera, const std::string& stream) const {
  const Camera* const here = find(camera);
  return here != nullptr && here->stream == stream && (!here->lane || here->lane->goes_on) && !here->ends;
}

bool Encodings::join(const Beginning& beginning) {
  Camera& here = cameras_[beginning.watch->name];
  if (here.ends || (here.stream && !goes_on(beginning.watch->name, beginning.passage.stream))) {
    here.next = beginning;
    here.ends = true;
    return false;
  }
  here.next.reset();
  here.stream = beginning.passage.stream;
  return true;
}

void Encodings::leaves_stream(const std::string& camera) {
  if (stream_of(camera) != nullptr) cameras_.at(camera).stream_stays = true;
}

bool Encodings::is_here(const std::string& camera) const {
  const Camera* const here = find(camera);
  return here != nullptr && (here->stream || here->next);
}

const std::string* Encodings::stream_of(const std::string& camera) const {
  const Camera* const here = find(camera);
  return here != nullptr && here->stream ? &*here->stream : nullptr;
}

std::vector<std::string> Encodings::ending() const {
  std::vector<std::string> cameras;
  for (const auto& [name, camera] : cameras_)
    if (camera.ends) cameras.push_back(name);
  return cameras;
}

bool Encodings::waits(const std::string& camera) const {
  const Camera* const here = find(camera);
  return here != nullptr && here->next;
}

bool Encodings::renew(const actors::WatchPtr& watch) {
  if (!waits(watch->name)) return false;
  cameras_.at(watch->name).next->watch = watch;
  return true;
}

bool Encodings::drop_waiting(const std::string& camera) {
  if (!waits(camera)) return false;
  cameras_.at(camera).next.reset();
  tidy(camera);
  return true;
}

bool Encodings::give_up(const std::string& camera) {
  if (stream_of(camera) == nullptr) return false;
  Camera& here = cameras_.at(camera);
  here.stream.reset();
  here.next.reset();
  tidy(camera);
  return true;
}

std::optional<Encodings::Beginning> Encodings::begin_next(Camera& camera) {
  camera.stream_stays = false;
  if (camera.next) camera.stream = camera.next->passage.stream;
  return std::exchange(camera.next, std::nullopt);
}

std::optional<Encodings::Beginning> Encodings::stream_over(const std::string& camera) {
  const auto found = cameras_.find(camera);
  if (found == cameras_.end()) return std::nullopt;
  Camera& here = found->second;
  // It is another one that has ended: what is encoded here goes elsewhere, and ends with its lane.
  if (here.stream && *here.stream != node_) return std::nullopt;
  here.ends = false;
  here.stream.reset();
  const auto next = begin_next(here);
  tidy(camera);
  return next;
}

Encodings::Lane& Encodings::open(const std::string& camera, Lane lane) {
  Camera& here = cameras_[camera];
  lane.stream = here.stream.value_or("");
  return here.lane.emplace(std::move(lane));
}

Encodings::Lane* Encodings::lane(const std::string& camera) {
  const auto found = cameras_.find(camera);
  return found == cameras_.end() || !found->second.lane ? nullptr : &*found->second.lane;
}

std::vector<std::string> Encodings::lanes_to(const std::string& node) const {
  std::vector<std::string> cameras;
  for (const auto& [name, camera] : cameras_)
    if (camera.lane && camera.lane->stream == node && camera.lane->goes_on) cameras.push_back(name);
  return cameras;
}

std::vector<std::string> Encodings::drop_lanes(const std::function<bool(const Lane&)>& is_its) {
  std::vector<std::string> over;
  std::vector<std::string> dropped;
  for (auto& [name, camera] : cameras_) {
    if (!camera.lane || !is_its(*camera.lane)) continue;
    if (!camera.lane->goes_on) {
      over.push_back(name);
    } else {
      camera.lane.reset();
      dropped.push_back(name);
    }
  }
  for (const std::string& name : dropped) tidy(name);
  return over;
}

std::optional<Encodings::Over> Encodings::lane_over(const std::string& camera) {
  const auto found = cameras_.find(camera);
  if (found == cameras_.end()) return std::nullopt;
  Camera& here = found->second;
  here.ends = false;
  std::optional<Over> over;
  if (here.lane) {
    over.emplace(Over{*std::exchange(here.lane, std::nullopt), here.stream_stays, std::nullopt});
    here.stream.reset();
    over->next = begin_next(here);
  }
  tidy(camera);
  return over;
}

std::string Encodings::describe() const {
  std::string text;
  for (const auto& [name, camera] : cameras_) {
    text += ' ' + name;
    if (camera.stream) text += " for " + *camera.stream;
    if (camera.lane) text += "->" + camera.lane->stream + (camera.lane->goes_on ? "" : " (given up)");
    if (camera.ends) text += " (ends)";
    if (camera.next) text += " (waits for " + camera.next->passage.stream + ')';
  }
  return text;
}

}  // namespace vigil::fleet
