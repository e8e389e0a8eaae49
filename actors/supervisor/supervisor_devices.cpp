// The part of the supervisor's shell that sends each camera to a device.
#include "actors/supervisor/supervisor_actor.h"

namespace vigil::actors {

void supervisor_state::route(const std::string& camera) {
  const auto device = placement->place(camera);
  if (!device) return;
  const auto vision = visions.find(*device);
  if (vision != visions.end()) {
    self->send(pruner, Route{camera, vision->second});
    if (const auto change = fleet->watched(camera, "watched on " + *device)) tell(*change);
  } else if (placement->state(*device) != DeviceState::up) {
    unwatched(camera, *device + " is being started again");
  }
}

void supervisor_state::unwatched(const std::string& camera, const std::string& reason) {
  self->send(pruner, Route{camera, {}});
  if (const auto change = fleet->unwatched(camera, reason)) tell(*change);
}

void supervisor_state::report(const DeviceReport& report) {
  deps->metrics.device_state(report.device, report.state);
  deps->board.device(report.device, report.state, report.reason);
  switch (report.state) {
    case DeviceState::up:
      return device_up(report);
    case DeviceState::restarting:
      return device_restarting(report);
    case DeviceState::lost:
      return device_lost(report);
  }
}

void supervisor_state::device_up(const DeviceReport& report) {
  placement->enter(report.device, DeviceState::up);
  visions[report.device] = report.vision;
  for (const std::string& camera : placement->cameras(report.device)) route(camera);
  // What had ended on the way through the engine before this one would otherwise never come out.
  end_orphans();
}

void supervisor_state::device_restarting(const DeviceReport& report) {
  placement->enter(report.device, DeviceState::restarting);
  visions.erase(report.device);
  for (const std::string& camera : placement->cameras(report.device))
    unwatched(camera, report.device + " is being started again: " + report.reason);
}

void supervisor_state::device_lost(const DeviceReport& report) {
  visions.erase(report.device);
  const std::string lost = report.device + " is lost: " + report.reason;
  for (const auto& [camera, device] : placement->lose(report.device)) {
    unwatched(camera, lost);
    if (device) route(camera);
  }
  if (placement->any_left()) return end_orphans();
  // Nothing is watched any more. A new process is what brings a device back, and whoever runs this one starts
  // it again when it fails.
  fleet->fail("no device is left: " + lost);
  stop();
  finish_pipeline();
}

}  // namespace vigil::actors
