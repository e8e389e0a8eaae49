// Which other nodes this one knows, which of them it has to do with, and what is to be done about it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/bulk/bulk.h"
#include "cluster/membership/greeting.h"
#include "cluster/membership/node_record.h"
#include "cluster/planning/plan.h"

namespace vigil::fleet {

/// A node that this one deals with is greeted: every gateway, by a gateway every node, and those that it
/// needs. One that fits is known, as is one that greets by itself: its bulk bytes are taken, and it may be
/// linked to. One that has no way to any with which nodes of its roles deal greets some of these, so that it
/// is known whether it can be reached before anything is given to it. With all others a city of a thousand
/// nodes would have half a million connections. Of two nodes that may both want to greet each other, the one
/// whose name is first does, and the other waits for that a while: where both connect at once, CAF closes
/// both connections. Not thread-safe.
class NodeDesk {
 public:
  explicit NodeDesk(const base::Clock& clock) : clock_(clock) {}

  /// Who is there now, and what this node is, whether the registry tells of it yet or not.
  void see(const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self);
  /// Which others this node needs, whether they are there or not.
  void need(std::set<std::string> nodes) { needed_ = std::move(nodes); }

  /// Nodes that are to be greeted now, since they came, or since it did not work and it is time again.
  std::vector<cluster::NodeRecord> take_greetings();
  /// Whether this is still the one that was asked.
  void greeted(const std::string& node, const std::string& incarnation);
  /// It could not be reached, or does not fit: tried again after a while.
  void failed(const std::string& node, const std::string& incarnation, const std::string& reason);

  /// Nodes that have come and that the registry does not tell of, at most: their names are what they say.
  static constexpr std::size_t kMostUnseen = 64;
  /// One that has come by itself and fits. False, and it is not known, if the registry does not tell of it,
  /// nor of as many others as may be.
  bool came(const cluster::NodeRecord& node);
  /// The connection to it broke, though its lease may hold: it is greeted anew.
  void lost(const std::string& node, const std::string& self);

  bool knows(const std::string& node) const;
  /// Whether the registry tells of it, or it has come lately.
  bool knows_of(const std::string& node) const { return peers_.contains(node); }
  /// Whether it is known, was, or is to be: others are none of this node's business.
  bool deals_with(const std::string& node) const;
  /// Nodes that are known, that this one has to do with, and that are to be greeted again now: whether they
  /// answer, and what their clocks say.
  std::vector<cluster::NodeRecord> take_checks();
  /// What that has shown, from either side; empty: all is well. A clock that is apart, or an answer that does
  /// not come, breaks no way that stands. Returns whether that is news.
  bool checked(const std::string& node, const std::string& incarnation, const std::string& fault);

  /// Whether there is a way to it by which it answers.
  bool reaches(const std::string& node) const;
  /// Whether nodes of these roles do cameras' work together; of one that is a gateway alone, all are its
  /// counterparts. That a node which has work reaches a gateway does not help it.
  static bool are_counterparts(const std::set<cluster::NodeRole>& own,
                               const std::set<cluster::NodeRole>& other);
  /// Whether there are such of this one; and whether there is a way to any.
  bool has_counterparts() const;
  bool reaches_a_counterpart() const;
  /// Some of those among these, in an order of this node's own.
  static std::vector<cluster::NodeRecord> counterparts(
      const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self,
      std::size_t most);
  /// Whether there was a way to this run of it.
  bool had_way(const std::string& node, const std::string& incarnation) const;
  /// Whether most nodes that it knows have another time than this one.
  bool is_clock_off() const;

  /// Those that are known, with this incarnation: for the bulk port, endpoints not resolved yet.
  std::vector<cluster::NodeRecord> known() const;

  /// Why nodes are not known, by name.
  std::map<std::string, std::string> troubles() const;

 private:
  struct Peer {
    cluster::NodeRecord record;
    enum class State : std::uint8_t { fresh, asked, known, waiting };
    State state = State::fresh;
    /// Of waiting ones; of one that has come and that the registry does not tell of: how long it may be so.
    base::Clock::TimePoint again;
    base::Duration pause{0};
    std::string trouble;
    /// Its name is before ours.
    bool theirs_first = false;
    /// The registry has told of it.
    bool is_seen = false;
    /// There was a way to it.
    bool was_known = false;
    /// When it was greeted last.
    base::Clock::TimePoint tried = {};
    /// Of known ones: what a later greeting has shown, and when the next is due.
    std::string fault;
    bool is_checked = false;
    base::Clock::TimePoint check;
    /// By this node.
    bool was_greeted = false;
  };

  Peer* find(const std::string& node, const std::string& incarnation);
  bool is_needed(const cluster::NodeRecord& node) const;
  bool is_counterpart(const Peer& peer) const;
  void choose_probes();
  void know(Peer& peer);

  const base::Clock& clock_;
  std::map<std::string, Peer> peers_;
  std::set<std::string> needed_;
  std::set<std::string> probes_;
  std::string self_;
  std::set<cluster::NodeRole> roles_;
};

/// The device that goes on answering a camera's windows until those of its own are full; empty: none.
std::string former_device_of(const cluster::PlannedCamera& camera);

/// The nodes that compute for these cameras, formers included, but for cameras that wait for one: those that
/// encode, with those that have the streams, mostly the same.
std::set<std::pair<std::string, std::string>> computing_nodes(const cluster::NodePlan& plan);
/// The same, each once.
std::set<std::string> nodes_for(const cluster::NodePlan& plan);
/// Whether another node is there that is ready, and could go on with what this one does in that role.
bool has_successor(const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self,
                   cluster::NodeRole role);
/// Whether that node computes for a camera of one of the nodes that are there.
bool computes(const cluster::FleetPlan& plan, const std::map<std::string, cluster::NodeRecord>& nodes,
              const std::string& node);

}  // namespace vigil::fleet
