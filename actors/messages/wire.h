// The forms in which data leave a process: what CAF can write down and read back (`inspect.h`). Plain, and
// free of CAF. Data that has a form of its own is made into it where it leaves, and back where it arrives;
// whatever `inspect.h` knows and is not here travels as it is.
//
// Pixels, embeddings, texts on their way and whatever holds a camera's address have no form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/messages/watch_book.h"
#include "base/clock.h"
#include "base/grid_mask.h"

namespace vigil::actors {

/// A moment of a steady clock, which means nothing to another process: how long ago it was when it was
/// written down; negative if it is to come. What the way takes is not part of it.
struct Age {
  std::int64_t microseconds = 0;
  friend bool operator==(const Age&, const Age&) = default;
};

/// By the clock of whoever sends.
Age age_of(base::Clock::TimePoint moment, const base::Clock& clock);
/// By the clock of whoever receives. What is further away than a hundred years is taken for that.
base::Clock::TimePoint moment_of(Age age, const base::Clock& clock);

/// CaptureTime.
struct CaptureForm {
  Age steady;
  base::Clock::WallTime wall;
  friend bool operator==(const CaptureForm&, const CaptureForm&) = default;
};

/// WorkSpan.
struct WorkForm {
  Age begin;
  Age end;
  friend bool operator==(const WorkForm&, const WorkForm&) = default;
};

/// A base::GridMask: its cells, ascending.
struct MaskForm {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::vector<std::int32_t> cells;
  friend bool operator==(const MaskForm&, const MaskForm&) = default;
};

MaskForm form_of(const base::GridMask& mask);
/// Nothing for cells that are not of the grid, or not ascending, and for a grid that is none.
std::optional<base::GridMask> mask_of(const MaskForm& form);

/// A FramePatch without its pixels, which go another way.
struct PatchForm {
  WatchRef watch;
  double seconds = 0;
  double duration = 0;
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
  /// How many there are, and the size of each.
  std::uint32_t frames = 0;
  std::int32_t width = 0;
  std::int32_t height = 0;
  /// What was chosen of it, if that is not all, and which window audits it, if one does.
  bool has_encoded = false, has_kept = false, is_audited = false;
  MaskForm encoded, kept;
  double audit = 0;
  /// The groups whose pixels go along, if these are not all.
  bool has_pixels = false;
  MaskForm pixels;
  /// What stands out of it, if somebody said.
  bool has_standing_out = false;
  MaskForm standing_out;
  /// One of the frames refers to no other.
  bool is_intra = false;
  CaptureForm captured;
  friend bool operator==(const PatchForm&, const PatchForm&) = default;
};

/// WindowAnswers. The window itself stays on the device where it was asked.
struct WindowForm {
  WatchRef watch;
  /// Whether its answers can be explained, and what it is called then.
  bool held = false;
  stream::WindowId id;
  double start = 0;
  double end = 0;
  base::Clock::WallTime start_wall;
  base::Clock::WallTime end_wall;
  std::int32_t frames = 0;
  std::vector<stream::Answer> answers;
  CaptureForm captured;
  WorkForm encoded;
};

CaptureForm form_of(const CaptureTime& time, const base::Clock& clock);
CaptureTime time_of(const CaptureForm& form, const base::Clock& clock);
WorkForm form_of(const WorkSpan& span, const base::Clock& clock);
WorkSpan span_of(const WorkForm& form, const base::Clock& clock);

PatchForm form_of(const FramePatch& patch, const base::Clock& clock);
/// With the pixels that belong to it. Null if they are not what the form says.
FramePatchPtr patch_of(const PatchForm& form, std::vector<media::SampledFrame> frames,
                       const base::Clock& clock);

WindowForm form_of(const WindowAnswers& window, const base::Clock& clock);
/// Null if nobody told its settings, or its answers are not those to their rules.
WindowAnswersPtr answers_of(const WindowForm& form, const WatchBook& book, const base::Clock& clock);

}  // namespace vigil::actors
