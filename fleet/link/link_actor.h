// The shell around `LinkDesk`. Patches go to the node that encodes, answers come from the one that has the
// streams, which is mostly the same.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/watch_book.h"
#include "actors/status/metrics.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "fleet/link/link_desk.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

struct LinkDeps {
  /// This node, the one that encodes, and the one that has the streams.
  std::string node;
  std::string vision;
  std::string stream;
  /// By the bulk way to the one that encodes.
  LinkDesk::Send send;
  /// Of a group of the vision tower, in pixels.
  int group = 28;
  const base::Clock& clock;
  actors::Metrics& metrics;
  spdlog::logger& logger;
  /// Hears of fences that others have seen; may be null.
  node_actor owner = {};
  /// Gets windows and ends in place of the alerts actor, which gets them from there; may be null.
  turns_actor turns = {};
};

struct link_state {
  explicit link_state(link_actor::pointer self_pointer) : self(self_pointer) {}

  void attach();
  void attach_to(const dock_actor& dock, const std::function<void(bool)>& done);
  void tell(const std::optional<LinkDesk::Change>& change);
  void hear(const BulkNews& news);
  void lost(const std::string& reason);
  void send(const LinkFrame& frame);
  void tell_dropped();
  void acknowledge(const actors::PatchAck& ack);
  void answer(const actors::WindowForm& form);
  /// All of a camera has come.
  void over(const std::string& camera);
  /// A camera that was refused joins again once it has a higher fence.
  void join_again(const std::string& camera);

  link_actor::pointer self;
  std::optional<LinkDeps> deps;
  std::optional<LinkDesk> desk;
  /// As this node's router knows what lies behind the link.
  std::string device;
  dock_actor vision;
  dock_actor stream;
  actors::router_actor router;
  actors::alerts_actor alerts;
  actors::device_listener_actor listener;
  /// Settings of the cameras that joined, for the answers about them.
  actors::WatchBook book;
  /// Which node goes on with each camera's texts.
  std::map<std::string, TextsAt> texts;
  /// Nothing comes of it any more.
  void forget(const std::string& camera);
  /// Cameras that are computed elsewhere, of which something is left there; and those that end.
  std::set<std::string> moved;
  std::set<std::string> ending;
  /// Incarnations of the cameras that joined; and of those that were refused, the fences that are known
  /// there.
  std::map<std::string, std::uint32_t> generations;
  std::map<std::string, std::uint64_t> refused;
  bool asking = false;
  static inline const char* name = "link";
};

/// `vision`, `stream`: the docks of the other nodes. They are monitored, and the link quits when one is gone:
/// another link is made for the one that comes.
link_actor::behavior_type link(link_actor::stateful_pointer<link_state> self, LinkDeps deps,
                               dock_actor vision, dock_actor stream, actors::router_actor router,
                               actors::alerts_actor alerts, actors::device_listener_actor listener);

}  // namespace vigil::fleet
