// The part of the supervisor's shell that hears devices and sends each camera to one.
#include "actors/supervisor/supervisor_actor.h"

namespace vigil::actors {
namespace {

/// How long a device of another node may take to be heard of, which nodes that have just met are not yet.
constexpr auto kNews = std::chrono::seconds(2);

}  // namespace

void supervisor_state::report(const DeviceReport& report) {
  deps->metrics.device_state(report.device, report.state);
  deps->board.device(report.device, report.state, report.reason);
  if (report.state == DeviceState::up) {
    visions[report.device] = report.vision;
  } else {
    visions.erase(report.device);
  }
  const Routes::Decisions decisions = routes->enter(report.device, report.state, report.reason);
  for (const Routes::Decision& decision : decisions.cameras) route(decision);
  // A new process is what brings a device back, and whoever runs this one starts it again when it fails.
  if (!decisions.hopeless.empty()) return fail(decisions.hopeless);
  // What had ended on the way through the engine before this one would otherwise never come out.
  if (report.state != DeviceState::restarting) end(fleet->orphans());
}

void supervisor_state::route(const Routes::Decision& decision) {
  if (decision.device.empty()) {
    self->send(router, Route{decision.camera, {}, {}});
    return tell(decision.is_awaited
                    ? fleet->awaits(decision.camera, decision.reason, deps->clock.now() + kNews)
                    : fleet->unwatched(decision.camera, decision.reason));
  }
  Route there{decision.camera, decision.device, visions.at(decision.device), decision.former};
  if (!decision.former.empty()) there.former_vision = visions.at(decision.former);
  self->send(router, there);
  tell(fleet->watched(decision.camera, "watched on " + decision.device));
}

}  // namespace vigil::actors
