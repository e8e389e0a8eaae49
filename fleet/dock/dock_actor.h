// The shell around `DockBook`: owns the devices of a node that computes, and lets cameras of other nodes in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/device/engine_parts.h"
#include "actors/messages/spawn.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/supervisor/routes.h"
#include "base/clock.h"
#include "fleet/dock/dock_book.h"
#include "fleet/messages.h"
#include "fleet/wire/link_frames.h"

namespace vigil::fleet {

struct DockDeps {
  std::vector<actors::DeviceSlot> devices;
  /// Of a group of the vision tower, in pixels.
  int group = 28;
  const base::Clock& clock;
  actors::Metrics& metrics;
  actors::StatusBoard& board;
  spdlog::logger& logger;
  actors::Threads threads = actors::Threads::own;
  actors::PipelineObserver observer = {};
  /// How long cameras are kept whose node is away.
  base::Duration patience{15'000};
};

struct dock_state {
  explicit dock_state(dock_actor::pointer self_pointer) : self(self_pointer) {}

  void start();
  void report(const actors::DeviceReport& report);
  void route(const actors::Routes::Decision& decision);
  void attach(const std::string& node, link_actor link);
  void take(const BulkArrival& arrival);
  void take(const std::string& node, JoinFrame& frame);
  void take(const std::string& node, SettingsFrame& frame);
  void take(const std::string& node, PackedPatch& patch);
  void take(const std::string& node, EndFrame& frame);
  void refuse(const std::string& node, const std::string& camera, std::uint64_t fence,
              const std::string& reason);
  void answer(const actors::WindowAnswersPtr& window, const actors::stream_actor& source);
  void explain(const actors::Explain& request, link_actor link);
  void explained(const actors::Explanation& text);
  void done(const actors::Done& done);
  void ended(const std::string& camera);
  void link_lost(const caf::actor_addr& link);
  void tick();
  void stop();

  dock_actor::pointer self;
  std::optional<DockDeps> deps;
  DockBook book;
  std::optional<actors::Routes> routes;
  actors::router_actor router;
  std::vector<actors::device_actor> devices;
  std::map<std::string, actors::vision_actor> visions;
  /// By node.
  std::map<std::string, link_actor> links;
  /// By camera.
  std::map<std::string, guest_actor> guests;
  /// Who answered about a camera last.
  std::map<std::string, actors::stream_actor> sources;
  /// What was asked to be explained, by the ticket that it has here.
  struct Asked {
    link_actor link;
    std::uint64_t ticket = 0;
    base::Clock::TimePoint at;
  };
  std::map<std::uint64_t, Asked> asked;
  std::uint64_t last_ticket = 0;
  static inline const char* name = "dock";
};

dock_actor::behavior_type dock(dock_actor::stateful_pointer<dock_state> self, DockDeps deps);

}  // namespace vigil::fleet
