// What cameras have to tell while their series are not held.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"

namespace vigil::actors {

/// In the order of its coming; bounded. Not thread-safe.
class HeldNews {
 public:
  /// An answered window, or a state.
  struct News {
    std::string camera;
    base::Clock::TimePoint since;
    WindowAnswersPtr window = nullptr;
    WatchPtr watch = nullptr;
    CameraState state = CameraState::connecting;
    std::string reason = {};
    base::Clock::WallTime time = {};
  };

  explicit HeldNews(std::size_t most) : most_(most) {}

  /// Returns the oldest if there is no room for both.
  std::optional<News> push(News news) {
    news_.push_back(std::move(news));
    if (news_.size() <= most_) return std::nullopt;
    News oldest = std::move(news_.front());
    news_.pop_front();
    return oldest;
  }

  std::size_t size() const { return news_.size(); }

  /// Whose windows and states, but for those that connect, have been here since then or longer; one entry for
  /// each of these.
  std::vector<std::string> settled_since(base::Clock::TimePoint moment) const {
    std::vector<std::string> cameras;
    for (const News& each : news_)
      if ((each.window || each.state != CameraState::connecting) && each.since <= moment)
        cameras.push_back(each.camera);
    return cameras;
  }

  /// What there is of this camera.
  std::vector<News> take(const std::string& camera) {
    std::vector<News> taken;
    std::deque<News> rest;
    for (News& each : news_) {
      if (each.camera == camera) {
        taken.push_back(std::move(each));
      } else {
        rest.push_back(std::move(each));
      }
    }
    news_ = std::move(rest);
    return taken;
  }

 private:
  std::size_t most_;
  std::deque<News> news_;
};

}  // namespace vigil::actors
