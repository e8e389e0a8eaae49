// The motion vectors that a decoder exported with a frame, as Vigil's own type.
#pragma once

#include "media/ffmpeg.h"
#include "media/motion.h"

namespace vigil::media {

/// Whether FFmpeg's decoder of this codec exports motion vectors (AV_CODEC_EXPORT_DATA_MVS).
bool exports_motion(AVCodecID codec);

FrameType frame_type(const AVFrame& frame);

/// Cuts off what the codec says is not to be shown, and moves the vectors, which are told of the whole frame,
/// with it. Of a decoder that does not do so itself (`apply_cropping`). A negative FFmpeg error for a frame
/// that cannot be cut.
int crop(AVFrame& frame);

/// Everything that the frame tells of its motion; `seconds` is left to the caller. Every exported vector is
/// kept.
FrameMotion motion_of(const AVFrame& frame);

}  // namespace vigil::media
