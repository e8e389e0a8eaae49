#include "cluster/bulk/port_core.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/one_line.h"
#include "cluster/sockets/pace.h"

namespace vigil::cluster {
namespace {

// Handed over before others have their turn: what is summed up meanwhile takes a millisecond.
constexpr std::uint64_t kTurn = 4 << 20;
// A stream that stood for so long was a good one: the next attempt comes at once.
constexpr auto kGood = std::chrono::seconds(5);

// What a peer may say that answers nothing of ours: heartbeats, and room for what came by the stream before.
constexpr double kUnaskedAtOnce = 1000;
constexpr double kUnaskedPerSecond = 100;
// Each begins a stream anew, and the owner hears of it.
constexpr double kHellosAtOnce = 100;
constexpr double kHellosPerSecond = 10;

std::size_t index_of(BulkEnd end) {
  return static_cast<std::size_t>(end);
}

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytes && base::one_line(name) == name;
}

constexpr const char* kNameRule = "the name of a port has 1 to 255 bytes of text";

void check(const BulkOptions& options) {
  if (!is_name(options.name)) throw BulkError(kNameRule + (": " + base::one_line(options.name)));
  const BulkLimits& limits = options.limits;
  if (limits.messages == 0 || limits.message == 0 || limits.message > limits.bytes ||
      limits.header > limits.message || limits.bytes >= std::uint64_t{1} << 62)
    throw BulkError("the limits of bulk messages contradict each other");
  if (options.heartbeat.count() <= 0 || options.silence < 2 * options.heartbeat ||
      options.handshake.count() <= 0 || options.first_pause.count() <= 0 ||
      options.longest_pause < options.first_pause)
    throw BulkError("the times of a bulk port contradict each other");
}

}  // namespace

struct PortCore::Peer {
  Peer(BulkPeer as, const BulkOptions& options, const base::Clock& clock, const std::function<void()>& wake)
      : listed(std::move(as)),
        out(options.limits, clock),
        in(std::make_shared<ReceiveAccount>(options.limits, wake)),
        back_off(options.first_pause, options.longest_pause),
        unasked(kUnaskedAtOnce, kUnaskedPerSecond, clock.now()),
        hellos(kHellosAtOnce, kHellosPerSecond, clock.now()) {}

  enum class In : std::uint8_t { resting, greeting, open };

  BulkPeer listed;

  SendAccount out;
  /// Where the outgoing stream stands.
  std::optional<BulkConnection> connection;
  /// By which key the peer was let in there.
  std::string out_key;
  bool out_checksums = true;
  TimePoint out_heard{};
  TimePoint out_said{};

  std::shared_ptr<ReceiveAccount> in;
  In in_state = In::resting;
  std::uint64_t stream = 0;
  std::string in_key;
  /// Which of the peer's keys is tried next.
  std::size_t key = 0;
  /// Of the next message.
  std::uint64_t number = 0;
  TimePoint in_since{};
  TimePoint in_heard{};
  TimePoint in_said{};
  TimePoint dial_at{};
  BackOff back_off;
  /// Over all of its connections.
  Pace unasked;
  Pace hellos;

  // Under the core's lock.
  std::uint64_t dials = 0;
  std::array<std::uint64_t, kBulkEnds.size()> failed_dials{};
};

PortCore::PortCore(const BulkOptions& options, BulkOwner& owner, BulkLinks& links, const base::Clock& clock,
                   std::function<void()> wake)
    : options_((check(options), options)),
      owner_(owner),
      links_(links),
      clock_(clock),
      wake_(std::move(wake)),
      random_(options.seed),
      incarnation_(random_()) {}

PortCore::~PortCore() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, listed] : listed_) listed.peer->in->close();
  for (const auto& [name, peer] : peers_) peer->in->close();
}

BulkSent PortCore::send(const std::string& peer, const BulkMessage& message) {
  PeerPtr found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = listed_.find(peer);
    if (at == listed_.end()) return {};
    found = at->second.peer;
  }
  const BulkSent sent = found->out.send(message);
  if (sent) wake_();
  return sent;
}

