#include "config/running/degradation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vigil::config {
namespace {

/// Less shows no object.
constexpr double kLeastKept = 0.05;
/// A question and its answer, in pictures.
constexpr double kQuestion = 0.1;

/// Of a picture, what is encoded as a rule (docs/scale.md).
double usual_share(Pruning policy) {
  switch (policy) {
    case Pruning::none:
      return 1;
    case Pruning::changes:
      return 0.25;
    case Pruning::codecsight:
    case Pruning::reference:
    case Pruning::dtd:
    case Pruning::scene:
      break;
  }
  return 0.5;
}

/// Whether it can tell which groups of a picture matter most.
bool can_rank(Pruning policy) {
  return policy == Pruning::scene || policy == Pruning::changes;
}

double share_of(const PruningSettings& pruning) {
  const double usual = usual_share(pruning.policy);
  return can_rank(pruning.policy) ? std::min(usual, pruning.kept) : usual;
}

/// Of a window's tokens, those that are computed anew beside new ones.
double renewed(const PruningSettings& pruning) {
  switch (pruning.refresh) {
    case Refresh::all:
      return 1;
    case Refresh::none:
      return 0;
    case Refresh::codecsight:
    case Refresh::first_k:
    case Refresh::random_k:
    case Refresh::topk:
      break;
  }
  return pruning.refresh_share;
}

/// In pictures a second.
StreamLoad pictures_of(const StreamSettings& stream, std::size_t rules) {
  const double stride = base::seconds(stream.window.stride);
  const double strides = base::seconds(stream.window.length) / stride;
  const double fresh = stream.fps * share_of(stream.pruning);
  const double again = renewed(stream.pruning);
  const double language = fresh * (again * strides + 1 - again);
  return {fresh + language + kQuestion * static_cast<double>(rules) / stride, fresh};
}

void take(const DegradeStep& step, StreamSettings& stream) {
  const base::Duration stride = stream.window.stride;
  if (step.stride > 1)
    stream.window.stride =
        std::clamp(base::Duration(std::llround(static_cast<double>(stride.count()) * step.stride)), stride,
                   std::max(stride, stream.window.length));
  // Every stride has a frame.
  if (step.fps < 1)
    stream.fps =
        std::min(stream.fps, std::max(stream.fps * step.fps, 1 / base::seconds(stream.window.stride)));
  if (step.kept < 1 && can_rank(stream.pruning.policy))
    stream.pruning.kept =
        std::max(std::min(kLeastKept, stream.pruning.kept), share_of(stream.pruning) * step.kept);
}

}  // namespace

StreamLoad load_of(const CameraSettings& camera) {
  static const double standard = pictures_of(StreamSettings(), 1).all;
  const StreamLoad pictures = pictures_of(camera.stream, camera.rules.size());
  return {pictures.all / standard, pictures.vision / standard};
}

void lower(CameraSettings& camera, std::string_view step) {
  const std::vector<DegradeStep>& steps = camera.stream.degrade;
  const auto last = std::ranges::find(steps, step, &DegradeStep::name);
  if (last == steps.end()) return;
  StreamSettings lowered = camera.stream;
  for (auto each = steps.begin(); each <= last; ++each) take(*each, lowered);
  camera.stream = std::move(lowered);
}

std::vector<Rung> ladder_of(const CameraSettings& camera) {
  std::vector<Rung> ladder;
  CameraSettings lowered = camera;
  double least = load_of(camera).all;
  for (const DegradeStep& step : camera.stream.degrade) {
    take(step, lowered.stream);
    const StreamLoad load = load_of(lowered);
    // What rounding leaves of it is no saving.
    if (load.all > least * (1 - 1e-6)) continue;
    ladder.push_back({step.name, load});
    least = load.all;
  }
  return ladder;
}

}  // namespace vigil::config
