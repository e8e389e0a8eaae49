#include "cluster/membership/fleet_member.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/timestamp.h"
#include "cluster/placement/rendezvous.h"

namespace vigil::cluster {
namespace {

/// A lease is kept alive so many times within its time.
constexpr int kBeats = 3;
constexpr std::chrono::seconds kTelling{1};
/// How long at least, beyond its time, another's lease may hold before it is taken for one that is kept
/// alive: a registry that lost its leader begins all leases anew.
constexpr base::Duration kLeastPatience{3000};
constexpr std::chrono::hours kRemarked{1};
/// For each node: if all offer themselves when nobody plans, all but one do so in vain.
constexpr base::Duration kOffering{1};

/// What a registry says of itself begins with what it is.
std::string without_own_name(const std::string& reason) {
  constexpr std::string_view kName = "registry: ";
  return reason.starts_with(kName) ? reason.substr(kName.size()) : reason;
}

std::string words_of(const std::set<Fence>& fences) {
  std::string text;
  for (const Fence fence : fences) text += ' ' + std::to_string(fence);
  return text;
}

template <class T>
const RegistryHeader& header_of(const T& answer) {
  if constexpr (std::is_same_v<T, RegistryHeader>) {
    return answer;
  } else {
    return answer.header;
  }
}

}  // namespace

std::string_view name_of(Membership state) {
  switch (state) {
    case Membership::joining:
      return "joining";
    case Membership::member:
      return "member";
    case Membership::cut_off:
      return "cut off";
    case Membership::replaced:
      return "replaced";
  }
  return "?";
}

FleetMember::FleetMember(Registry& registry, base::Loop& loop, const base::Clock& clock, Options options)
    : registry_(registry),
      loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.fleet),
      record_(options_.record),
      self_(std::make_shared<FleetMember*>(this)),
      settled_word_{keys_.settled(record_.name)},
      filled_word_{keys_.filled(record_.name)},
      refused_word_{keys_.refused(record_.name)},
      own_name_(clock, {.patience = options_.ttl + std::max(options_.ttl, kLeastPatience),
                        .namesake = options_.namesake,
                        .say = [this](const std::string& line) { say(line); }}) {
  const auto mirror = [this](const std::string& prefix) {
    return RegistryMirror::Options{.prefix = prefix,
                                   .changed = [this] { mirror_changed(); },
                                   .heard = [this](const RegistryHeader& header) { heard(header); },
                                   .failed = [this](const std::string& reason) { unheard(reason); }};
  };
  nodes_mirror_.emplace(registry_, loop_, mirror(keys_.nodes()));
  planner_mirror_.emplace(registry_, loop_, mirror(keys_.planner()));
  step();
}

FleetMember::~FleetMember() {
  *self_ = nullptr;
}

template <class T>
Registry::Done<T> FleetMember::then(std::function<void(const T&)> piece,
                                    std::function<void(const RegistryFailure&)> failed) {
  return [&loop = loop_, self = self_, piece = std::move(piece),
          failed = std::move(failed)](RegistryResult<T> result) {
    loop.post([self, piece, failed, result = std::move(result)] {
      if (*self == nullptr) return;
      if (const auto* failure = std::get_if<RegistryFailure>(&result)) {
        if (failure->kind == RegistryFailure::Kind::unreachable) (*self)->unheard(failure->text);
        failed(*failure);
      } else {
        (*self)->heard(header_of(std::get<T>(result)));
        piece(std::get<T>(result));
      }
      if (*self != nullptr) (*self)->step();
    });
  };
}

bool FleetMember::holds() const {
  return lease_ != 0 && clock_.now() < held_until_;
}

std::optional<base::Duration> FleetMember::lease_left() const {
  if (!holds()) return std::nullopt;
  return std::chrono::duration_cast<base::Duration>(held_until_ - clock_.now());
}

Membership FleetMember::state() const {
  if (replaced_) return Membership::replaced;
  if (holds() && has_put_) return Membership::member;
  return was_member_ ? Membership::cut_off : Membership::joining;
}

