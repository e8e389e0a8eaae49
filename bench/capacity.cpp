#include "bench/capacity.h"

#include <algorithm>
#include <utility>

#include "bench/capacity_search.h"

namespace vigil::bench {
namespace {

/// Who is served least is looked for within every whole minute.
constexpr double kLeastOverload = 75;

Capacity try_exactly(const CapacityPlan& plan, double stride, const MeasureCameras& measure,
                     const TellStep& tell) {
  int held = 0;
  for (const int cameras : plan.exactly) {
    const PipelineFigures figures = measure(cameras, plan.seconds, false);
    if (figures.held(stride)) held = std::max(held, cameras);
    tell("step", figures, held);
  }
  return {held, true};
}

Capacity search(const CapacityPlan& plan, double stride, const MeasureCameras& measure,
                const TellStep& tell) {
  std::optional<PipelineFigures> best;
  CapacitySearch search(std::min(plan.start, plan.most), plan.most);
  while (const auto cameras = search.next()) {
    PipelineFigures figures = measure(*cameras, plan.seconds, true);
    const bool held = figures.held(stride);
    tell("step", figures, std::nullopt);
    search.tried(held);
    if (held) best = std::move(figures);
  }
  if (best) tell("cameras_held", *best, search.held());
  return {search.held(), best.has_value()};
}

}  // namespace

Capacity measure_capacity(const CapacityPlan& plan, double stride, const MeasureCameras& measure,
                          const TellStep& tell) {
  const Capacity capacity =
      plan.exactly.empty() ? search(plan, stride, measure, tell) : try_exactly(plan, stride, measure, tell);
  if (plan.overload > 0 && capacity.held > 0) {
    const int many = std::max(capacity.held + 1, static_cast<int>(plan.overload * capacity.held));
    tell("overload", measure(many, std::max(plan.seconds, kLeastOverload), false), capacity.held);
  }
  return capacity;
}

}  // namespace vigil::bench
