// The shell around `DockBook`: owns the devices of a node that computes, and lets cameras of other nodes in.
// Devices may have half of a model; then visual tokens go to another node's dock, or come from one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
#include "fleet/dock/encodings.h"
#include "fleet/dock/text_arrivals.h"
#include "fleet/dock/texts_away.h"
#include "fleet/dock/token_streams.h"
#include "fleet/link/link_desk.h"
#include "fleet/messages/messages.h"
#include "fleet/wire/link_frames.h"

namespace vigil::fleet {

struct DockDeps {
  /// This node.
  std::string node;
  std::vector<actors::DeviceSlot> devices;
  /// Of a group of the vision tower, in pixels.
  int group = 28;
  /// Of a visual token, in numbers; 0: any.
  std::int64_t token_width = 0;
  const base::Clock& clock;
  actors::Metrics& metrics;
  actors::StatusBoard& board;
  spdlog::logger& logger;
  actors::Threads threads = actors::Threads::own;
  actors::PipelineObserver observer = {};
  /// How long cameras are kept whose node is away.
  base::Duration patience{15'000};
  /// How devices reach what remembers, if anything does.
  actors::CacheAccess cache = {};
  std::uint64_t seed = 0;
};

struct dock_state {
  explicit dock_state(dock_actor::pointer self_pointer) : self(self_pointer) {}

  void start();
  void report(const actors::DeviceReport& report);
  void route(const actors::Routes::Decision& decision);
  bool attach(const Passage& passage, link_actor link);
  void take(const BulkArrival& arrival);
  void take(const std::string& node, JoinFrame& frame);
  void take(const std::string& node, SettingsFrame& frame);
  void take(const std::string& node, PackedPatch& patch);
  void take(const std::string& node, MovedFrame& frame);
  void take(const std::string& node, EndFrame& frame);
  void take(const std::string& node, TokensJoinFrame& frame);
  void take(const std::string& node, TokensSettingsFrame& frame);
  void take(const std::string& node, PackedTokens& tokens);
  void take(const std::string& node, TokensMovedFrame& frame);
  void take(const std::string& node, TokensEndFrame& frame);
  void take(const std::string& node, TextFrame& frame);
  void take(const std::string& node, PackedPages& pages);
  void refuse(const Passage& passage, const std::string& camera, std::uint64_t fence,
              const std::string& reason);
  /// Of the owner before, whose camera has another one that brings nothing yet. False: it is not taken.
  bool take_former(const std::string& node, PackedPatch& patch);
  void begin(const Encodings::Beginning& beginning);
  /// It has ended here for good.
  void forget(const std::string& camera);
  /// Nothing follows of it: what this node's device has comes to its end.
  void end(const std::string& camera);
  void answer(const actors::WindowAnswersPtr& window, const actors::stream_actor& source);
  void explain(const actors::Explain& request, link_actor link);
  void explained(const actors::Explanation& text);
  void done(const actors::Done& done);
  void ended(const std::string& camera);
  /// Monitors an actor of another node, once.
  void watch(const caf::actor_addr& other);
  /// Of this dock or elsewhere, an actor is no more.
  void lost(const caf::actor_addr& address);
  void hear(const BulkNews& news);
  void end_overdue();
  void tick();
  void stop();

  // --- What of a camera's tokens goes to other nodes (dock_tokens.cpp) ---

  /// Another node's dock, which has the streams of cameras that are encoded here.
  struct Way {
    dock_actor dock;
    LinkDesk desk;
    bool asking = false;
  };
  bool has_way(const std::string& node);
  void make_way(const DockWay& way);
  void attach(const std::string& node);
  void tell(const std::string& node, const std::optional<LinkDesk::Change>& change);
  void send(Way& way, const LinkFrame& frame);
  void answer_dropped(Way& way);
  void open_lane(const actors::WatchPtr& watch, std::uint32_t session, actors::tokens_sender_actor source);
  /// It is this node that encodes it for its stream, with these settings, if it has a lane. It may have
  /// another owner, or another tower may have brought it meanwhile.
  void join_lane(const actors::WatchPtr& watch);
  void take(const actors::VisualPatchPtr& patch);
  void abandon(const std::string& camera, Encodings::Lane& lane);
  /// Those of a device that is no more.
  void drop_lanes(const actors::vision_actor& device);
  void lane_over(const std::string& camera);
  void hear_stream(const actors::TokensRoom& room);
  void hear_stream(const actors::TokensAck& ack);
  void hear_stream(const GuestRefused& refused);

  // --- and what comes from them (dock_streams.cpp) ---

  void begin_stream(const TokenStreams::Join& join);
  /// Of a stream that is at this device, if that is up.
  template <class... Message>
  void tell_device(const std::string& device, const Message&... message);
  bool attach_sender(const std::string& node, dock_actor sender);
  void detach_senders(const std::string& reason);
  template <class Message>
  void tell_sender(const std::string& camera, const Message& message);

  // --- Texts that go on at other nodes, and theirs here (dock_texts.cpp) ---

  /// A text of another node, at a device of this one, by the ticket that it has here.
  struct GuestText {
    dock_actor from;
    std::uint64_t ticket = 0;
    actors::tokens_actor device;
    base::Clock::TimePoint at;
  };
  void know(const TextsAt& place);
  /// The node to which a text of this camera can go now; empty: it stays here.
  std::string goes_to(const std::string& camera);
  /// Asks the device for it, or to explain it itself.
  void ask_device(std::uint64_t ticket);
  /// Of a device of this node.
  void send_text(const actors::CarriedTextPtr& text);
  /// No text comes back: it is explained here.
  void stay(std::uint64_t ticket, const std::string& why);
  void stay_all(const std::string& node, const std::string& why);
  void hear_text(const actors::Explanation& text);
  void tell_arrivals(const std::string& node, const std::vector<TextArrivals::News>& news);
  void begin_text(const std::string& node, const actors::CarriedTextPtr& text);
  /// Of a text of another node. False: it is none.
  bool give_back_text(const actors::Explanation& text);
  void end_overdue_texts();

  dock_actor::pointer self;
  std::optional<DockDeps> deps;
  DockBook book;
  std::optional<actors::Routes> routes;
  actors::router_actor router;
  std::vector<actors::device_actor> devices;
  /// By device that is up, if it has that half of the model.
  std::map<std::string, actors::vision_actor> visions;
  std::map<std::string, actors::tokens_actor> languages;
  std::map<Passage, link_actor> links;
  bool has_tower = false, has_language = false;
  std::size_t lost_devices = 0;
  /// Of other nodes.
  std::set<caf::actor_addr> watched;
  /// This node's, which knows ways to others; null until it has come.
  node_actor node;
  /// By node; and those that were asked for.
  std::map<std::string, Way> ways;
  std::set<std::string> ways_wanted;
  std::optional<Encodings> encodings;
  /// Of lanes.
  std::uint32_t sessions = 0;
  /// By node: whoever brings tokens.
  std::map<std::string, dock_actor> senders;
  TokenStreams streams;
  /// By camera.
  std::map<std::string, guest_actor> guests;
  /// Who answered about a camera last.
  std::map<std::string, actors::stream_actor> sources;
  /// Of texts that were asked here and of those of other nodes.
  std::uint64_t last_ticket = 0;
  std::optional<TextsAway> texts;
  std::optional<TextArrivals> arrivals;
  std::map<std::uint64_t, GuestText> guest_texts;
  static inline const char* name = "dock";
};

dock_actor::behavior_type dock(dock_actor::stateful_pointer<dock_state> self, DockDeps deps);

}  // namespace vigil::fleet
