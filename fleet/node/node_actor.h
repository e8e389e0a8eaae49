// The shell around `FleetMember`, `PlanKeeper` and `NodeDesk`.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "actors/messages/clips.h"
#include "actors/messages/spawn.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "cluster/membership/config_keeper.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/planning/plan_keeper.h"
#include "config/settings.h"
#include "fleet/dock/dock_book.h"
#include "fleet/link/link_desk.h"
#include "fleet/messages/actor_loop.h"
#include "fleet/messages/messages.h"
#include "fleet/messages/node_standing.h"
#include "fleet/messages/past_interface.h"
#include "fleet/node/bulk_peer_book.h"
#include "fleet/node/camera_book.h"
#include "fleet/node/gateway_directory.h"
#include "fleet/node/node_desk.h"
#include "fleet/node/place_book.h"
#include "fleet/node/refusal_book.h"
#include "fleet/node/ways_in.h"
#include "fleet/node/ways_out.h"
#include "fleet/status/node_report.h"
#include "fleet/turns/window_turns.h"

namespace vigil::fleet {

/// How a node reaches others; sockets, or a simulation's. What is called back runs on any thread. Outlives
/// the node.
struct NodeWays {
  /// The actor that a node has published, or why there is none.
  std::function<void(const cluster::PeerAddress&,
                     std::function<void(std::variant<greeter_actor, std::string>)>)>
      find;
  /// The addresses that a name stands for, in numbers; none if it is not known.
  std::function<void(const cluster::PeerAddress&, std::function<void(std::vector<cluster::PeerAddress>)>)>
      resolve;
  cluster::BulkPort* bulk = nullptr;
};

struct NodeDeps {
  std::string fleet;
  cluster::NodeRecord record;
  base::Duration lease{5000};
  /// Nodes that are asked first whether this one fits; a name may stand for many.
  std::vector<cluster::PeerAddress> seeds = {};
  cluster::Registry& registry;
  NodeWays ways;
  /// What was read at the start; without a fault.
  ReadConfigurationPtr configuration;
  /// A camera with its secrets, of those that this node opens (`CameraBook`).
  std::function<config::CameraSettings(config::CameraSettings)> resolve;
  /// Takes a text of the fleet's from the registry, and has it read; null: it is in the node's own file.
  std::function<void(std::string)> offered = {};
  /// The fleet runs by these from now on, or still, and only what is this node's own may be another: the line
  /// says since which version, and what has changed.
  std::function<void(const config::Settings&, const std::string& line)> applied = {};
  /// Null where this node reads no cameras, or computes nothing.
  actors::supervisor_actor supervisor;
  dock_actor dock;
  /// Null where this node makes no events, or is no gateway.
  maker_actor maker = {};
  gateway_actor gateway = {};
  /// Of a group of the vision tower, in pixels.
  int group = 28;
  const base::Clock& clock;
  actors::Metrics& metrics;
  actors::StatusBoard& board;
  spdlog::logger& logger;
  /// Its metrics as a node; may be null.
  actors::FleetSeries* series = nullptr;
  /// Gives out stills and clips; may be null.
  fetcher_actor fetcher = {};
  /// Which clips are kept here; null: none is named.
  const actors::Clips* clips = nullptr;
  /// Asks all nodes about the past, and answers them; may be null. Whether there is anything here to be asked
  /// about.
  past_actor past = {};
  bool remembers = false;
  /// Is told how long cameras are remembered; null where nothing is.
  actors::cache_actor cache = {};
  /// It cannot go on as a member, and why; called once.
  std::function<void(const std::string&)> expelled = {};
};

struct node_state {
  explicit node_state(node_actor::pointer self_pointer) : self(self_pointer) {}
  ~node_state() { keep_for_late_answers(std::move(loop)); }

