// Whose answers count while a camera's stream moves from one device to another.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/data.h"

namespace vigil::fleet {

/// Where a camera is computed, by the plan.
struct Place {
  std::string device;
  /// Which one goes on answering until the windows of that one are full, or, with the same stream, encoding
  /// until that one does; empty: none.
  std::string former = {};
  /// Of the move from the one to the other (`cluster::PlannedCamera::stream_fence`).
  std::uint64_t fence = 0;
  /// Whether both have the same stream, so that only the tower moves.
  bool has_same_stream() const;
  /// Whether one of the two has this stream.
  bool goes_on(const std::string& stream) const;
  friend bool operator==(const Place&, const Place&) = default;
};
/// By camera.
using Places = std::map<std::string, Place>;

/// Of a camera that moves, both devices get the patches, unless both have the same stream: then what comes
/// from either is told, and the move is over with the first of the other one. The former's windows are told
/// until the other one has answered one of them with as many frames: then its windows are full, and from the
/// next one on they are told. What it answers ahead of the former is held until then. If the former is gone,
/// or falls far behind, or has answered nothing when the other one's windows are full by time, what the other
/// one has counts at once, as it does of a camera that has begun anew meanwhile, in another tenure: its
/// former has nothing of that. Of one tenure, each window that is told shows a later frame than the one
/// before it, whichever device it comes from: where a frame is near the end of a stride, two devices may have
/// it in different windows, since each counts from the frame that it began with. Windows of cameras that
/// never moved pass as they are. Not thread-safe.
class WindowTurns {
 public:
  /// With the device that answered.
  using Window = std::pair<std::string, actors::WindowAnswersPtr>;
  struct News {
    std::vector<Window> told;
    /// Nobody will ask for their texts.
    std::vector<Window> dropped;
    /// Cameras that have ended, of which only the other device had told so.
    std::vector<std::string> ended;
  };

  /// Where all cameras of this node are from now on.
  News plan(const Places& places);
  News take(const std::string& device, actors::WindowAnswersPtr window);
  /// This device can be reached from now on; none can before this.
  void up(const std::string& device) { up_.insert(device); }
  /// Nothing comes from this device for now, and what it had is lost.
  News down(const std::string& device);
  /// No window of the camera follows from this device. Whether that is so of the camera, and once. Where it
  /// is not any more, that means nothing: whoever ends a camera ends it where it is.
  bool end(const std::string& device, const std::string& camera);

  /// The moves, of those that the plan has, that are over.
  std::set<std::uint64_t> filled() const;

 private:
  struct Lane {
    Place place;
    bool is_planned = true;
    /// Of the last window that was told: its end, and when its last frame ends (`shown_until`).
    double told = -std::numeric_limits<double>::infinity();
    double shown = -std::numeric_limits<double>::infinity();
    /// The fence of the newest window that came; 0: none has. And the newest settings of any.
    std::uint64_t tenure = 0;
    std::uint64_t version = 0;
    /// Only the device counts, and not the former any more.
    bool is_over = false;
    bool former_is_gone = false;
    /// Windows of the device's stream, ahead of the former's.
    std::deque<Window> held;
    /// Ends and frames of the former's last windows.
    std::deque<std::pair<double, int>> answered;
    /// The end of the device's first window.
    double since = std::numeric_limits<double>::infinity();
    /// It was told so; what is left of it is not told any more, and what comes anew has newer settings.
    bool has_ended = false;
    /// The device has told so, and the former has not.
    bool waits_for_end = false;
  };

  void move(Lane& lane, const Place& place, News& news) const;
  static bool follow(Lane& lane, std::uint64_t tenure, News& news);
  static void take_new(Lane& lane, Window window, News& news);
  static void take_former(Lane& lane, Window window, News& news);
  static void tell(Lane& lane, Window window, News& news);
  /// What is held and not told counts; or it does not.
  static void tell_held(Lane& lane, News& news);
  static void drop_held(Lane& lane, News& news);
  static void begin(Lane& lane);
  /// Nothing of it was told.
  static void forget_told(Lane& lane);

  std::map<std::string, Lane> lanes_;
  /// Where cameras are by the plan; those that it has no place for are not here.
  std::map<std::string, std::string> devices_;
  std::set<std::string> up_;
};

}  // namespace vigil::fleet
