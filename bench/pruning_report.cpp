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

template <typename Count>
double share_of(const std::vector<PrunedPatch>& patches, const Count& count) {
  std::int64_t counted = 0, all = 0;
  for (const PrunedPatch& patch : patches) {
    counted += count(patch.groups);
    all += patch.groups.encoded.cells();
  }
  return all == 0 ? 1 : static_cast<double>(counted) / static_cast<double>(all);
}

}  // namespace

double PruningReport::encoded_share() const {
  return share_of(patches, [](const prune::Choice& choice) { return choice.encoded.count(); });
}

double PruningReport::kept_share() const {
  return share_of(patches, [](const prune::Choice& choice) { return choice.in_stream().count(); });
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
    const actors::PruningInput input(frames, options.pruning.grid, *policy);
    PrunedPatch patch{frames.front().seconds, policy->choose(frames.front().seconds, input.pictures())};
    const std::chrono::duration<double, std::milli> time = clock.now() - begin;
    times.push_back(time.count() / static_cast<double>(frames.size()));
    if (sheet != nullptr) sheet->add(frames.front(), patch.groups.encoded, patch.groups.in_stream());
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
    const base::GridMask& encoded = patch.groups.encoded;
    shares.push_back(static_cast<double>(encoded.count()) / static_cast<double>(encoded.cells()));
    if (encoded.has_all()) ++whole;
  }
  const base::GridMask grid =
      report.patches.empty() ? base::GridMask() : report.patches.front().groups.encoded;
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(),
                "  pruning      %s\n"
                "  patches      %zu of %lld x %lld groups, %d frames each; %zu whole\n"
                "  encoded      %.3f of all groups; of a patch: median %.3f, 95 of 100 at most %.3f\n"
                "  kept         %.3f of all groups\n"
                "  decisions    %.3f ms a frame (median; 95 of 100 within %.3f)\n",
                report.policy.c_str(), report.patches.size(), static_cast<long long>(grid.height()),
                static_cast<long long>(grid.width()), report.frames_per_patch, whole, report.encoded_share(),
                percentile(shares, 0.5), percentile(shares, 0.95), report.kept_share(), report.decision_ms,
                report.decision_ms_95);
  return text.data();
}

std::string to_json(const PruningReport& report) {
  nlohmann::ordered_json patches = nlohmann::ordered_json::array();
  for (const PrunedPatch& patch : report.patches)
    patches.push_back({{"seconds", patch.seconds},
                       {"rows", patch.groups.encoded.height()},
                       {"columns", patch.groups.encoded.width()},
                       {"encoded", patch.groups.encoded.list()},
                       {"kept", patch.groups.in_stream().list()}});
  const nlohmann::ordered_json json = {
      {"pruning", report.policy},
      {"frames_per_patch", report.frames_per_patch},
      {"encoded_share", report.encoded_share()},
      {"kept_share", report.kept_share()},
      {"decision_ms", {{"median", report.decision_ms}, {"percentile95", report.decision_ms_95}}},
      {"patches", std::move(patches)}};
  return json.dump();
}

}  // namespace vigil::bench
