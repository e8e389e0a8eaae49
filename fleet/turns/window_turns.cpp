#include "fleet/turns/window_turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "fleet/messages/device_names.h"

namespace vigil::fleet {
namespace {

/// Ends are multiples of a stride, in seconds of the camera.
constexpr double kMoment = 1e-6;
/// What the clock's nanoseconds and a day's seconds leave of a frame's time. Frames are further apart.
constexpr double kFrame = 1e-4;
/// Windows by which a former may be behind, and of which is known how many frames they had.
constexpr std::size_t kBehind = 8;
constexpr std::size_t kKnown = 64;

bool is_same(double end, double other) {
  return std::abs(end - other) < kMoment;
}

/// When the last frame of a window ends, in the camera's time. Windows of two devices may have one end, and
/// not one last frame.
double shown_until(const actors::WindowAnswers& window) {
  return window.start + std::chrono::duration<double>(window.end_wall - window.start_wall).count();
}

}  // namespace

bool Place::has_same_stream() const {
  return !former.empty() && stream_of(former) == stream_of(device);
}

bool Place::goes_on(const std::string& stream) const {
  return stream == stream_of(device) || stream == stream_of(former);
}

void WindowTurns::begin(Lane& lane) {
  lane.is_over = lane.former_is_gone = lane.waits_for_end = false;
  lane.since = std::numeric_limits<double>::infinity();
}

void WindowTurns::forget_told(Lane& lane) {
  lane.told = lane.shown = -std::numeric_limits<double>::infinity();
  lane.answered.clear();
}

/// Whether windows of this tenure count still.
bool WindowTurns::follow(Lane& lane, std::uint64_t tenure, News& news) {
  if (tenure <= lane.tenure) return tenure == lane.tenure;
  if (std::exchange(lane.tenure, tenure) == 0) return true;
  // The camera has begun anew, and its time may have, too, as when a registry that was set back has forgotten
  // since when there is such a camera.
  tell_held(lane, news);
  forget_told(lane);
  lane.former_is_gone = true;
  return true;
}

void WindowTurns::tell(Lane& lane, Window window, News& news) {
  const double shown = shown_until(*window.second);
  if (lane.has_ended || shown <= lane.shown + kFrame) {
    news.dropped.push_back(std::move(window));
    return;
  }
  lane.told = window.second->end;
  lane.shown = shown;
  news.told.push_back(std::move(window));
}

void WindowTurns::tell_held(Lane& lane, News& news) {
  for (Window& window : std::exchange(lane.held, {})) tell(lane, std::move(window), news);
}

void WindowTurns::drop_held(Lane& lane, News& news) {
  for (Window& window : std::exchange(lane.held, {})) news.dropped.push_back(std::move(window));
}

void WindowTurns::move(Lane& lane, const Place& place, News& news) const {
  const Place before = lane.place;
  const bool goes_on = place.device == before.device;
  if (!goes_on && stream_of(place.device) == stream_of(before.device) && place.former == before.former &&
      !place.has_same_stream()) {
    // Its stream goes on with another tower, and so does what is held of it.
    lane.place = place;
    return;
  }
  const bool comes_back = place.device == before.former;
  if (goes_on || (!comes_back && place.former.empty())) {
    tell_held(lane, news);
  } else {
    drop_held(lane, news);
  }
  const bool former_stays = place.former == before.former && lane.former_is_gone;
  if (place.former != before.former) lane.answered.clear();
  lane.place = place;
  begin(lane);
  lane.is_over = place.former.empty();
  lane.former_is_gone = former_stays || !up_.contains(place.former);
}

WindowTurns::News WindowTurns::plan(const Places& places) {
  News news;
  for (auto& [camera, lane] : lanes_) lane.is_planned = lane.is_planned && places.contains(camera);
  devices_.clear();
  for (const auto& [camera, place] : places) {
    // There is no node for it: it stays where it is, as long as that answers.
    if (place.device.empty()) continue;
    devices_[camera] = place.device;
    const auto lane = lanes_.find(camera);
    if (lane == lanes_.end() || !lane->second.is_planned) {
      // It may have been away, and its time have begun anew.
      if (lane != lanes_.end()) lanes_.erase(lane);
      if (place.former.empty()) continue;
      Lane& made = lanes_[camera];
      made.place = place;
      made.former_is_gone = !up_.contains(place.former);
    } else if (lane->second.place != place) {
      const bool waited = lane->second.waits_for_end;
      move(lane->second, place, news);
      // For a former that is none any more.
      if (waited && !std::exchange(lane->second.has_ended, true)) news.ended.push_back(camera);
    }
  }
  return news;
}

void WindowTurns::take_new(Lane& lane, Window window, News& news) {
  if (lane.is_over) return tell(lane, std::move(window), news);
  const double end = window.second->end;
  lane.since = std::min(lane.since, end);
  const auto length = std::chrono::duration<double>(window.second->watch->window.length).count();
  if (lane.former_is_gone) {
    lane.is_over = end >= lane.since + length - kMoment;
    return tell(lane, std::move(window), news);
  }
  if (end > lane.told + kMoment) {
    // A former that has answered nothing until the windows of the other one are full never had the camera.
    const bool never_had_it = lane.answered.empty() && end >= lane.since + length - kMoment;
    lane.held.push_back(std::move(window));
    if (lane.held.size() <= kBehind && !never_had_it) return;
    lane.former_is_gone = true;
    return tell_held(lane, news);
  }
  lane.is_over = std::ranges::any_of(lane.answered, [&](const auto& known) {
    return is_same(known.first, end) && window.second->frames >= known.second;
  });
  if (!lane.is_over) return news.dropped.push_back(std::move(window));
  // It may show a frame that the former's of this end does not.
  tell(lane, std::move(window), news);
  tell_held(lane, news);
}

void WindowTurns::take_former(Lane& lane, Window window, News& news) {
  if (lane.is_over) return news.dropped.push_back(std::move(window));
  const double end = window.second->end;
  const int frames = window.second->frames;
  lane.answered.emplace_back(end, frames);
  if (lane.answered.size() > kKnown) lane.answered.pop_front();
  tell(lane, std::move(window), news);
  while (!lane.held.empty() && lane.held.front().second->end <= end + kMoment) {
    const actors::WindowAnswers& next = *lane.held.front().second;
    lane.is_over = is_same(next.end, end) && next.frames >= frames;
    if (lane.is_over) return tell_held(lane, news);
    news.dropped.push_back(std::move(lane.held.front()));
    lane.held.pop_front();
  }
}

WindowTurns::News WindowTurns::take(const std::string& device, actors::WindowAnswersPtr window) {
  News news;
  const auto found = lanes_.find(window->watch->name);
  if (found == lanes_.end()) {
    news.told.emplace_back(device, std::move(window));
    return news;
  }
  Lane& lane = found->second;
  const std::uint64_t version = window->watch->version;
  if (lane.has_ended && version > lane.version) {
    // It began anew, and its time may have, too.
    drop_held(lane, news);
    forget_told(lane);
    lane.has_ended = false;
    lane.since = std::numeric_limits<double>::infinity();
  }
  lane.version = std::max(lane.version, version);
  const bool counts = follow(lane, actors::fence_of(version), news);
  // Windows are a stream's: of one that goes on, some may still come by way of a tower that it had before.
  const std::string stream = stream_of(device);
  if (counts && lane.place.has_same_stream() && lane.place.goes_on(stream)) {
    lane.is_over = lane.is_over || device == lane.place.device;
    tell(lane, {device, std::move(window)}, news);
  } else if (counts && stream == stream_of(lane.place.device)) {
    take_new(lane, {device, std::move(window)}, news);
  } else if (counts && stream == stream_of(lane.place.former)) {
    take_former(lane, {device, std::move(window)}, news);
  } else {
    // What is left of a camera where it is not any more.
    news.dropped.emplace_back(device, std::move(window));
  }
  // The former's end does not count any more.
  if (lane.is_over && std::exchange(lane.waits_for_end, false) && !std::exchange(lane.has_ended, true))
    news.ended.push_back(found->first);
  return news;
}

WindowTurns::News WindowTurns::down(const std::string& device) {
  News news;
  up_.erase(device);
  for (auto& [camera, lane] : lanes_) {
    if (lane.place.former.empty()) continue;
    if (device == lane.place.former) {
      lane.former_is_gone = true;
      tell_held(lane, news);
      if (std::exchange(lane.waits_for_end, false) && !std::exchange(lane.has_ended, true))
        news.ended.push_back(camera);
    } else if (device == lane.place.device) {
      drop_held(lane, news);
      const bool is_gone = lane.former_is_gone;
      begin(lane);
      lane.former_is_gone = is_gone;
    }
  }
  return news;
}

bool WindowTurns::end(const std::string& device, const std::string& camera) {
  const auto found = lanes_.find(camera);
  if (found == lanes_.end()) {
    const auto planned = devices_.find(camera);
    return planned == devices_.end() || planned->second == device;
  }
  Lane& lane = found->second;
  const bool is_device = device == lane.place.device;
  if (lane.place.has_same_stream() && (is_device || device == lane.place.former))
    return !std::exchange(lane.has_ended, true);
  const bool counts =
      is_device ? lane.is_over || lane.former_is_gone : device == lane.place.former && !lane.is_over;
  // What the former has told so is the camera's end already.
  if (counts || is_device) lane.waits_for_end = is_device && !counts && !lane.has_ended;
  return counts && !std::exchange(lane.has_ended, true);
}

std::set<std::uint64_t> WindowTurns::filled() const {
  std::set<std::uint64_t> fences;
  for (const auto& [camera, lane] : lanes_)
    if (lane.is_planned && lane.is_over && !lane.place.former.empty()) fences.insert(lane.place.fence);
  return fences;
}

}  // namespace vigil::fleet