std::optional<std::string> PortCore::why_not(const BulkPeer& peer, bool encrypted,
                                             const std::map<std::string, std::string>& names_by_key) const {
  if (!is_name(peer.name)) return kNameRule;
  if (encrypted == peer.keys.empty())
    return encrypted ? "it has no key" : "it has keys, and this port has none";
  const std::set<std::string> keys(peer.keys.begin(), peer.keys.end());
  if (keys.size() < peer.keys.size()) return "it has a key twice";
  for (const std::string& key : keys)
    if (const auto other = names_by_key.find(key); other != names_by_key.end())
      return "its key is that of " + other->second;
  return std::nullopt;
}

std::vector<BulkRefusal> PortCore::set_peers(const std::vector<BulkPeer>& peers, bool encrypted) {
  std::vector<BulkRefusal> refused;
  {
    const std::lock_guard lock(mutex_);
    // Those first that have their keys already: nobody loses his by another's saying that he has it.
    std::vector<const BulkPeer*> turns;
    turns.reserve(peers.size());
    for (const BulkPeer& peer : peers) turns.push_back(&peer);
    std::stable_partition(turns.begin(), turns.end(), [&](const BulkPeer* peer) {
      const auto known = listed_.find(peer->name);
      return known != listed_.end() && known->second.as.keys == peer->keys;
    });
    std::map<std::string, Listed> listed;
    std::map<std::string, std::string> names_by_key;
    for (const BulkPeer* const peer : turns) {
      auto why = why_not(*peer, encrypted, names_by_key);
      if (listed.contains(peer->name)) why = "two peers have this name";
      if (why) {
        refused.push_back({base::one_line(peer->name.substr(0, kNameBytes)), std::move(*why)});
        continue;
      }
      const auto known = listed_.find(peer->name);
      PeerPtr same = known != listed_.end() ? known->second.peer
                                            : std::make_shared<Peer>(*peer, options_, clock_, wake_);
      listed.emplace(peer->name, Listed{*peer, std::move(same)});
      for (const std::string& key : peer->keys) names_by_key.emplace(key, peer->name);
    }
    listed_ = std::move(listed);
    list_changed_ = true;
    names_by_key_ = std::move(names_by_key);
  }
  wake_();
  return refused;
}

std::map<std::string, BulkCounters> PortCore::counters() const {
  std::map<std::string, BulkCounters> result;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, listed] : listed_) {
    BulkCounters& counters = result[name];
    listed.peer->out.count(counters);
    counters.incoming = listed.peer->in->counters();
    counters.dials = listed.peer->dials;
    counters.failed_dials = listed.peer->failed_dials;
  }
  return result;
}

std::optional<std::string> PortCore::peer_of(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_by_key_.find(key);
  return found == names_by_key_.end() ? std::nullopt : std::optional(found->second);
}

void PortCore::take_up_list() {
  std::map<std::string, Listed> listed;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(list_changed_, false)) return;
    listed = listed_;
  }
  for (const auto& [name, peer] : std::exchange(peers_, {})) {
    const auto found = listed.find(name);
    if (found != listed.end() && found->second.peer == peer) continue;
    end_outgoing(*peer, BulkEnd::unlisted, true);
    end_incoming(*peer, BulkEnd::unlisted, true);
    peer->in->close();
  }
  for (const auto& [name, as] : listed) {
    peers_.emplace(name, as.peer);
    take_up(*as.peer, as.as);
  }
}

void PortCore::take_up(Peer& peer, const BulkPeer& as) {
  const auto is_listed = [&](const std::string& key) {
    return key.empty() || std::find(as.keys.begin(), as.keys.end(), key) != as.keys.end();
  };
  if (peer.connection && !is_listed(peer.out_key)) end_outgoing(peer, BulkEnd::unlisted, true);
  if (peer.in_state != Peer::In::resting && !is_listed(peer.in_key))
    end_incoming(peer, BulkEnd::unlisted, true);
  if (peer.listed == as) return;
  peer.listed = as;
  peer.key = 0;
  // What did not work may work now.
  peer.dial_at = clock_.now();
  peer.back_off.reset();
}