  void start();
  /// One seed, by name, then by each of its addresses; `heard` is done for each.
  void ask_seed(const cluster::PeerAddress& seed);
  void heard_seed(const cluster::PeerAddress& seed, const std::string& refusal);
  void join();
  cluster::Greeting greeting() const;
  std::string why_not(const std::string& text, base::Duration way) const;
  std::string answer(const std::string& text);
  /// Also whether that one is reached, if it asks.
  caf::result<std::string> answer_in_full(const std::string& text);
  void greet(const cluster::NodeRecord& node);
  void greeted(const cluster::NodeRecord& node, const greeter_actor& greeter, base::Clock::TimePoint sent,
               const std::string& text);
  void failed(const cluster::NodeRecord& node, const std::string& reason);
  /// There is a way to that node, by this actor of it.
  void found_way(const std::string& node, const greeter_actor& greeter);
  /// Monitors an actor of another node, once.
  void watch(const caf::actor_addr& other);
  /// Of this node or another, an actor is no more.
  void lost(const caf::actor_addr& address);
  /// Whoever is at the end of a way that broke is greeted anew.
  void lost_way(const caf::actor_addr& greeter);
  /// Those that have met this node before the registry told of them.
  void take_met();

  // node_reach.cpp: whether there is a way to others.

  /// Greets some of those that are there before this node is told of, so that it is known whether it can be
  /// given anything.
  void enter();
  void heard_while_entering(const cluster::NodeRecord& node, const std::string& refusal);
  void entered(bool has_counterparts);
  bool is_counterpart(const cluster::NodeRecord& node) const;
  /// To this node, with the answer of the one at its address: empty if it is that one, else why not.
  void come_back_to(const cluster::NodeRecord& node, std::function<void(const std::string&)> done);
  /// Whether others reach this node.
  void ask_whether_reached();
  void ask_whether_reached(const std::string& node, const greeter_actor& greeter);
  void heard_whether_reached();
  /// Whether the run before this one still lives.
  void look_for_namesake();
  void let_in(const cluster::NodeRecord& node, const greeter_actor& greeter, const std::string& fault);
  void ask_for_time(const cluster::NodeRecord& node, const greeter_actor& greeter);
  void check(const cluster::NodeRecord& node);
  void checked(const cluster::NodeRecord& node, const std::string& fault);
  /// Tells to which nodes there is no way.
  void look_at_ways();

  void members_changed();
  /// It cannot go on as a member.
  void expel(const std::string& why);
  void plan_changed();
  /// To the supervisor: this node's cameras, by its plan and its configuration.
  void give_cameras();

  // node_configuration.cpp: by what this node runs.

  void follow_configuration();
  void read(const ReadConfigurationPtr& configuration);
  void apply(const cluster::FleetConfig& config);
  void tell_keeps(const config::Settings& settings);
  /// This node's own fault with what it has read last may be another now.
  void look_at_configuration();
  void read_snoozes();
  /// Asks the registry for a text that is to be read, if there is one.
  void fetch_configuration();
  /// Cameras of the plan that the configuration goes on not to have.
  void tell_unknown();

  void list_bulk_peers();
  void link_up();
  /// Null if there is none, or no way to it.
  void find_dock(const std::string& node, const std::function<void(const dock_actor&)>& found);
  LinkDesk::Send send_to(const std::string& node, const dock_actor& there);
  /// To links, which nodes go on with their cameras' texts.
  void tell_texts();
  void make_link(const Passage& passage, const dock_actor& vision, const dock_actor& stream);
  void hear(const BulkNews& news);
  /// Finds gateways, and tells of them.
  void follow_gateways();
  void settle();
  /// Tells which streams are full where they have moved to.
  void fill();
  /// Those to whom no way for bulk bytes opens.
  void greet_again();
  /// Of other nodes, those that compute for this one's cameras, and those to which its dock sends.
  std::set<std::string> needed() const;
  void greet_needed();
  /// A fence that this node, or one that it deals with, has seen.
  void saw(cluster::Fence fence);
  void ask_for_fences();
  /// The highest that this node's gateway has in its books.
  void kept(cluster::Fence fence);
  /// By such a one a node does not serve this one; of a camera.
  void refused(cluster::Fence fence);
  void refused(const std::string& camera, cluster::Fence fence);
  /// Tells whoever plans of cameras that have lower ones than they are refused by.
  void tell_refused();
  /// A NodeQuestion about this node.
  caf::result<std::string> tell_of(const std::string& question) const;
  NodeStandingPtr standing() const;
  caf::result<std::uint64_t> find_evidence(const std::string& file);
  caf::result<std::string> find_clips(const std::string& wish) const;
  void hear(const BulkArrivalPtr& arrival);
  void report();
  void tick();
  void drain();
  /// Whether this node is rid of all that others could do for it.
  bool is_drained() const;
  void tell_drained();
  void stop();

