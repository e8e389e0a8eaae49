#pragma once

#include <cstdint>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// The two implementations of the same filter that the published preprocessing uses. Pillow's weights have 22
/// fractional bits; PyTorch's (behind torchvision) as many as let the largest weight of an axis fit into 16
/// bits. Pillow 13 takes the rows first where far more of them go than of the columns (releases before it
/// never do). Mostly they differ by one level in one of 200 values.
enum class ResizeLike : std::uint8_t { pillow, torch };

/// Bicubic scaling (Keys' kernel with a = -1/2) of interleaved 8-bit pictures, widened by the scale where the
/// picture shrinks (antialiasing). Columns first, rows second (but see `ResizeLike`), with 8-bit values
/// between; an axis whose size stays is left alone.
///
/// `in` is [in_height, in_width, channels], `out` [out_height, out_width, channels], both tightly packed;
/// they may not overlap. Equal bit by bit to PIL.Image.resize(BICUBIC) /
/// torch.nn.functional.interpolate(mode="bicubic", antialias=True) on uint8. Throws std::invalid_argument for
/// sizes that are not positive and for other than 1 to 4 channels.
void resize_bicubic(Stream& stream, const std::uint8_t* in, int in_height, int in_width, std::uint8_t* out,
                    int out_height, int out_width, int channels, ResizeLike like);

}  // namespace vigil::kernels
