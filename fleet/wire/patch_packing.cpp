#include "fleet/wire/patch_packing.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace vigil::fleet {
namespace {

constexpr std::size_t kChannels = 3;
/// Of one side of a picture: larger ones are no camera's.
constexpr int kMostPixels = 1 << 15;

/// Calls `copy(in_image, in_parts, bytes)` for every row of every group.
template <class Copy>
void each_row(const base::GridMask& groups, int side, int width, const Copy& copy) {
  const auto row = static_cast<std::size_t>(side) * kChannels;
  std::size_t part = 0;
  for (const std::int32_t group : groups.list()) {
    const auto y = static_cast<std::size_t>(group / groups.width());
    const auto x = static_cast<std::size_t>(group % groups.width());
    for (std::size_t i = 0; i < static_cast<std::size_t>(side); ++i, part += row)
      copy((y * static_cast<std::size_t>(side) + i) * static_cast<std::size_t>(width) * kChannels + x * row,
           part, row);
  }
}

std::size_t bytes_of(const base::GridMask& groups, int side) {
  return static_cast<std::size_t>(groups.count()) * static_cast<std::size_t>(side) *
         static_cast<std::size_t>(side) * kChannels;
}

cluster::Bytes bytes_with(const std::shared_ptr<const void>& owner, const std::vector<std::uint8_t>& bytes) {
  return {{owner, reinterpret_cast<const std::byte*>(bytes.data())}, bytes.size()};
}

cluster::Bytes pack(const media::Image& image, const base::GridMask& groups, int side) {
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(bytes_of(groups, side));
  each_row(groups, side, image.size.width, [&](std::size_t from, std::size_t to, std::size_t size) {
    std::copy_n(image.rgb.data() + from, size, bytes->data() + to);
  });
  return bytes_with(bytes, *bytes);
}

}  // namespace

PackedPatch pack(const actors::FramePatch& patch, int side, const base::Clock& clock) {
  PackedPatch packed{actors::form_of(patch, clock), {}};
  const std::optional<base::GridMask> pixels = patch.audit ? std::nullopt : patch.encoded;
  packed.form.has_pixels = pixels.has_value();
  if (pixels) packed.form.pixels = actors::form_of(*pixels);
  for (const media::SampledFrame& frame : patch.frames) {
    if (pixels) {
      packed.frames.push_back(pack(*frame.image, *pixels, side));
    } else {
      packed.frames.push_back(bytes_with(frame.image, frame.image->rgb));
    }
  }
  return packed;
}

actors::FramePatchPtr unpack(const PackedPatch& packed, int side, const base::Clock& clock) {
  const actors::PatchForm& form = packed.form;
  if (form.width < 1 || form.height < 1 || form.width > kMostPixels || form.height > kMostPixels)
    return nullptr;
  std::optional<base::GridMask> pixels;
  if (form.has_pixels) {
    pixels = actors::mask_of(form.pixels);
    if (!pixels || pixels->width() * side != form.width || pixels->height() * side != form.height)
      return nullptr;
  }
  const std::size_t whole =
      static_cast<std::size_t>(form.width) * static_cast<std::size_t>(form.height) * kChannels;
  std::vector<media::SampledFrame> frames;
  for (const cluster::Bytes& part : packed.frames) {
    if (part.size() != (pixels ? bytes_of(*pixels, side) : whole)) return nullptr;
    const auto* from = reinterpret_cast<const std::uint8_t*>(part.data());
    auto image = std::make_shared<media::Image>();
    image->size = {form.width, form.height};
    if (pixels) {
      image->rgb.resize(whole);
      each_row(*pixels, side, form.width, [&](std::size_t to, std::size_t at, std::size_t size) {
        std::copy_n(from + at, size, image->rgb.data() + to);
      });
    } else {
      image->rgb.assign(from, from + whole);
    }
    media::SampledFrame frame;
    frame.image = std::move(image);
    frames.push_back(std::move(frame));
  }
  return actors::patch_of(form, std::move(frames), clock);
}

}  // namespace vigil::fleet