void PortCore::dial(Peer& peer) {
  const TimePoint now = clock_.now();
  peer.in_key = peer.listed.keys.empty() ? "" : peer.listed.keys[peer.key % peer.listed.keys.size()];
  peer.stream = std::max<std::uint64_t>(random_(), 1);
  peer.in_state = Peer::In::greeting;
  peer.in_since = peer.in_heard = peer.in_said = now;
  {
    const std::lock_guard lock(mutex_);
    ++peer.dials;
  }
  BulkHello hello{.from = options_.name,
                  .to = peer.listed.name,
                  .incarnation = incarnation_,
                  .grant = peer.in->begin(peer.stream),
                  .limits = options_.limits,
                  .checksums = options_.checksums};
  if (!links_.dial(peer.listed, peer.in_key)) return end_incoming(peer, BulkEnd::connection, false);
  links_.send_dialed(peer.listed.name, encode(hello));
}

void PortCore::end_incoming(Peer& peer, BulkEnd why, bool tell) {
  if (peer.in_state == Peer::In::resting) return;
  const bool stood = std::exchange(peer.in_state, Peer::In::resting) == Peer::In::open;
  if (tell) links_.send_dialed(peer.listed.name, encode(BulkBye{why}));
  links_.hang_up(peer.listed.name, tell);
  peer.in->end(why);
  const TimePoint now = clock_.now();
  if (stood && now - peer.in_since >= kGood) peer.back_off.reset();
  peer.dial_at = now + peer.back_off.next(random_);
  if (stood) return owner_.reset(peer.listed.name, {BulkDirection::incoming, why});
  ++peer.key;
  const std::lock_guard lock(mutex_);
  ++peer.failed_dials[index_of(why)];
}

void PortCore::end_outgoing(Peer& peer, BulkEnd why, bool tell) {
  if (!peer.connection) return;
  const BulkConnection connection = *std::exchange(peer.connection, std::nullopt);
  accepted_.erase(connection);
  if (tell) links_.send_accepted(connection, encode(BulkBye{why}));
  links_.dismiss(connection, tell);
  const std::uint64_t before = peer.out.close(why);
  owner_.reset(peer.listed.name, {BulkDirection::outgoing, why, before});
}

void PortCore::dialed(const std::string& name, const Frames& frames) {
  const auto found = peers_.find(name);
  if (found == peers_.end() || found->second->in_state == Peer::In::resting) return;
  const PeerPtr peer = found->second;
  auto decoded = decode(frames, options_.limits, options_.checksums);
  if (const auto* wrong = std::get_if<BulkEnd>(&decoded)) return end_incoming(*peer, *wrong, true);
  peer->in_heard = clock_.now();
  auto& parcel = std::get<BulkParcel>(decoded);
  const bool open = peer->in_state == Peer::In::open;
  if (auto* data = std::get_if<BulkData>(&parcel); data != nullptr && open) return take_data(*peer, *data);
  if (const auto* first = std::get_if<BulkWelcome>(&parcel); first != nullptr && !open)
    return welcome(*peer, *first);
  if (const auto* bye = std::get_if<BulkBye>(&parcel)) return end_incoming(*peer, bye->why, false);
  if (!std::holds_alternative<BulkAlive>(parcel) || !open)
    return end_incoming(*peer, BulkEnd::protocol, true);
  if (!may_speak(*peer)) end_incoming(*peer, BulkEnd::limits, true);
}

void PortCore::welcome(Peer& peer, const BulkWelcome& welcome) {
  peer.in_state = Peer::In::open;
  peer.in_since = clock_.now();
  peer.number = welcome.number;
  peer.in->set_open();
  owner_.opened(peer.listed.name, BulkDirection::incoming, welcome.incarnation);
}

void PortCore::take_data(Peer& peer, BulkData& data) {
  for (BulkNumbered& each : data.messages) {
    if (each.number != peer.number) return end_incoming(peer, BulkEnd::protocol, true);
    ++peer.number;
    const std::uint64_t bytes = each.message.bytes();
    if (!peer.in->take(bytes)) return end_incoming(peer, BulkEnd::credit, true);
    owner_.received(peer.listed.name, {std::move(each.message), each.number,
                                       BulkReceipt(peer.in, peer.stream, each.number, bytes)});
  }
}

