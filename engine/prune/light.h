// What of the difference between two pictures is light, rather than something that came or went.
#pragma once

#include <array>
#include <vector>

#include "engine/prune/low_res.h"

namespace vigil::prune {

/// Light that changed everywhere alike, as exposure and lamps change it: a value v of channel c becomes
/// gain * v + offset[c].
struct Light {
  float gain = 1;
  std::array<float, LowRes::kChannels> offset = {};
};

/// The light that most of the picture shows, by robust regression: squares that changed otherwise count
/// little, as long as they are fewer than half. Both pictures are of one size.
Light fit_light(const LowRes& before, const LowRes& now);

/// What is left where all around changed alike, as a cloud's or a person's soft shadow does: of each square
/// and channel the median of the 3 x 3 differences about it, of which none counts beyond `most`.
void smooth_light(const LowRes& before, const LowRes& now, const Light& light, float most, LowRes& to);

/// How far the light moved a picture of this size and brightness: the mean over its squares, or the largest
/// offset of a colour, from 0 to 255.
float distance(const Light& light, const LowRes& before);

}  // namespace vigil::prune
