// A node's membership of its fleet: its lease, its record, and who else is there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/loop.h"
#include "cluster/membership/fleet_keys.h"
#include "cluster/membership/node_record.h"
#include "cluster/membership/own_name.h"
#include "cluster/membership/registry_mirror.h"
#include "cluster/registry/registry.h"
#include "cluster/registry/registry_guard.h"

namespace vigil::cluster {

/// joining: it never was a member; member: its lease holds, for all it knows; cut_off: its lease may have
/// run out, since the registry did not answer: what it has goes on, and others may have been given it;
/// replaced: another process has its name, and it has to end.
enum class Membership : std::uint8_t { joining, member, cut_off, replaced };

std::string_view name_of(Membership state);

/// For pieces of its loop alone.
class FleetMember {
 public:
  struct Options {
    std::string fleet;
    NodeRecord record;
    /// How long after its last sign of life a node counts as gone.
    base::Duration ttl{5000};
    /// What becomes of other nodes is told at once, and then no more than so often.
    base::Duration pace{100};
    /// What of its record can wait (its configuration) is put within so long for each node of the fleet, as
    /// all alter it at once, and all see what each puts.
    base::Duration spread{10};
    /// What is to be done before others are told of this node, once it knows who is there: they are told when
    /// `enter` is called. Null: nothing.
    std::function<void()> entering = {};
    /// There is the record of another process of this name, at this one's own address: the run before this
    /// one, unless the address is of more than one machine. To be looked at, until `take_name` or the end of
    /// that one's lease. Null: the name is taken at once.
    std::function<void(const NodeRecord& other)> namesake = {};
    /// The membership, the nodes, or who plans is another now.
    std::function<void()> changed = {};
    /// One line.
    std::function<void(const std::string&)> log = {};
  };

  /// All have to outlive it, and the loop what the registry still answers.
  FleetMember(Registry& registry, base::Loop& loop, const base::Clock& clock, Options options);
  ~FleetMember();
  FleetMember(const FleetMember&) = delete;
  FleetMember& operator=(const FleetMember&) = delete;

  Membership state() const;
  const NodeRecord& record() const { return record_; }
  const FleetKeys& keys() const { return keys_; }

  /// For how long its lease holds for sure, unless it is kept alive meanwhile; nothing: it has none.
  std::optional<base::Duration> lease_left() const;

  /// Those that are there, this one included, as far as the registry last told: when it does not answer,
  /// those that were there then.
  const std::map<std::string, NodeRecord>& nodes() const { return nodes_; }
  /// Grows with every change of these but of their configuration, and of the fences that they have seen.
  std::uint64_t changes() const { return changes_; }
  /// The registry's revision at which a node's record was made: another one once it was gone in between. 0 if
  /// there is none.
  Revision created(const std::string& node) const;
  /// At which this node's was put first; 0 before that.
  Revision joined() const { return joined_; }
  /// Whether the registry answered when it was asked last; what is known of it is older otherwise.
  bool registry_answers() const { return registry_answers_; }
  /// Of the registry that was restored or replaced while this was running: what was noticed last, for an
  /// hour.
  std::string registry_remark() const { return clock_.now() < remarked_until_ ? registry_remark_ : ""; }

  /// Who plans; empty if nobody does.
  std::string planner() const;
  /// Whether this one does: its lease holds, and the registry says so.
  bool is_planner() const;
  /// Holds as long as this node is the one that plans, for transactions of the plan.
  std::optional<RegistryCondition> planner_condition() const;
  /// This node offers itself. A planner that does not any more gives it up.
  void stand_for_planner(bool willing);

  /// Others may be told of it, and the run before this one is over (`Options::entering`, `namesake`).
  void enter();
  void take_name();

  base::Duration ttl() const { return options_.ttl; }