void PortCore::dial_lost(const std::string& peer, BulkEnd why) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  // Whoever was let in and is then not understood is no stranger: what lies between has broken.
  const bool open = found->second->in_state == Peer::In::open;
  end_incoming(*found->second, open ? BulkEnd::connection : why, false);
}

void PortCore::dial_overrun(const std::string& peer) {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) end_incoming(*found->second, BulkEnd::limits, false);
}

bool PortCore::may_speak(Peer& peer) {
  if (!peer.unasked.has_one(clock_.now())) return false;
  peer.unasked.take();
  return true;
}

void PortCore::accepted(const BulkConnection& connection, const std::string& key, const Frames& frames) {
  auto decoded = decode(frames, options_.limits, false);
  const auto* wrong = std::get_if<BulkEnd>(&decoded);
  auto* parcel = std::get_if<BulkParcel>(&decoded);
  const auto found = accepted_.find(connection);
  if (found == accepted_.end()) {
    if (wrong != nullptr) return refuse(connection, *wrong);
    const auto* hello = std::get_if<BulkHello>(parcel);
    return hello != nullptr ? greet(connection, key, *hello) : refuse(connection, BulkEnd::protocol);
  }
  const PeerPtr peer = found->second;
  // A name of a connection may come again.
  if (key != peer->out_key) return end_outgoing(*peer, BulkEnd::protocol, false);
  if (wrong != nullptr) return end_outgoing(*peer, *wrong, true);
  peer->out_heard = clock_.now();
  if (const auto* bye = std::get_if<BulkBye>(parcel)) return end_outgoing(*peer, bye->why, false);
  const auto* const credit = std::get_if<BulkCredit>(parcel);
  if (credit == nullptr && !std::holds_alternative<BulkAlive>(*parcel))
    return end_outgoing(*peer, BulkEnd::protocol, true);
  // Numbers are as many as we have sent.
  if ((credit == nullptr || credit->numbers.empty()) && !may_speak(*peer))
    return end_outgoing(*peer, BulkEnd::limits, true);
  if (credit != nullptr) take_credit(*peer, *credit);
}

void PortCore::accepted_lost(const BulkConnection& connection) {
  const auto found = accepted_.find(connection);
  if (found == accepted_.end()) return;
  const PeerPtr peer = found->second;
  end_outgoing(*peer, BulkEnd::connection, false);
}

void PortCore::accepted_overrun(const BulkConnection& connection) {
  const auto found = accepted_.find(connection);
  if (found == accepted_.end()) return links_.dismiss(connection, false);
  const PeerPtr peer = found->second;
  end_outgoing(*peer, BulkEnd::limits, false);
}

void PortCore::refuse(const BulkConnection& connection, BulkEnd why) {
  links_.send_accepted(connection, encode(BulkBye{why}));
  links_.dismiss(connection, true);
}

PortCore::PeerPtr PortCore::greeted_by(const std::string& key, const BulkHello& hello) const {
  if (hello.to != options_.name) return nullptr;
  const auto found = peers_.find(hello.from);
  if (found == peers_.end()) return nullptr;
  const std::vector<std::string>& keys = found->second->listed.keys;
  const bool its_own = keys.empty() || std::find(keys.begin(), keys.end(), key) != keys.end();
  return its_own ? found->second : nullptr;
}

void PortCore::greet(const BulkConnection& connection, const std::string& key, const BulkHello& hello) {
  // Whoever was listed before it spoke is known.
  take_up_list();
  const PeerPtr peer = greeted_by(key, hello);
  if (peer == nullptr) return refuse(connection, BulkEnd::refused);
  if (!peer->hellos.has_one(clock_.now())) return refuse(connection, BulkEnd::limits);
  peer->hellos.take();
  end_outgoing(*peer, BulkEnd::superseded, true);
  peer->connection = connection;
  peer->out_key = key;
  peer->out_checksums = hello.checksums;
  peer->out_heard = peer->out_said = clock_.now();
  accepted_[connection] = peer;
  links_.welcomed(connection);
  const std::uint64_t number = peer->out.open(hello.grant, hello.limits);
  if (!links_.send_accepted(connection, encode(BulkWelcome{incarnation_, number})))
    return end_outgoing(*peer, BulkEnd::connection, false);
  owner_.opened(peer->listed.name, BulkDirection::outgoing, hello.incarnation);
}

