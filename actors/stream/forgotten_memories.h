// What is said when windows' memories had no room.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "engine/stream/desk_news.h"

namespace vigil::actors {

/// A memory that has no room once will mostly have none again, as soon as it is as large: a line a minute of
/// each camera is enough, which counts the others. Not thread-safe.
class ForgottenMemories {
 public:
  static constexpr std::chrono::minutes kSpan{1};

  /// A camera's memory is gone, for this reason. The line about it, without the camera's name; nothing if
  /// there was one less than `kSpan` ago.
  std::optional<std::string> hear(const std::string& camera, std::string_view reason,
                                  base::Clock::TimePoint now);
  /// A camera's memory is shorter than it should be: as `hear`, apart from what that says.
  std::optional<std::string> shortened(const stream::DeskNews::Shortened& news, base::Clock::TimePoint now);
  /// The camera has ended.
  void forget(const std::string& camera) {
    gone_.erase(camera);
    shortened_.erase(camera);
  }

 private:
  struct Camera {
    base::Clock::TimePoint told;
    /// Since then.
    std::uint64_t missed = 0;
  };
  using Cameras = std::map<std::string, Camera>;
  static std::optional<std::string> told(Cameras& cameras, const std::string& camera, std::string line,
                                         base::Clock::TimePoint now);

  Cameras gone_, shortened_;
};

}  // namespace vigil::actors
