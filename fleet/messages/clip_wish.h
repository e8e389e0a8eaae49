// Nodes ask each other which clips show what a camera saw. JSON of one line, as nodes send it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages/clips.h"

namespace vigil::fleet {

/// Of one camera, at these times.
struct ClipWish {
  history::CameraId camera;
  std::vector<history::WallRange> walls;
  friend bool operator==(const ClipWish&, const ClipWish&) = default;
};

/// For each of the times what shows most of it, or nothing.
using FoundClips = std::vector<std::optional<actors::ShownClip>>;

std::string print(const ClipWish& wish);
std::string print(const FoundClips& found);
/// Both nothing for what is no such text.
std::optional<ClipWish> parse_clip_wish(std::string_view json);
std::optional<FoundClips> parse_found_clips(std::string_view json);

/// `clips`: those that are kept here; null: none.
FoundClips found_of(const ClipWish& wish, const actors::Clips* clips);

}  // namespace vigil::fleet
