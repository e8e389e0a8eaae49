#include "cluster/peers/peer_system.h"

#include <array>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/logger.hpp>
#include <caf/node_id.hpp>
#include <caf/scoped_actor.hpp>

#include "cluster/peers/peer_servants.h"

namespace vigil::cluster {
namespace {

/// How long CAF's own handshake may take, after ours.
constexpr std::chrono::seconds kGreeting{5};

/// Sets the system's id before anything of it is made.
class NodeIdentity final : public caf::actor_system::module {
 public:
  explicit NodeIdentity(caf::actor_system& system) {
    std::random_device random;
    caf::node_id::default_data::host_id_type host;
    for (auto& byte : host) byte = static_cast<std::uint8_t>(random());
    // CAF 0.17 has no other way to say who a system is; the member behind this reference is not const.
    const_cast<caf::node_id&>(system.node()) = caf::make_node_id(random(), host);
  }

  void start() override {}
  void stop() override {}
  void init(caf::actor_system_config&) override {}
  id_t id() const override { return openssl_manager; }
  void* subtype_ptr() override { return this; }
};

}  // namespace

/// Connections that were dialed, until CAF fetches each by its ticket. Thread-safe.
class PeerSystem::Shelf {
 public:
  explicit Shelf(PeerSockets& own) : sockets(own) {}

  /// After this, nothing is put on it.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_.clear();
  }

  /// Has somebody fetch it by its ticket, while the system is there for sure.
  void put(SecureSocket socket, const std::function<void(const std::string& ticket)>& fetch) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const std::string ticket = "peer " + std::to_string(++last_);
    waiting_.emplace(ticket, std::move(socket));
    fetch(ticket);
  }
  std::optional<SecureSocket> take(const std::string& ticket) {
    const std::lock_guard lock(mutex_);
    auto node = waiting_.extract(ticket);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  PeerSockets& sockets;

 private:
  std::mutex mutex_;
  bool closed_ = false;
  std::uint64_t last_ = 0;
  std::map<std::string, SecureSocket> waiting_;
};

namespace {

template <class Shelf>
class PeerMiddleman final : public caf::io::middleman_actor_impl {
 public:
  PeerMiddleman(caf::actor_config& config, caf::actor broker, std::shared_ptr<Shelf> shelf)
      : middleman_actor_impl(config, std::move(broker)), shelf_(std::move(shelf)) {}

  const char* name() const override { return "peers"; }

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& ticket, std::uint16_t) override {
    auto socket = shelf_->take(ticket);
    if (!socket) return caf::sec::cannot_connect_to_node;
    return caf::io::scribe_ptr(
        caf::make_counted<PeerScribe>(multiplexer(), std::move(*socket), shelf_->sockets.log()));
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t port, const char* host, bool) override {
    try {
      return caf::io::doorman_ptr(caf::make_counted<PeerDoorman>(
          multiplexer(), shelf_->sockets, PeerAddress{host == nullptr ? "" : host, port}));
    } catch (const std::exception& error) {
      return caf::make_error(caf::sec::cannot_open_port, std::string(error.what()));
    }
  }

 private:
  caf::io::network::default_multiplexer& multiplexer() {
    return static_cast<caf::io::network::default_multiplexer&>(system().middleman().backend());
  }

  std::shared_ptr<Shelf> shelf_;
};

std::string reason_of(const caf::error& error, const caf::actor_system& system) {
  if (error.context().match_elements<std::string>()) return error.context().get_as<std::string>(0);
  return system.render(error);
}

}  // namespace

void use_peers(caf::actor_system_config& config, const PeerHeartbeat& heartbeat) {
  config.load<caf::io::middleman>();
  config.module_factories.push_back(
      [](caf::actor_system& system) -> caf::actor_system::module* { return new NodeIdentity(system); });
  config.set("middleman.heartbeat-interval", caf::timespan(heartbeat.interval));
  config.set("middleman.connection-timeout", caf::timespan(heartbeat.timeout));
  // Config and spawn servers of other nodes are none of ours.
  config.set("middleman.attach-utility-actors", false);
}

PeerSystem::PeerSystem(caf::actor_system& system, PeerSockets& sockets)
    : system_(system), shelf_(std::make_shared<Shelf>(sockets)) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  middleman_ = caf::actor_cast<caf::io::middleman_actor>(
      system.spawn<PeerMiddleman<Shelf>, caf::detached + caf::hidden>(broker, shelf_));
}

PeerSystem::~PeerSystem() {
  shelf_->close();
  caf::scoped_actor self{system_, /* hidden = */ true};
  self->send_exit(middleman_, caf::exit_reason::kill);
  self->wait_for(middleman_);
}

PeerAddress PeerSystem::publish(const PeerAddress& address, const caf::strong_actor_ptr& actor,
                                std::set<std::string> interface) {
  caf::scoped_actor self{system_, /* hidden = */ true};
  PeerAddress real = address;
  std::string failure;
  // Without a limit: it binds a port of this machine, which waits for nobody, and if it ends, that is the
  // answer.
  self->request(middleman_, caf::infinite, caf::publish_atom::value, address.port, actor,
                std::move(interface), address.host, true)
      .receive([&](std::uint16_t port) { real.port = port; },
               [&](const caf::error& error) { failure = reason_of(error, system_); });
  if (!failure.empty()) throw std::runtime_error(failure);
  return real;
}

void PeerSystem::find(const PeerAddress& address, Found done) {
  find(system_, shelf_, middleman_, address, std::move(done), /*may_repeat=*/true);
}

void PeerSystem::find(caf::actor_system& system, const std::shared_ptr<Shelf>& shelf,
                      const caf::io::middleman_actor& middleman, const PeerAddress& address, Found done,
                      bool may_repeat) {
  shelf->sockets.dial(address, [&system, shelf, middleman, address, done = std::move(done),
                                may_repeat](std::variant<SecureSocket, std::string> dialed) {
    if (const auto* reason = std::get_if<std::string>(&dialed)) return done(*reason);
    // A thread that has spawned an actor holds on to the system's log, for which the system waits at its end.
    const auto forget =
        std::shared_ptr<void>(nullptr, [](void*) { caf::logger::set_current_actor_system(nullptr); });
    // A ticket is used once, so that CAF never takes an old connection for it.
    shelf->put(std::move(std::get<SecureSocket>(dialed)), [&](const std::string& ticket) {
      system.spawn<caf::hidden>([=, &system](caf::event_based_actor* self) {
        const std::string to = "no connection to " + text_of(address) + ": ";
        self->request(middleman, kGreeting, caf::connect_atom::value, ticket, std::uint16_t{0})
            .then(
                [=](const caf::node_id&, const caf::strong_actor_ptr& found, const std::set<std::string>&) {
                  found ? done(found) : done(to + "the node has not begun yet");
                },
                [=, &system](const caf::error& error) {
                  // A connection of which CAF has heard nothing yet counts as silent since ever when its
                  // heartbeat falls into that moment.
                  if (may_repeat && error == caf::sec::connection_timeout)
                    return find(system, shelf, middleman, address, done, /*may_repeat=*/false);
                  done(to + reason_of(error, system));
                });
      });
    });
  });
}

}  // namespace vigil::cluster
