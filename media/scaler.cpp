#include "media/scaler.h"

extern "C" {
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "media/colour.h"

namespace vigil::media {
namespace {

// swscale scales planes with vector code, but writes packed RGB with full chroma pixel by pixel (2.2 ms for
// 448x448 against 0.25 ms). So YCbCr sources are scaled to YCbCr 4:4:4, and the matrix is ours (0.07 ms).
bool has_planes_of_its_own(AVPixelFormat format) {
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  return description != nullptr && description->nb_components >= 3 &&
         (description->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER)) == 0 &&
         format != AV_PIX_FMT_XYZ12LE && format != AV_PIX_FMT_XYZ12BE;
}

/// As the stream says, which may be a number without a meaning: swscale takes such for BT.601, and no enum
/// holds them.
template <class E>
int number_of(const E& value) {
  static_assert(sizeof(E) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

bool is_full_range(const AVFrame& frame) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ411P:
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ444P:
      return true;
    default:
      return number_of(frame.color_range) == AVCOL_RANGE_JPEG;
  }
}

}  // namespace

void Scaler::prepare(const Shape& shape) {
  if (shape_ == shape) return;
  shape_.reset();
  context_ = allocated(ScaleContext(sws_alloc_context()));
  const bool planar = has_planes_of_its_own(shape.format);
  const int range = shape.full_range ? 1 : 0;
  void* options = context_.get();
  av_opt_set_int(options, "srcw", shape.from.width, 0);
  av_opt_set_int(options, "srch", shape.from.height, 0);
  av_opt_set_int(options, "src_format", shape.format, 0);
  av_opt_set_int(options, "src_range", range, 0);
  av_opt_set_int(options, "dstw", shape.to.width, 0);
  av_opt_set_int(options, "dsth", shape.to.height, 0);
  av_opt_set_int(options, "dst_format", planar ? AV_PIX_FMT_YUV444P : AV_PIX_FMT_RGB24, 0);
  av_opt_set_int(options, "dst_range", planar ? range : 1, 0);
  av_opt_set_int(options, "sws_flags",
                 SWS_BICUBIC | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | (planar ? 0 : SWS_ACCURATE_RND), 0);
  if (const int code = sws_init_context(context_.get(), nullptr, nullptr); code < 0) {
    const char* name = av_get_pix_fmt_name(shape.format);
    throw std::runtime_error("cannot scale pixel format " + std::string(name ? name : "?") + ": " +
                             reason_of(code));
  }
  if (planar) {
    // Same matrix and range on both sides: nothing but the size changes here.
    const int* coefficients = sws_getCoefficients(shape.matrix);
    sws_setColorspaceDetails(context_.get(), coefficients, range, coefficients, range, 0, 1 << 16, 1 << 16);
  }
  shape_ = shape;
}

Image Scaler::convert(const AVFrame& frame, Size size) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  prepare({{frame.width, frame.height}, format, is_full_range(frame), number_of(frame.colorspace), size});

  const auto width = static_cast<std::size_t>(size.width);
  const auto height = static_cast<std::size_t>(size.height);
  Image image;
  image.size = size;
  image.rgb.resize(width * height * 3);
  if (!has_planes_of_its_own(format)) {
    const std::array<std::uint8_t*, 4> data = {image.rgb.data()};
    const std::array<int, 4> lines = {size.width * 3};
    sws_scale(context_.get(), frame.data, frame.linesize, 0, frame.height, data.data(), lines.data());
    return image;
  }

  // Rows start on 64 bytes for the vector code, and it may write a little past a row's end.
  const std::size_t line = (width + 63) / 64 * 64;
  planes_.resize(line * height * 3 + 128);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(planes_.data()) % 64;
  std::uint8_t* first = planes_.data() + (misaligned == 0 ? 0 : 64 - misaligned);
  const std::array<std::uint8_t*, 4> data = {first, first + line * height, first + 2 * line * height};
  const std::array<int, 4> lines = {static_cast<int>(line), static_cast<int>(line), static_cast<int>(line)};
  sws_scale(context_.get(), frame.data, frame.linesize, 0, frame.height, data.data(), lines.data());
  const ColourMatrix matrix =
      colour_matrix(sws_getCoefficients(number_of(frame.colorspace)), is_full_range(frame));
  for (std::size_t row = 0; row < height; ++row) {
    rgb_row(data[0] + row * line, data[1] + row * line, data[2] + row * line, size.width, matrix,
            image.rgb.data() + row * width * 3);
  }
  return image;
}

}  // namespace vigil::media
