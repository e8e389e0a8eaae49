// Which questions wait until devices have told what a camera's windows still show.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "actors/messages/remembered.h"
#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"

namespace vigil::actors {

/// Not thread-safe.
class PresentBook {
 public:
  /// A device may be amid a window of many seconds: nobody waits longer.
  static constexpr base::Duration kPatience = std::chrono::seconds(2);
  /// Each time makes a page, however little it holds: a camera is shown this often, at most.
  static constexpr base::Duration kEvery = std::chrono::seconds(1);

  /// The clock outlives it.
  explicit PresentBook(const base::Clock& clock) : clock_(clock) {}

  /// Until then has come what the camera saw: of what came last, since a clock may be set back.
  void has_come(const history::CameraId& camera, std::int64_t wall);
  /// Whether this question, of a camera that is watched, waits: until `shown` or `late` names it. It does if
  /// it is about what has not come, unless devices told what there is just now.
  bool waits(std::uint64_t question, const history::CameraId& camera, const history::WallRange& wall);
  /// Nobody waits for this question any more.
  void forget(std::uint64_t question);

  /// What devices are to show. Each is shown once all of them have said so, or are no more.
  std::vector<Show> take_shows() { return std::exchange(shows_, {}); }
  /// The questions that go on; none, if they have gone on before.
  std::vector<std::uint64_t> shown(std::uint64_t show);
  /// Those that have waited for long enough.
  std::vector<std::uint64_t> late();

  /// Questions that wait.
  std::size_t waiting() const;

 private:
  struct Camera {
    std::int64_t come_until = INT64_MIN;
    /// The last show, of which nobody waits for the end any more if it is none.
    std::uint64_t show = 0;
    bool is_open = false;
    base::Clock::TimePoint begun{};
    std::vector<std::uint64_t> questions;
  };
  static std::vector<std::uint64_t> close(Camera& camera);

  const base::Clock& clock_;
  std::map<history::CameraId, Camera> cameras_;
  std::vector<Show> shows_;
  std::uint64_t ids_ = 0;
};

}  // namespace vigil::actors
