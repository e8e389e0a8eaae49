#include "actors/messages/wire.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vigil::actors {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;

/// Added to any time of a clock of nanoseconds, it does not overflow.
constexpr microseconds kOldest = std::chrono::hours(24 * 365 * 100);

/// No picture has so many groups: 28 million pixels and more.
constexpr std::int64_t kMostCells = std::int64_t{1} << 20;

}  // namespace

Age age_of(base::Clock::TimePoint moment, const base::Clock& clock) {
  return {duration_cast<microseconds>(clock.now() - moment).count()};
}

base::Clock::TimePoint moment_of(Age age, const base::Clock& clock) {
  return clock.now() - std::clamp(microseconds(age.microseconds), -kOldest, kOldest);
}

CaptureForm form_of(const CaptureTime& time, const base::Clock& clock) {
  return {age_of(time.steady, clock), time.wall};
}

CaptureTime time_of(const CaptureForm& form, const base::Clock& clock) {
  return {moment_of(form.steady, clock), form.wall};
}

WorkForm form_of(const WorkSpan& span, const base::Clock& clock) {
  return {age_of(span.begin, clock), age_of(span.end, clock)};
}

WorkSpan span_of(const WorkForm& form, const base::Clock& clock) {
  return {moment_of(form.begin, clock), moment_of(form.end, clock)};
}

MaskForm form_of(const base::GridMask& mask) {
  return {static_cast<std::int32_t>(mask.height()), static_cast<std::int32_t>(mask.width()), mask.list()};
}

std::optional<base::GridMask> mask_of(const MaskForm& form) {
  const std::int64_t cells = std::int64_t{form.height} * form.width;
  if (form.height < 1 || form.width < 1 || cells > kMostCells) return std::nullopt;
  base::GridMask mask = base::GridMask::none(form.height, form.width);
  std::int64_t last = -1;
  for (const std::int32_t cell : form.cells) {
    if (cell <= last || cell >= cells) return std::nullopt;
    mask.add(last = cell);
  }
  return mask;
}

PatchForm form_of(const FramePatch& patch, const base::Clock& clock) {
  PatchForm form;
  form.watch = patch.watch;
  form.seconds = patch.seconds;
  form.duration = patch.duration;
  form.sequence = patch.sequence;
  form.generation = patch.generation;
  form.frames = static_cast<std::uint32_t>(patch.frames.size());
  if (!patch.frames.empty()) {
    form.width = patch.frames.front().image->size.width;
    form.height = patch.frames.front().image->size.height;
  }
  form.has_encoded = patch.encoded.has_value();
  if (patch.encoded) form.encoded = form_of(*patch.encoded);
  form.has_kept = patch.kept.has_value();
  if (patch.kept) form.kept = form_of(*patch.kept);
  form.is_audited = patch.audit.has_value();
  form.audit = patch.audit.value_or(0);
  form.has_pixels = patch.pixels.has_value();
  if (patch.pixels) form.pixels = form_of(*patch.pixels);
  form.has_standing_out = patch.standing_out.has_value();
  if (patch.standing_out) form.standing_out = form_of(*patch.standing_out);
  form.is_intra = std::any_of(patch.frames.begin(), patch.frames.end(), [](const media::SampledFrame& frame) {
    return frame.type == media::FrameType::intra;
  });
  form.captured = form_of(patch.captured, clock);
  return form;
}

FramePatchPtr patch_of(const PatchForm& form, std::vector<media::SampledFrame> frames,
                       const base::Clock& clock) {
  const media::Size size{form.width, form.height};
  const bool fits = !frames.empty() && std::cmp_equal(frames.size(), form.frames) &&
                    std::all_of(frames.begin(), frames.end(), [&](const media::SampledFrame& frame) {
                      return frame.image && frame.image->size == size;
                    });
  std::optional<base::GridMask> encoded, kept, pixels, standing_out;
  if (form.has_pixels) pixels = mask_of(form.pixels);
  if (form.has_encoded) encoded = mask_of(form.encoded);
  if (form.has_kept) kept = mask_of(form.kept);
  if (form.has_standing_out) standing_out = mask_of(form.standing_out);
  if (!fits || form.has_encoded != encoded.has_value() || form.has_kept != kept.has_value() ||
      form.has_pixels != pixels.has_value() || form.has_standing_out != standing_out.has_value())
    return nullptr;
  auto patch = std::make_shared<FramePatch>();
  patch->watch = form.watch;
  patch->frames = std::move(frames);
  patch->seconds = form.seconds;
  patch->duration = form.duration;
  patch->sequence = form.sequence;
  patch->generation = form.generation;
  patch->encoded = std::move(encoded);
  patch->kept = std::move(kept);
  patch->pixels = std::move(pixels);
  patch->standing_out = std::move(standing_out);
  if (form.is_intra) patch->frames.front().type = media::FrameType::intra;
  if (form.is_audited) patch->audit = form.audit;
  patch->captured = time_of(form.captured, clock);
  return patch;
}

WindowForm form_of(const WindowAnswers& window, const base::Clock& clock) {
  WindowForm form;
  form.watch = window.watch->ref();
  form.held = window.id.has_value();
  form.id = window.id.value_or(stream::WindowId());
  form.start = window.start;
  form.end = window.end;
  form.start_wall = window.start_wall;
  form.end_wall = window.end_wall;
  form.frames = window.frames;
  form.answers = window.answers;
  form.captured = form_of(window.captured, clock);
  form.encoded = form_of(window.encoded, clock);
  return form;
}

WindowAnswersPtr answers_of(const WindowForm& form, const WatchBook& book, const base::Clock& clock) {
  const WatchPtr watch = book.find(form.watch);
  if (!watch || watch->rules.size() != form.answers.size()) return nullptr;
  auto window = std::make_shared<WindowAnswers>();
  window->watch = watch;
  window->start = form.start;
  window->end = form.end;
  window->start_wall = form.start_wall;
  window->end_wall = form.end_wall;
  window->frames = form.frames;
  window->answers = form.answers;
  if (form.held) window->id = form.id;
  window->captured = time_of(form.captured, clock);
  window->encoded = span_of(form.encoded, clock);
  return window;
}

}  // namespace vigil::actors
