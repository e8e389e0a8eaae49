#include "media/residual.h"

extern "C" {
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace vigil::media {
namespace {

constexpr int kMostAnchors = 3;
constexpr std::size_t kMostBidirectional = 2;
/// H.264 lets no more frames wait.
constexpr std::size_t kMostWaiting = 16;
/// Beyond it a vector leads out of any picture.
constexpr std::int64_t kFarthest = 1 << 16;
/// Of bilinear weights, along one edge.
constexpr int kWhole = 16;

/// A block's part inside of the picture.
struct Area {
  int left, top, width, height;
};

Area inside(const MotionVector& block, const Luma& picture) {
  const int left = std::max(0, int{block.x});
  const int top = std::max(0, int{block.y});
  return {left, top, std::min(picture.width(), block.x + block.width) - left,
          std::min(picture.height(), block.y + block.height) - top};
}

/// A displacement along one edge: whole pixels, and sixteenths beyond them.
std::pair<int, int> split(std::int32_t displacement, int scale) {
  std::int64_t whole = displacement / scale;
  std::int64_t rest = displacement % scale;
  if (rest < 0) {
    rest += scale;
    --whole;
  }
  return {static_cast<int>(std::clamp(whole, -kFarthest, kFarthest)),
          static_cast<int>(rest * kWhole / scale)};
}

/// `Width` 0: as many as `width` says.
template <int Width>
int difference_of(const std::uint8_t* a, std::ptrdiff_t a_stride, const std::uint8_t* b,
                  std::ptrdiff_t b_stride, int width, int height) {
  int sum = 0;
  for (int y = 0; y < height; ++y, a += a_stride, b += b_stride)
    for (int x = 0; x < (Width > 0 ? Width : width); ++x) sum += std::abs(a[x] - b[x]);
  return sum;
}

std::uint32_t difference(const std::uint8_t* a, std::ptrdiff_t a_stride, const std::uint8_t* b,
                         std::ptrdiff_t b_stride, int width, int height) {
  // Compilers have an instruction for the sum of 16 or 8 differences.
  const auto of = width == 16 ? difference_of<16> : width == 8 ? difference_of<8> : difference_of<0>;
  return static_cast<std::uint32_t>(of(a, a_stride, b, b_stride, width, height));
}

/// Pixels between those of `from`, which has one more column and row where there is something between.
void interpolate(const std::uint8_t* from, std::ptrdiff_t stride, const Area& area, int right, int down,
                 std::uint8_t* to) {
  const int next_x = right > 0 ? 1 : 0;
  const std::ptrdiff_t next_y = down > 0 ? stride : 0;
  // Weights of 256 in all, so that a sum has 16 bits.
  const auto weight = [](int x, int y) { return static_cast<std::uint16_t>(x * y); };
  const std::uint16_t a = weight(kWhole - right, kWhole - down), b = weight(right, kWhole - down);
  const std::uint16_t c = weight(kWhole - right, down), d = weight(right, down);
  constexpr std::uint16_t kHalf = kWhole * kWhole / 2;
  for (int y = 0; y < area.height; ++y, from += stride, to += area.width)
    for (int x = 0; x < area.width; ++x)
      to[x] = static_cast<std::uint8_t>(static_cast<std::uint16_t>(a * from[x] + b * from[x + next_x] +
                                                                   c * from[x + next_y] +
                                                                   d * from[x + next_x + next_y] + kHalf) /
                                        (kWhole * kWhole));
}

auto place(const MotionVector& v) {
  return std::tuple(v.y, v.x, v.height, v.width);
}

}  // namespace

std::optional<Luma> Luma::of(const AVFrame& frame) {
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  constexpr std::uint64_t kUnreadable = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL |
                                        AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BE |
                                        AV_PIX_FMT_FLAG_FLOAT;
  if (format == nullptr || (format->flags & kUnreadable) != 0 || frame.width <= 0 || frame.height <= 0)
    return std::nullopt;
  const AVComponentDescriptor& component =
      format->comp[(format->flags & AV_PIX_FMT_FLAG_RGB) != 0 && format->nb_components > 1 ? 1 : 0];
  const std::uint8_t* data = frame.data[component.plane];
  if (data == nullptr || component.depth < 8 || component.depth > 16) return std::nullopt;
  data += component.offset;
  Luma luma;
  luma.width_ = frame.width;
  luma.height_ = frame.height;
  if (component.depth == 8 && component.step == 1) {
    luma.frame_ = allocated(Frame(av_frame_clone(&frame)));
    luma.data_ = data;
    luma.stride_ = frame.linesize[component.plane];
    return luma;
  }
  const auto wide = static_cast<std::size_t>(frame.width);
  luma.narrowed_.resize(wide * static_cast<std::size_t>(frame.height));
  auto to = luma.narrowed_.begin();
  for (int y = 0; y < frame.height; ++y) {
    const std::uint8_t* from = data + static_cast<std::ptrdiff_t>(y) * frame.linesize[component.plane];
    for (int x = 0; x < frame.width; ++x, from += component.step) {
      std::uint16_t value = *from;
      if (component.depth > 8) std::memcpy(&value, from, sizeof value);
      *to++ = static_cast<std::uint8_t>(value >> (component.shift + component.depth - 8));
    }
  }
  luma.data_ = luma.narrowed_.data();
  luma.stride_ = frame.width;
  return luma;
}

void ResidualMeter::push(const AVFrame& frame, FrameMotion motion, int references) {
  const bool bidirectional = motion.type == FrameType::bidirectional;
  references_ = std::max(references, 1);
  reorders_ = reorders_ || bidirectional;
  waiting_.push_back({std::move(motion), Luma::of(frame), bidirectional});
  if (!bidirectional || waiting_.size() >= kMostWaiting) measure_waiting();
}

void ResidualMeter::finish() {
  measure_waiting();
}

std::optional<FrameMotion> ResidualMeter::pop() {
  if (measured_.empty()) return std::nullopt;
  FrameMotion next = std::move(measured_.front());
  measured_.pop_front();
  return next;
}

void ResidualMeter::measure_waiting() {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    measure(waiting_[i], std::span(waiting_).subspan(i + 1));
    measured_.push_back(std::move(waiting_[i].motion));
    remember(std::move(waiting_[i]));
  }
  waiting_.clear();
}

// The luma may be needed by frames before it no more, since they are measured.
void ResidualMeter::remember(Held frame) {
  if (!frame.luma) return;
  std::deque<Luma>& past = frame.bidirectional ? past_bidirectional_ : past_;
  past.push_front(std::move(*frame.luma));
  // One of the references of a stream with B-frames is the frame after them.
  const int anchors = std::clamp(references_ - (reorders_ ? 1 : 0), 1, kMostAnchors);
  while (past.size() > (frame.bidirectional ? kMostBidirectional : static_cast<std::size_t>(anchors)))
    past.pop_back();
}

void ResidualMeter::measure(Held& frame, std::span<const Held> later) {
  if (frame.motion.intra || !frame.luma) return;
  const Luma& picture = *frame.luma;
  const bool bidirectional_too = references_ > 2;
  References before, after;
  const auto add = [&picture](References& to, const Luma& luma) {
    if (luma.width() == picture.width() && luma.height() == picture.height()) to.push_back(&luma);
  };
  for (const Luma& luma : past_) add(before, luma);
  if (bidirectional_too)
    for (const Luma& luma : past_bidirectional_) add(before, luma);
  for (std::size_t i = 0; i < later.size(); ++i)
    if (later[i].luma && (!later[i].bidirectional || (bidirectional_too && i < kMostBidirectional)))
      add(after, *later[i].luma);

  const std::vector<MotionVector>& vectors = frame.motion.vectors;
  std::vector<std::uint32_t> order(vectors.size());
  std::iota(order.begin(), order.end(), 0U);
  const bool both_ways =
      std::any_of(vectors.begin(), vectors.end(), [](const MotionVector& v) { return v.reference >= 0; });
  if (both_ways)
    std::stable_sort(order.begin(), order.end(), [&vectors](std::uint32_t a, std::uint32_t b) {
      return place(vectors[a]) < place(vectors[b]);
    });

  frame.motion.measured = true;
  std::vector<BlockResidual>& residual = frame.motion.residual;
  residual.reserve(vectors.size());
  for (std::size_t i = 0; i < order.size();) {
    const MotionVector& block = vectors[order[i]];
    backward_.difference.reset();
    forward_.difference.reset();
    const std::size_t first = i;
    for (; i < order.size() && (i == first || (both_ways && place(vectors[order[i]]) == place(block))); ++i) {
      const MotionVector& vector = vectors[order[i]];
      const bool back = vector.reference < 0;
      predict(picture, vector, back ? before : after, both_ways, back ? backward_ : forward_);
    }
    const Area area = inside(block, picture);
    if (area.width <= 0 || area.height <= 0) continue;
    float least = std::numeric_limits<float>::infinity();
    for (const Prediction* one : {&backward_, &forward_})
      if (one->difference) least = std::min(least, static_cast<float>(*one->difference));
    if (backward_.difference && forward_.difference) {
      for (std::size_t k = 0; k < backward_.pixels.size(); ++k)
        backward_.pixels[k] = static_cast<std::uint8_t>((backward_.pixels[k] + forward_.pixels[k] + 1) / 2);
      least = std::min(least, static_cast<float>(difference(
                                  picture.row(area.top) + area.left, picture.row(1) - picture.row(0),
                                  backward_.pixels.data(), area.width, area.width, area.height)));
    }
    residual.push_back({block.x, block.y, block.width, block.height, least});
  }
}

void ResidualMeter::predict(const Luma& picture, const MotionVector& block, const References& references,
                            bool keeps_pixels, Prediction& best) {
  const Area area = inside(block, picture);
  if (area.width <= 0 || area.height <= 0) return;
  const auto [dx, right] = split(block.dx, block.scale);
  const auto [dy, down] = split(block.dy, block.scale);
  const int x = area.left + dx, y = area.top + dy;
  const int wide = area.width + (right > 0 ? 1 : 0), high = area.height + (down > 0 ? 1 : 0);
  const std::ptrdiff_t stride = picture.row(1) - picture.row(0);
  const auto pixels = static_cast<std::size_t>(area.width) * static_cast<std::size_t>(area.height);
  for (const Luma* reference : references) {
    if (best.difference && *best.difference <= pixels) break;
    const std::uint8_t* from = nullptr;
    std::ptrdiff_t from_stride = reference->row(1) - reference->row(0);
    if (x >= 0 && y >= 0 && x + wide <= reference->width() && y + high <= reference->height()) {
      from = reference->row(y) + x;
    } else {
      clamped_.resize(static_cast<std::size_t>(wide) * static_cast<std::size_t>(high));
      auto to = clamped_.begin();
      for (int row = y; row < y + high; ++row) {
        const std::uint8_t* line = reference->row(std::clamp(row, 0, reference->height() - 1));
        for (int column = x; column < x + wide; ++column)
          *to++ = line[std::clamp(column, 0, reference->width() - 1)];
      }
      from = clamped_.data();
      from_stride = wide;
    }
    if (right > 0 || down > 0) {
      pixels_.resize(pixels);
      interpolate(from, from_stride, area, right, down, pixels_.data());
      from = pixels_.data();
      from_stride = area.width;
    }
    const std::uint32_t sum =
        difference(picture.row(area.top) + area.left, stride, from, from_stride, area.width, area.height);
    if (best.difference && *best.difference <= sum) continue;
    best.difference = sum;
    if (!keeps_pixels) continue;
    best.pixels.resize(pixels);
    for (int row = 0; row < area.height; ++row)
      std::copy_n(from + row * from_stride, area.width,
                  best.pixels.begin() + static_cast<std::ptrdiff_t>(row) * area.width);
  }
}

}  // namespace vigil::media