  /// Alters what it tells of itself.
  void alter(const std::function<void(NodeRecord&)>& change);
  /// A fence that it has seen. The others are told with what is told next: whoever wrote it knows it.
  void saw(Fence fence);
  /// The registry knows of lower fences only: the others are told now.
  void contradict();
  /// It may know of lower ones only: the others are told as of what can wait.
  void doubt();
  /// Every camera that it was given with this fence or a lower one delivers, or was tried in vain. At most
  /// once a second, and for whoever plans alone.
  void settle(Fence fence);
  /// These streams of its cameras are full where they have moved to (`PlannedCamera::stream_fence`). In the
  /// same way; none is news, too: that this node tells.
  void fill(const std::set<Fence>& streams);
  /// By these fences its cameras are refused, since the others of these were seen of them, which are higher,
  /// or since another node has the same: the registry was set back, and who plans does not know what it had
  /// given. In the same way, once there is one.
  void refuse(const std::set<Fence>& fences);

  /// Gives the lease back, so that the others need not wait for its end. Nothing is done any more after it.
  void leave(std::function<void()> done);

 private:
  /// What `changed` is about.
  struct Told {
    Membership state = Membership::joining;
    std::string planner;
    friend bool operator==(const Told&, const Told&) = default;
  };

  template <class T>
  std::function<void(RegistryResult<T>)> then(std::function<void(const T&)> piece,
                                              std::function<void(const RegistryFailure&)> failed);
  void heard(const RegistryHeader& header);
  void unheard(const std::string& reason);
  void mirror_changed();
  void read_nodes();
  void step();
  void tell();
  void again(bool& asked);
  void ask_for_lease();
  bool may_enter();
  bool has_name();
  bool is_record_due();
  void put_record();
  void put_words();
  bool is_planner_due();
  void put_planner();
  /// Somewhere within that time, always at the same place for this node.
  base::Duration share_of(base::Duration time) const;
  void step_after(base::Duration time);
  void beat();
  void keep_alive();
  void lose_lease();
  bool holds() const;
  void say(const std::string& line) const;

  Registry& registry_;
  base::Loop& loop_;
  const base::Clock& clock_;
  const Options options_;
  const FleetKeys keys_;
  NodeRecord record_;
  RegistryGuard guard_;
  std::string registry_remark_;
  base::Clock::TimePoint remarked_until_{};
  /// Points at this as long as it is there.
  std::shared_ptr<FleetMember*> self_;
  std::optional<RegistryMirror> nodes_mirror_;
  std::optional<RegistryMirror> planner_mirror_;
  std::map<std::string, NodeRecord> nodes_;
  std::uint64_t changes_ = 0;
  /// Of a node, what was complained about last.
  std::string unreadable_;
  /// 0: none. Held for sure until then.
  LeaseId lease_ = 0;
  base::Clock::TimePoint held_until_;
  /// Before its record is put for the first time.
  bool is_entering_ = false;
  bool may_be_told_ = false;
  /// Whether this node has put its record with this lease, and at which revision.
  bool has_put_ = false;
  Revision put_revision_ = 0;
  base::Clock::TimePoint put_at_;
  /// Of this node's record, when it was put first.
  Revision joined_ = 0;
  /// Whether the record is another than what was put: what can wait is put then.
  enum class Due : std::uint8_t { none, later, now };
  Due due_ = Due::none;
  std::optional<base::Clock::TimePoint> due_at_;
  /// What it has to tell whoever plans, and what it has put of that with this lease.
  struct Word {
    std::string key;
    std::optional<std::string> text = {};
    std::optional<std::string> put = {};
    bool is_asked = false;
    base::Clock::TimePoint again = {};
  };
  void put(Word& word);
  Fence settled_ = 0;
  Word settled_word_;
  Word filled_word_;
  Word refused_word_;
  OwnName own_name_;
  /// From when on this node offers itself, if nobody else did before.
  std::optional<base::Clock::TimePoint> offers_at_;
  bool was_member_ = false;
  bool replaced_ = false;
  bool leaving_ = false;
  bool willing_ = false;
  bool registry_answers_ = false;
  bool was_unheard_ = false;
  /// What is asked and not answered.
  bool lease_asked_ = false;
  bool record_asked_ = false;
  bool planner_asked_ = false;

  Told told_;
  bool nodes_changed_ = false;
  std::optional<base::Clock::TimePoint> nodes_told_;
  bool will_tell_ = false;
};

}  // namespace vigil::cluster
