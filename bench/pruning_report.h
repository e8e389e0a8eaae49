// What a pruning policy keeps of a video, and how long it takes to decide.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/grid_mask.h"
#include "engine/prune/pruning_policy.h"
#include "media/contact_sheet.h"
#include "media/media.h"

namespace vigil::bench {

struct PruningReportOptions {
  std::string policy;
  prune::PruningOptions pruning = {};
  /// Sampled frames that one token covers, at least 1.
  int frames_per_patch = 2;
  /// Ends after so much of the video.
  std::optional<double> seconds = {};
  std::stop_token stop = {};
};

struct PrunedPatch {
  /// Time of its first frame.
  double seconds = 0;
  prune::Choice groups;
};

struct PruningReport {
  std::string policy;
  int frames_per_patch = 0;
  std::vector<PrunedPatch> patches;
  /// Median and 95 of 100, in milliseconds of one thread for each sampled frame: laying the vectors over the
  /// picture, and choosing.
  double decision_ms = 0;
  double decision_ms_95 = 0;

  /// Groups that are encoded, and that the stream keeps, of all: 0 to 1; 1 where there are none.
  double encoded_share() const;
  double kept_share() const;
};

/// Follows the source to its end, or to where the options end it. A last patch that is not full counts.
/// `sheet` gets each first frame of a patch with its groups, if it is not null. Throws media::Error, and
/// std::invalid_argument as `make_pruning` does.
PruningReport report_pruning(media::VideoReader& reader, const PruningReportOptions& options,
                             const base::Clock& clock, media::ContactSheet* sheet);

/// For people: some lines. For programs: one JSON object with every patch's groups.
std::string to_text(const PruningReport& report);
std::string to_json(const PruningReport& report);

}  // namespace vigil::bench
