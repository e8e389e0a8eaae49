#include "cluster/bulk/memory_bulk.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "cluster/bulk/port_core.h"

namespace vigil::cluster {

struct MemoryBulkNetwork::State {
  struct Connection {
    std::weak_ptr<MemoryBulk::Running> dialer;
    std::weak_ptr<MemoryBulk::Running> acceptor;
    /// By which names they know each other.
    std::string from;
    std::string to;
    std::string endpoint;
    /// The dialer's, and the one that it expects.
    std::string key;
    std::string expected;
    bool dialer_open = true;
    bool acceptor_open = false;
  };

  void carry_to_acceptor(std::uint64_t id, Frames frames);
  void carry_to_dialer(std::uint64_t id, Frames frames, BulkEnd end = BulkEnd::connection);
  void arrive_at_acceptor(std::uint64_t id, const Frames& frames);
  void arrive_at_dialer(std::uint64_t id, const Frames& frames, BulkEnd end);
  void forget_closed(std::uint64_t id);

  const base::Clock* clock = nullptr;
  Carry carry;
  std::map<std::string, std::weak_ptr<MemoryBulk::Running>> listening;
  std::map<std::uint64_t, Connection> connections;
  std::uint64_t last = 0;
  std::weak_ptr<State> self;
};

class MemoryBulk::Running final : public BulkLinks {
 public:
  Running(const BulkOptions& options, std::string its_endpoint, std::string its_key, BulkOwner& owner,
          std::shared_ptr<MemoryBulkNetwork::State> its_network)
      : name(options.name),
        endpoint(std::move(its_endpoint)),
        key(std::move(its_key)),
        network(std::move(its_network)),
        core(options, owner, *this, *network->clock, [this] { rung = true; }) {}

  bool dial(const BulkPeer& peer, const std::string& expected) override {
    const std::uint64_t id = ++network->last;
    network->connections[id] = {.dialer = self,
                                .acceptor = {},
                                .from = name,
                                .to = peer.name,
                                .endpoint = peer.endpoint,
                                .key = key,
                                .expected = expected};
    dials[peer.name] = id;
    return true;
  }

  void hang_up(const std::string& peer, bool /*told*/) override {
    const auto found = dials.find(peer);
    if (found == dials.end()) return;
    const std::uint64_t id = found->second;
    dials.erase(found);
    const auto connection = network->connections.find(id);
    if (connection == network->connections.end()) return;
    connection->second.dialer_open = false;
    network->carry_to_acceptor(id, {});
  }

  void send_dialed(const std::string& peer, Frames frames) override {
    const auto found = dials.find(peer);
    if (found != dials.end()) network->carry_to_acceptor(found->second, std::move(frames));
  }

  bool send_accepted(const BulkConnection& connection, Frames frames) override {
    const auto found = network->connections.find(std::stoull(connection));
    if (found == network->connections.end() || !found->second.acceptor_open) return false;
    network->carry_to_dialer(found->first, std::move(frames));
    return true;
  }

  void welcomed(const BulkConnection& /*connection*/) override {}

  void dismiss(const BulkConnection& connection, bool /*told*/) override {
    const auto found = network->connections.find(std::stoull(connection));
    if (found == network->connections.end() || !std::exchange(found->second.acceptor_open, false)) return;
    network->carry_to_dialer(found->first, {});
    network->forget_closed(found->first);
  }

  const std::string name;
  const std::string endpoint;
  std::string key;
  std::shared_ptr<MemoryBulkNetwork::State> network;
  std::weak_ptr<Running> self;
  std::map<std::string, std::uint64_t> dials;
  /// There is something to do, or there is when this time has come. As of a port with sockets: others are
  /// left alone, which saves simulations a third of their time.
  std::atomic<bool> rung = true;
  base::Clock::TimePoint due{};
  PortCore core;
};

void MemoryBulkNetwork::State::carry_to_acceptor(std::uint64_t id, Frames frames) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  carry(found->second.from, found->second.to, std::move(frames), [state = self, id](const Frames& arrived) {
    if (const auto network = state.lock()) network->arrive_at_acceptor(id, arrived);
  });
}

void MemoryBulkNetwork::State::carry_to_dialer(std::uint64_t id, Frames frames, BulkEnd end) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  carry(found->second.to, found->second.from, std::move(frames),
        [state = self, id, end](const Frames& arrived) {
          if (const auto network = state.lock()) network->arrive_at_dialer(id, arrived, end);
        });
}