  node_actor::pointer self;
  std::optional<NodeDeps> deps;
  std::optional<NodeDesk> desk;
  std::unique_ptr<ActorLoop> loop;
  std::optional<cluster::FleetMember> member;
  std::optional<cluster::PlanKeeper> plan;
  std::optional<WaysOut> ways_out;
  std::optional<WaysIn> ways_in;
  std::optional<NodeReport> reporter;
  actors::Stages stages;
  bool has_stages = false;
  /// Of other nodes.
  std::set<caf::actor_addr> watched;
  /// By node; by device (`device_of`).
  std::map<std::string, greeter_actor> greeters;
  /// Nodes that are asked for their time at first contact, and later; by name.
  std::set<std::string> asked_for_time, checking;
  std::map<std::string, link_actor> links;
  GatewayDirectory gateways;
  /// Nodes to which this one's dock needs a way.
  std::set<std::string> ways_wanted;
  /// And those to which it needed one, ever.
  std::set<std::string> sent_to;
  /// Devices and nodes whose docks were asked for and have not answered.
  std::set<std::string> linking;
  /// Bulk ways that stand.
  std::set<std::string> open_ways;
  /// Of nodes that are known and needed, and have none: since when.
  std::map<std::string, base::Clock::TimePoint> without_way;
  BulkPeerBook bulk_peers;
  /// Where each camera's patches go, as of the last plan.
  PlaceBook places;
  turns_actor turns;
  /// Moves of streams that are over, by their fences.
  std::set<std::uint64_t> filled;
  /// Whom it told which node goes on with a camera's texts.
  std::map<std::string, std::pair<caf::actor_addr, TextsAt>> texts_told;
  RefusalBook refusals;
  /// Cameras that this node had, as long as the configuration has them.
  std::set<std::string> had;
  std::optional<cluster::ConfigKeeper> configuration;
  std::optional<cluster::RegistryMirror> snoozes;
  /// Which text the registry offers, and those that were asked for since.
  std::optional<cluster::RegistryMirror> offer;
  std::set<std::string> fetched;
  std::optional<CameraBook> book;
  /// What was read without a fault of the file, each content once, the newest last; and what was read last.
  std::deque<ReadConfigurationPtr> readings;
  ReadConfigurationPtr reading;
  /// Cameras of the plan that the configuration does not have, and since when; and those of which that was
  /// said.
  std::map<std::string, base::Clock::TimePoint> unknown;
  std::set<std::string> told_unknown;
  std::vector<caf::typed_response_promise<bool>> draining;
  /// Those that have met this node, by node and incarnation, until the registry tells of them.
  std::map<std::pair<std::string, std::string>, greeter_actor> met;
  /// Nodes that are greeted before others are told of this one, and have not answered; nothing: they are
  /// told.
  std::optional<std::size_t> entering = 0;
  /// Seeds that have not answered.
  std::size_t seeds_left = 0;
  /// Whether its gateway has told what it has of a time before this process.
  bool has_told_kept = false;
  bool was_expelled = false;
  bool is_stopping = false;
  /// It was told to end: its links were, too, and none is made any more.
  bool has_stopped = false;
  static inline const char* name = "node";
};

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, NodeDeps deps);

}  // namespace vigil::fleet
