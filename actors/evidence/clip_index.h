// Which clips there are, by whose cameras they show and when.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "actors/messages/clips.h"

namespace vigil::actors {

/// What a clip's file says of itself: a folder's name is not a camera's, of which several may have one, and
/// no name of a file tells a tenant, or how long the clip is.
struct ClipNote {
  history::CameraId camera;
  /// What it shows.
  history::WallRange wall;
  friend bool operator==(const ClipNote&, const ClipNote&) = default;
};

/// JSON of one line. What is read is nothing if it is no such text, or makes no sense.
std::string print(const ClipNote& note);
std::optional<ClipNote> parse_clip_note(std::string_view text);

/// Written by who keeps the files, and asked by others. Thread-safe.
class ClipIndex : public Clips {
 public:
  /// `name`: without extension, of the clip and its still; takes the place of what was added by that name.
  void add(const std::string& name, const ClipNote& note, const std::string& clip, const std::string& thumb);
  /// It is gone, or it was not there.
  void remove(const std::string& name);

  std::optional<ShownClip> showing(const history::CameraId& camera,
                                   const history::WallRange& wall) const override;

 private:
  struct Clip {
    std::int64_t to = 0;
    std::string clip, thumb;
  };
  struct OfCamera {
    /// By begin and name.
    std::map<std::pair<std::int64_t, std::string>, Clip> clips;
    /// None has ever been longer: what began earlier than that before something does not show it.
    std::int64_t longest = 0;
  };

  void take_out(const std::string& name);

  mutable std::mutex mutex_;
  std::map<history::CameraId, OfCamera> cameras_;
  std::map<std::string, std::pair<history::CameraId, std::int64_t>> names_;
};

}  // namespace vigil::actors
