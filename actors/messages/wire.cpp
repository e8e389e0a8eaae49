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
  if (!fits) return nullptr;
  auto patch = std::make_shared<FramePatch>();
  patch->watch = form.watch;
  patch->frames = std::move(frames);
  patch->seconds = form.seconds;
  patch->duration = form.duration;
  patch->sequence = form.sequence;
  patch->generation = form.generation;
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

RestForm form_of(const SourceRest& rest, const base::Clock& clock) {
  return {rest.camera, rest.role, age_of(rest.until, clock), rest.no_descriptor};
}

SourceRest rest_of(const RestForm& form, const base::Clock& clock) {
  return {form.camera, form.role, moment_of(form.until, clock), form.no_descriptor};
}

}  // namespace vigil::actors
