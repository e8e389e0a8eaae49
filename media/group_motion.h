// Motion vectors and residuals laid over the patches of a scaled picture: one number a patch.
#pragma once

#include <vector>

#include "media/motion.h"

namespace vigil::media {

/// Of each cell of a picture cut into `rows` x `columns` (rows after each other), whatever the frame's size:
/// the length in pixels of the frame of the longest vector of a block that touches it; infinity where a
/// quarter of it, or as much as a macroblock, is coded without a reference (intra blocks of an inter frame
/// have no vector). Empty for an intra frame and for one without a size: nothing is known of it.
std::vector<float> group_motion(const FrameMotion& frame, int rows, int columns);

/// Of each cell of such a picture: the sum over the blocks of their residual (`BlockResidual::difference`),
/// of each as much as the share of its area that lies in the cell, so that all cells together have what all
/// blocks have. It grows with the frame's pixels that a cell covers. Empty where `group_motion` is, and where
/// nothing was measured.
std::vector<float> group_residual(const FrameMotion& frame, int rows, int columns);

}  // namespace vigil::media
