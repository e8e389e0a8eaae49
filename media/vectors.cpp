#include "media/vectors.h"

extern "C" {
#include <libavutil/motion_vector.h>
}

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace vigil::media {

bool exports_motion(AVCodecID codec) {
  switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_MPEG1VIDEO:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_H263I:
    case AV_CODEC_ID_H263P:
    case AV_CODEC_ID_FLV1:
    case AV_CODEC_ID_MSMPEG4V1:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
    case AV_CODEC_ID_WMV3:
    case AV_CODEC_ID_VC1:
    case AV_CODEC_ID_RV10:
    case AV_CODEC_ID_RV20:
    case AV_CODEC_ID_SNOW:
      return true;
    default:
      return false;
  }
}

FrameType frame_type(const AVFrame& frame) {
  switch (frame.pict_type) {
    case AV_PICTURE_TYPE_I:
    case AV_PICTURE_TYPE_SI:
      return FrameType::intra;
    case AV_PICTURE_TYPE_P:
    case AV_PICTURE_TYPE_S:
    case AV_PICTURE_TYPE_SP:
      return FrameType::predicted;
    case AV_PICTURE_TYPE_B:
    case AV_PICTURE_TYPE_BI:
      return FrameType::bidirectional;
    default:
      return FrameType::unknown;
  }
}

int crop(AVFrame& frame) {
  const int width = frame.width, height = frame.height;
  const auto right = static_cast<int>(frame.crop_right), bottom = static_cast<int>(frame.crop_bottom);
  // Less may be cut off at the left than was asked for: rows stay aligned.
  if (const int code = av_frame_apply_cropping(&frame, 0); code < 0) return code;
  const int left = width - right - frame.width, top = height - bottom - frame.height;
  const AVFrameSideData* side = av_frame_get_side_data(&frame, AV_FRAME_DATA_MOTION_VECTORS);
  if (side == nullptr || (left == 0 && top == 0)) return 0;
  auto* vectors = reinterpret_cast<AVMotionVector*>(side->data);
  for (std::size_t i = 0; i < side->size / sizeof(AVMotionVector); ++i) {
    for (std::int16_t* x : {&vectors[i].src_x, &vectors[i].dst_x}) *x = static_cast<std::int16_t>(*x - left);
    for (std::int16_t* y : {&vectors[i].src_y, &vectors[i].dst_y}) *y = static_cast<std::int16_t>(*y - top);
  }
  return 0;
}

FrameMotion motion_of(const AVFrame& frame) {
  FrameMotion motion;
  motion.type = frame_type(frame);
  motion.intra = motion.type == FrameType::intra;
  motion.key = is_key_frame(frame);
  motion.width = frame.width;
  motion.height = frame.height;
  const AVFrameSideData* side = av_frame_get_side_data(&frame, AV_FRAME_DATA_MOTION_VECTORS);
  if (side == nullptr) return motion;
  const auto* exported = reinterpret_cast<const AVMotionVector*>(side->data);
  const std::size_t count = side->size / sizeof(AVMotionVector);
  motion.vectors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const AVMotionVector& from = exported[i];
    MotionVector& to = motion.vectors[i];
    // FFmpeg tells the centre of the block.
    to.x = static_cast<std::int16_t>(from.dst_x - from.w / 2);
    to.y = static_cast<std::int16_t>(from.dst_y - from.h / 2);
    to.width = from.w;
    to.height = from.h;
    to.reference = static_cast<std::int8_t>(std::clamp(from.source, -128, 127));
    to.dx = from.motion_x;
    to.dy = from.motion_y;
    to.scale = std::max<std::uint16_t>(from.motion_scale, 1);
  }
  return motion;
}

}  // namespace vigil::media
