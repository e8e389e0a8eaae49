#include "bench/pruning_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/camera/pruning_input.h"
#include "bench/statistics.h"

namespace vigil::bench {
namespace {

/// Fewer frames than asked for at the end, none after it. What waits for a source that is given up ends too.
std::vector<media::SampledFrame> next_patch(media::VideoReader& reader, const PruningReportOptions& options) {
  std::vector<media::SampledFrame> frames;
  try {
    while (static_cast<int>(frames.size()) < options.frames_per_patch && !options.stop.stop_requested()) {
      std::optional<media::SampledFrame> sample = reader.next();
      if (!sample || (options.seconds && sample->seconds >= *options.seconds)) break;
      frames.push_back(std::move(*sample));
    }
  } catch (const media::Error& error) {
    if (error.kind() != media::Error::Kind::cancelled || reader.stats().sampled_frames == 0) throw;
  }
  return frames;
}

}  // namespace

double PruningReport::kept_share() const {
  std::int64_t kept = 0, all = 0;
  for (const PrunedPatch& patch : patches) {
    kept += patch.groups.count();
    all += patch.groups.cells();
  }
  return all == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(all);
}

PruningReport report_pruning(media::VideoReader& reader, const PruningReportOptions& options,
                             const base::Clock& clock, media::ContactSheet* sheet) {
  if (options.frames_per_patch < 1) throw std::invalid_argument("a patch has at least one frame");
  const auto policy = prune::make_pruning(options.policy, options.pruning);
  PruningReport report;
  report.policy = options.policy;
  report.frames_per_patch = options.frames_per_patch;
  std::vector<double> times;
  while (true) {
    const std::vector<media::SampledFrame> frames = next_patch(reader, options);
    if (frames.empty()) break;
    const auto begin = clock.now();
    const actors::PruningInput input(frames, options.pruning.grid, policy->wants_motion());
    PrunedPatch patch{frames.front().seconds, policy->choose(frames.front().seconds, input.pictures())};
    const std::chrono::duration<double, std::milli> time = clock.now() - begin;
    times.push_back(time.count() / static_cast<double>(frames.size()));
    if (sheet != nullptr) sheet->add(frames.front(), patch.groups);
    report.patches.push_back(std::move(patch));
  }
  report.decision_ms = percentile(times, 0.5);
  report.decision_ms_95 = percentile(std::move(times), 0.95);
  return report;
}

std::string to_text(const PruningReport& report) {
  std::vector<double> shares;
  std::size_t whole = 0;
  for (const PrunedPatch& patch : report.patches) {
    shares.push_back(static_cast<double>(patch.groups.count()) / static_cast<double>(patch.groups.cells()));
    if (patch.groups.has_all()) ++whole;
  }
  const base::GridMask grid = report.patches.empty() ? base::GridMask() : report.patches.front().groups;
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "  pruning      %s\n"
                "  patches      %zu of %lld x %lld groups, %d frames each; %zu whole\n"
                "  kept         %.3f of all groups; of a patch: median %.3f, 95 of 100 at most %.3f\n"
                "  decisions    %.3f ms a frame (median; 95 of 100 within %.3f)\n",
                report.policy.c_str(), report.patches.size(), static_cast<long long>(grid.height()),
                static_cast<long long>(grid.width()), report.frames_per_patch, whole, report.kept_share(),
                percentile(shares, 0.5), percentile(shares, 0.95), report.decision_ms, report.decision_ms_95);
  return text.data();
}

std::string to_json(const PruningReport& report) {
  nlohmann::ordered_json patches = nlohmann::ordered_json::array();
  for (const PrunedPatch& patch : report.patches)
    patches.push_back({{"seconds", patch.seconds},
                       {"rows", patch.groups.height()},
                       {"columns", patch.groups.width()},
                       {"kept", patch.groups.list()}});
  const nlohmann::ordered_json json = {
      {"pruning", report.policy},
      {"frames_per_patch", report.frames_per_patch},
      {"kept_share", report.kept_share()},
      {"decision_ms", {{"median", report.decision_ms}, {"percentile95", report.decision_ms_95}}},
      {"patches", std::move(patches)}};
  return json.dump();
}

}  // namespace vigil::bench