void FleetMember::say(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void FleetMember::heard(const RegistryHeader& header) {
  if (!std::exchange(registry_answers_, true) && was_unheard_) say("registry: answers again");
  was_unheard_ = false;
  const auto remark = guard_.see(header);
  if (!remark) return;
  registry_remark_ = *remark + " (noticed " + base::format_rfc3339(clock_.wall()) + ")";
  remarked_until_ = clock_.now() + kRemarked;
  say("registry: " + *remark);
  // Whatever it said before is void: leases and records may be gone, and watches wait for revisions that
  // other changes will have.
  lose_lease();
  nodes_mirror_->restart();
  planner_mirror_->restart();
}

void FleetMember::unheard(const std::string& reason) {
  if (std::exchange(registry_answers_, false) || !was_unheard_)
    say("registry: does not answer: nothing moves until it does: " + without_own_name(reason));
  was_unheard_ = true;
}

void FleetMember::mirror_changed() {
  read_nodes();
  step();
  tell();
}

void FleetMember::read_nodes() {
  for (const std::string& key : nodes_mirror_->take_changed()) {
    const std::string name = key.substr(keys_.nodes().size());
    std::optional<NodeRecord> record;
    if (const RegistryEntry* const entry = nodes_mirror_->find(key)) {
      try {
        record = parse_node(entry->value);
        // A record says of itself who it is; where it lies is what counts.
        if (record->name != name) throw std::runtime_error("it is a record of node " + record->name);
      } catch (const std::exception& error) {
        record.reset();
        if (unreadable_ != entry->value) say("registry: " + key + ": " + error.what());
        unreadable_ = entry->value;
      }
    }
    const auto known = nodes_.find(name);
    if (known == nodes_.end() ? !record : record == known->second) continue;
    nodes_changed_ = true;
    if (!record || known == nodes_.end() || differ_in_substance(*record, known->second)) ++changes_;
    if (record) {
      nodes_.insert_or_assign(name, *std::move(record));
    } else {
      nodes_.erase(known);
    }
  }
  // What the mirror has not seen yet says nothing.
  if (nodes_mirror_->revision() < put_revision_) return;
  const auto own = nodes_.find(record_.name);
  if (!has_put_) {
    // Its lease has ended: a record that was put since is a newer process's. An older one may be there of a
    // registry that was set back.
    const RegistryEntry* const there = nodes_mirror_->find(keys_.node(record_.name));
    if (put_revision_ == 0 || own == nodes_.end() || there->created <= put_revision_) return;
  }
  if (own == nodes_.end()) return lose_lease();
  if (own->second.incarnation == record_.incarnation) return;
  replaced_ = true;
  say("another node is called " + record_.name + " now: the one at " + text_of(own->second.control));
}

/// Does what is due and not under way.
void FleetMember::step() {
  if (replaced_ || leaving_) return tell();
  // A lease that may have run out is asked for again and again (`beat`): a registry that was silent has
  // mostly kept it, and a new one would have every node put its record, and tell all of it.
  if (lease_ == 0) {
    ask_for_lease();
  } else if (nodes_mirror_->is_current() && is_record_due()) {
    put_record();
  } else {
    put_words();
    if (is_planner_due()) put_planner();
  }
  tell();
}

void FleetMember::tell() {
  const Told now{state(), planner()};
  const bool others_are_due =
      nodes_changed_ && (!nodes_told_ || clock_.now() - *nodes_told_ >= options_.pace);
  if (now == told_ && !others_are_due) {
    if (!nodes_changed_ || std::exchange(will_tell_, true)) return;
    loop_.after(options_.pace, [self = self_] {
      if (*self == nullptr) return;
      (*self)->will_tell_ = false;
      (*self)->tell();
    });
    return;
  }
  if (std::exchange(nodes_changed_, false)) nodes_told_ = clock_.now();
  told_ = now;
  was_member_ = was_member_ || now.state == Membership::member;
  if (options_.changed) options_.changed();
}

base::Duration FleetMember::share_of(base::Duration time) const {
  constexpr std::uint64_t kParts = 1 << 16;
  const std::uint64_t part = Rendezvous::hash_of(record_.name) % kParts;
  return time * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(kParts);
}

void FleetMember::step_after(base::Duration time) {
  loop_.after(time, [self = self_] {
    if (*self != nullptr) (*self)->step();
  });
}

void FleetMember::ask_for_lease() {
  if (std::exchange(lease_asked_, true)) return;
  const auto asked = clock_.now();
  registry_.grant(options_.ttl, then<RegistryLease>(
                                    [this, asked](const RegistryLease& lease) {
                                      lease_asked_ = false;
                                      lease_ = lease.id;
                                      held_until_ = asked + lease.ttl;
                                      beat();
                                    },
                                    [this](const RegistryFailure&) { again(lease_asked_); }));
}

/// What failed is tried again after a while.
void FleetMember::again(bool& asked) {
  loop_.after(options_.ttl / kBeats, [self = self_, &asked] {
    if (*self == nullptr) return;
    asked = false;
    (*self)->step();
  });
}

/// Whether others may be told of this node.
bool FleetMember::may_enter() {
  if (!options_.entering || may_be_told_) return true;
  if (!std::exchange(is_entering_, true)) options_.entering();
  return may_be_told_;
}

bool FleetMember::has_name() {
  // After it was a member once, what has its name is newer (`read_nodes`), or of a registry that was set
  // back.
  if (put_revision_ != 0) return true;
  const OwnName::Verdict verdict = own_name_.look(record_, nodes_mirror_->find(keys_.node(record_.name)));
  replaced_ = replaced_ || verdict == OwnName::Verdict::taken;
  return verdict == OwnName::Verdict::may_write;
}

void FleetMember::enter() {
  may_be_told_ = true;
  step();
}

void FleetMember::take_name() {
  own_name_.take();
  step();
}

bool FleetMember::is_record_due() {
  if (joined_ == 0 && (!has_name() || !may_enter())) return false;
  // Over what the mirror has not seen yet nothing is put for a while: the registry would refuse it.
  if (has_put_ && nodes_mirror_->revision() < put_revision_ && clock_.now() < put_at_ + options_.ttl / kBeats)
    return false;
  if (!has_put_ || due_ == Due::now) return true;
  if (due_ == Due::none) return false;
  if (!due_at_) {
    const base::Duration wait = share_of(options_.spread * static_cast<std::int64_t>(nodes_.size()));
    due_at_ = clock_.now() + wait;
    step_after(wait);
  }
  return clock_.now() >= *due_at_;
}

void FleetMember::put_record() {
  if (std::exchange(record_asked_, true)) return;
  const std::string key = keys_.node(record_.name);
  const RegistryEntry* const there = nodes_mirror_->find(key);
  // What is altered until the answer comes is put after it.
  due_ = Due::none;
  due_at_.reset();
  registry_.commit({.conditions = {{key, there == nullptr ? 0 : there->modified}},
                    .changes = {RegistryPut{key, print(record_), lease_}}},
                   then<RegistryCommit>(
                       [this, lease = lease_](const RegistryCommit& commit) {
                         if (!commit.made || lease != lease_) due_ = Due::now;
                         if (!commit.made) {
                           // The mirror is not what the registry has: of one with another history, which came
                           // back before that could be seen, it would never hear what is missing.
                           nodes_mirror_->restart();
                           return again(record_asked_);
                         }
                         record_asked_ = false;
                         if (lease != lease_) return;
                         has_put_ = true;
                         put_revision_ = commit.header.revision;
                         put_at_ = clock_.now();
                         if (joined_ == 0) joined_ = put_revision_;
                       },
                       [this](const RegistryFailure& failure) {
                         due_ = Due::now;
                         if (failure.kind == RegistryFailure::Kind::no_lease) lose_lease();
                         again(record_asked_);
                       }));
}

void FleetMember::put_words() {
  put(settled_word_);
  put(filled_word_);
  put(refused_word_);
}

void FleetMember::put(Word& word) {
  if (!word.text || word.text == word.put || state() != Membership::member || word.is_asked) return;
  if (clock_.now() < word.again) return;
  word.is_asked = true;
  word.again = clock_.now() + kTelling;
  step_after(kTelling);
  registry_.commit(
      {.conditions = {}, .changes = {RegistryPut{word.key, record_.incarnation + *word.text, lease_}}},
      then<RegistryCommit>(
          [this, &word, lease = lease_, text = word.text](const RegistryCommit&) {
            word.is_asked = false;
            if (lease == lease_) word.put = text;
          },
          [this, &word](const RegistryFailure& failure) {
            if (failure.kind == RegistryFailure::Kind::no_lease) lose_lease();
            again(word.is_asked);
          }));
}

bool FleetMember::is_planner_due() {
  if (!willing_ || !planner_mirror_->is_current() || !planner().empty() || state() != Membership::member) {
    offers_at_.reset();
    return false;
  }
  if (!offers_at_) {
    const base::Duration wait = share_of(kOffering * static_cast<std::int64_t>(nodes_.size()));
    offers_at_ = clock_.now() + wait;
    if (wait > base::Duration(0)) step_after(wait);
  }
  return clock_.now() >= *offers_at_;
}

void FleetMember::put_planner() {
  if (std::exchange(planner_asked_, true)) return;
  registry_.commit(
      {.conditions = {{keys_.planner(), 0}},
       .changes = {RegistryPut{keys_.planner(), record_.name + ' ' + record_.incarnation, lease_}}},
      then<RegistryCommit>(
          [this](const RegistryCommit& commit) {
            if (!commit.made) planner_mirror_->restart();
            again(planner_asked_);
          },
          [this](const RegistryFailure&) { again(planner_asked_); }));
}

/// Every so often for as long as there is a lease.
void FleetMember::beat() {
  loop_.after(options_.ttl / kBeats, [self = self_, lease = lease_] {
    if (*self != nullptr && (*self)->lease_ == lease) (*self)->keep_alive();
  });
}

void FleetMember::keep_alive() {
  if (replaced_ || leaving_) return;
  beat();
  const LeaseId lease = lease_;
  step();
  if (lease_ != lease) return;
  // Whether the one before was answered or not: with one that is lost, the lease would run out before its
  // time limit is over.
  const auto asked = clock_.now();
  registry_.keep_alive(lease, then<RegistryLease>(
                                  [this, asked](const RegistryLease& answer) {
                                    if (answer.id == lease_)
                                      held_until_ = std::max(held_until_, asked + answer.ttl);
                                  },
                                  [this, lease](const RegistryFailure& failure) {
                                    if (failure.kind == RegistryFailure::Kind::no_lease && lease == lease_)
                                      lose_lease();
                                  }));
}

void FleetMember::lose_lease() {
  if (lease_ == 0) return;
  lease_ = 0;
  has_put_ = false;
  settled_word_.put.reset();
  filled_word_.put.reset();
  refused_word_.put.reset();
}

Revision FleetMember::created(const std::string& node) const {
  const RegistryEntry* const entry = nodes_mirror_->find(keys_.node(node));
  return entry == nullptr ? 0 : entry->created;
}

std::string FleetMember::planner() const {
  const RegistryEntry* const entry = planner_mirror_->find(keys_.planner());
  return entry == nullptr ? "" : entry->value.substr(0, entry->value.find(' '));
}

bool FleetMember::is_planner() const {
  return planner_condition().has_value();
}

std::optional<RegistryCondition> FleetMember::planner_condition() const {
  const RegistryEntry* const entry = planner_mirror_->find(keys_.planner());
  if (entry == nullptr || entry->value != record_.name + ' ' + record_.incarnation) return std::nullopt;
  if (state() != Membership::member) return std::nullopt;
  return RegistryCondition{keys_.planner(), entry->modified};
}

void FleetMember::stand_for_planner(bool willing) {
  willing_ = willing;
  const auto held = planner_condition();
  if (!willing && held)
    registry_.commit({.conditions = {*held}, .changes = {RegistryDelete{keys_.planner()}}},
                     [](const RegistryResult<RegistryCommit>&) {});
  step();
}

void FleetMember::alter(const std::function<void(NodeRecord&)>& change) {
  const NodeRecord before = record_;
  change(record_);
  if (record_ == before) return;
  due_ = std::max(due_, differ_at_once(before, record_) ? Due::now : Due::later);
  step();
}

void FleetMember::saw(Fence fence) {
  record_.highest_fence = std::max(record_.highest_fence, fence);
}

void FleetMember::contradict() {
  due_ = Due::now;
  step();
}

void FleetMember::doubt() {
  due_ = std::max(due_, Due::later);
  step();
}

void FleetMember::settle(Fence fence) {
  settled_ = std::max(settled_, fence);
  if (settled_ > 0) settled_word_.text = ' ' + std::to_string(settled_);
  step();
}

void FleetMember::fill(const std::set<Fence>& streams) {
  filled_word_.text = words_of(streams);
  step();
}

void FleetMember::refuse(const std::set<Fence>& fences) {
  // Mostly there never is any, and nothing to be told.
  if (fences.empty() && !refused_word_.text) return;
  refused_word_.text = words_of(fences);
  step();
}

void FleetMember::leave(std::function<void()> done) {
  leaving_ = true;
  const LeaseId lease = std::exchange(lease_, 0);
  if (lease == 0) return done();
  registry_.revoke(lease, [&loop = loop_, done = std::move(done)](const RegistryResult<RegistryHeader>&) {
    loop.post(done);
  });
}

}  // namespace vigil::cluster