void PortCore::take_credit(Peer& peer, const BulkCredit& credit) {
  peer.out.grant(credit.more);
  for (const std::uint64_t number : credit.numbers) {
    if (!peer.out.acknowledge(number)) return end_outgoing(peer, BulkEnd::protocol, true);
    owner_.acknowledged(peer.listed.name, number);
  }
}

bool PortCore::hand_over(Peer& peer) {
  if (!peer.connection) return false;
  const std::vector<BulkNumbered> messages = peer.out.take(kTurn);
  std::uint64_t bytes = 0;
  for (const BulkNumbered& each : messages) bytes += each.message.bytes();
  for (std::size_t next = 0; next < messages.size();) {
    peer.out_said = clock_.now();
    if (links_.send_accepted(*peer.connection, encode_together(messages, next, peer.out_checksums))) continue;
    end_outgoing(peer, BulkEnd::connection, false);
    return false;
  }
  return bytes >= kTurn;
}

void PortCore::give_credit(Peer& peer) {
  if (peer.in_state != Peer::In::open) return;
  ReceiveAccount::Released released = peer.in->take_released();
  std::size_t next = 0;
  while (next < released.numbers.size() || released.more.messages > 0) {
    BulkCredit credit{.numbers = {}, .more = std::exchange(released.more, {})};
    const std::size_t end = std::min(next + kCreditNumbers, released.numbers.size());
    for (; next < end; ++next) credit.numbers.push_back(released.numbers[next]);
    peer.in_said = clock_.now();
    links_.send_dialed(peer.listed.name, encode(credit));
  }
}

PortCore::TimePoint PortCore::keep_outgoing(Peer& peer, TimePoint now) {
  if (!peer.connection) return TimePoint::max();
  if (now - peer.out_heard >= options_.silence) {
    end_outgoing(peer, BulkEnd::silence, true);
    return TimePoint::max();
  }
  if (now - peer.out_said >= options_.heartbeat) {
    peer.out_said = now;
    if (!links_.send_accepted(*peer.connection, encode(BulkAlive{}))) {
      end_outgoing(peer, BulkEnd::connection, false);
      return TimePoint::max();
    }
  }
  return std::min(peer.out_heard + options_.silence, peer.out_said + options_.heartbeat);
}

PortCore::TimePoint PortCore::keep_incoming(Peer& peer, TimePoint now) {
  using In = Peer::In;
  if (peer.in_state == In::greeting && now - peer.in_since >= options_.handshake)
    end_incoming(peer, BulkEnd::silence, false);
  if (peer.in_state == In::open && now - peer.in_heard >= options_.silence)
    end_incoming(peer, BulkEnd::silence, true);
  if (peer.in_state == In::resting && now >= peer.dial_at) dial(peer);
  if (peer.in_state == In::resting) return peer.dial_at;
  if (peer.in_state == In::greeting) return peer.in_since + options_.handshake;
  if (now - peer.in_said >= options_.heartbeat) {
    peer.in_said = now;
    links_.send_dialed(peer.listed.name, encode(BulkAlive{}));
  }
  return std::min(peer.in_heard + options_.silence, peer.in_said + options_.heartbeat);
}

PortCore::TimePoint PortCore::step() {
  take_up_list();
  TimePoint next = TimePoint::max();
  for (const auto& [name, peer] : peers_) {
    const bool more = hand_over(*peer);
    give_credit(*peer);
    if (peer->out.take_room()) owner_.room(name);
    const TimePoint now = clock_.now();
    next =
        std::min({next, more ? now : TimePoint::max(), keep_outgoing(*peer, now), keep_incoming(*peer, now)});
  }
  return next;
}

void PortCore::end_accepted() {
  for (const auto& [name, peer] : peers_) end_outgoing(*peer, BulkEnd::unlisted, true);
}

void PortCore::stop() {
  for (const auto& [name, peer] : peers_) {
    if (peer->connection) links_.send_accepted(*peer->connection, encode(BulkBye{BulkEnd::closed}));
    if (peer->in_state != Peer::In::resting) links_.send_dialed(name, encode(BulkBye{BulkEnd::closed}));
    peer->in->close();
  }
}

}  // namespace vigil::cluster