void MemoryBulkNetwork::State::arrive_at_acceptor(std::uint64_t id, const Frames& frames) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  Connection& connection = found->second;
  const bool is_first = connection.acceptor.expired() && connection.dialer_open;
  if (is_first && !frames.empty()) {
    const auto there = listening.find(connection.endpoint);
    const auto acceptor = there == listening.end() ? nullptr : there->second.lock();
    if (acceptor == nullptr) return carry_to_dialer(id, {});
    const bool known = connection.key.empty() || acceptor->core.peer_of(connection.key);
    if (acceptor->key != connection.expected || connection.key.empty() != acceptor->key.empty() || !known)
      return carry_to_dialer(id, {}, BulkEnd::refused);
    connection.acceptor = acceptor;
    connection.acceptor_open = true;
  }
  const auto acceptor = connection.acceptor.lock();
  if (acceptor != nullptr && connection.acceptor_open) {
    acceptor->rung = true;
    if (!frames.empty()) return acceptor->core.accepted(std::to_string(id), connection.key, frames);
    connection.acceptor_open = false;
    acceptor->core.accepted_lost(std::to_string(id));
  }
  if (frames.empty()) forget_closed(id);
}

void MemoryBulkNetwork::State::arrive_at_dialer(std::uint64_t id, const Frames& frames, BulkEnd end) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  const auto dialer = found->second.dialer.lock();
  const std::string peer = found->second.to;
  if (dialer == nullptr || !found->second.dialer_open) return;
  dialer->rung = true;
  if (!frames.empty()) return dialer->core.dialed(peer, frames);
  found->second.dialer_open = false;
  forget_closed(id);
  // It hangs up on nothing then.
  dialer->dials.erase(peer);
  dialer->core.dial_lost(peer, end);
}

// The last of what was carried may still come: it finds nothing.
void MemoryBulkNetwork::State::forget_closed(std::uint64_t id) {
  const auto found = connections.find(id);
  if (found != connections.end() && !found->second.dialer_open && !found->second.acceptor_open)
    connections.erase(found);
}

MemoryBulkNetwork::MemoryBulkNetwork(const base::Clock& clock, Carry carry)
    : state_(std::make_shared<State>()) {
  state_->clock = &clock;
  state_->carry = std::move(carry);
  state_->self = state_;
}

MemoryBulkNetwork::~MemoryBulkNetwork() = default;

base::Clock::TimePoint MemoryBulkNetwork::step() {
  auto next = base::Clock::TimePoint::max();
  // What a port does in its step may end another.
  const auto listening = state_->listening;
  for (const auto& [endpoint, each] : listening) {
    const auto port = each.lock();
    if (port == nullptr) continue;
    if (port->rung.exchange(false) || state_->clock->now() >= port->due) port->due = port->core.step();
    next = std::min(next, port->due);
  }
  // What one has sent may have come to another at once.
  for (const auto& [endpoint, each] : state_->listening)
    if (const auto port = each.lock(); port != nullptr && port->rung) return state_->clock->now();
  return next;
}

void MemoryBulkNetwork::cut(const std::string& one, const std::string& other) {
  std::vector<std::uint64_t> broken;
  for (const auto& [id, connection] : state_->connections) {
    if ((connection.from == one && connection.to == other) ||
        (connection.from == other && connection.to == one))
      broken.push_back(id);
  }
  for (const std::uint64_t id : broken) {
    state_->arrive_at_acceptor(id, {});
    state_->arrive_at_dialer(id, {}, BulkEnd::connection);
    state_->connections.erase(id);
  }
}

MemoryBulk::MemoryBulk(const BulkOptions& options, const std::string& endpoint, const std::string& key,
                       BulkOwner& owner, MemoryBulkNetwork& network)
    : running_(std::make_shared<Running>(options, endpoint, key, owner, network.state_)) {
  std::weak_ptr<Running>& place = network.state_->listening[endpoint];
  if (!place.expired()) throw BulkError(endpoint + ": is in use");
  place = running_;
  running_->self = running_;
}

MemoryBulk::~MemoryBulk() {
  running_->core.stop();
  for (auto& [id, connection] : running_->network->connections) {
    if (connection.dialer.lock() == running_ && std::exchange(connection.dialer_open, false))
      running_->network->carry_to_acceptor(id, {});
    if (connection.acceptor.lock() == running_ && std::exchange(connection.acceptor_open, false))
      running_->network->carry_to_dialer(id, {});
  }
  running_->network->listening.erase(running_->endpoint);
}

BulkSent MemoryBulk::send(const std::string& peer, const BulkMessage& message) {
  return running_->core.send(peer, message);
}

std::vector<BulkRefusal> MemoryBulk::set_peers(const std::vector<BulkPeer>& peers) {
  return running_->core.set_peers(peers, !running_->key.empty());
}

std::map<std::string, BulkCounters> MemoryBulk::counters() const {
  return running_->core.counters();
}

const std::string& MemoryBulk::endpoint() const {
  return running_->endpoint;
}

void MemoryBulk::set_key(const std::string& key) {
  if (running_->key.empty() || key.empty())
    throw BulkError("a port that speaks plain text gets no keys while it runs");
  running_->key = key;
  running_->rung = true;
  running_->core.end_accepted();
}

}  // namespace vigil::cluster
