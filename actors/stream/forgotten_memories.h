// What is said when windows' memories had no room.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/repeated_lines.h"
#include "engine/stream/desk_news.h"

namespace vigil::actors {

/// A memory that has no room once will mostly have none again, as soon as it is as large. Not thread-safe.
class ForgottenMemories {
 public:
  /// A camera's memory is gone, for this reason. The line about it, without the camera's name; nothing if
  /// there was one just before (base::RepeatedLines).
  std::optional<std::string> hear(const std::string& camera, std::string_view reason,
                                  base::Clock::TimePoint now);
  /// A camera's memory is shorter than it should be: as `hear`, apart from what that says.
  std::optional<std::string> shortened(const stream::DeskNews::Shortened& news, base::Clock::TimePoint now);
  /// The camera has ended.
  void forget(const std::string& camera) {
    gone_.forget(camera);
    shortened_.forget(camera);
  }

 private:
  base::RepeatedLines<std::string> gone_, shortened_;
};

}  // namespace vigil::actors
