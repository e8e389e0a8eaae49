#include "tests/fleet/sim/wire.h"

#include <utility>

#include <caf/actor_proxy.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/make_actor.hpp>
#include <caf/serializer_impl.hpp>

namespace vigil::fleet::sim {
namespace {

/// Stands for an actor of another system. Killed with the connection; messages to it are lost then, as with
/// CAF's own: only time limits end what was asked.
class WireProxy final : public caf::actor_proxy {
 public:
  WireProxy(caf::actor_config& config, Wire& wire) : actor_proxy(config), wire_(&wire) {}

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* /*context*/) override {
    if (wire_ != nullptr)
      wire_->transmit(node(), id(), what->sender, what->mid, what->move_content_to_message());
  }

  void kill_proxy(caf::execution_unit* context, caf::error reason) override {
    wire_ = nullptr;
    cleanup(std::move(reason), context);
  }

 private:
  Wire* wire_;
};

}  // namespace

Wire::Wire(Network& network, Host& host, caf::actor_system& system, Meddle meddle)
    : network_(network),
      host_(host),
      system_(system),
      meddle_(std::move(meddle)),
      context_(&system),
      proxies_(system, *this) {
  context_.proxy_registry_ptr(&proxies_);
}

Wire::~Wire() {
  close();
}

void Wire::close() {
  network_.listen(host_, nullptr);
  for (auto& [key, line] : std::exchange(lines_, {})) {
    line.connection->own(line.side, nullptr, nullptr);
    line.connection->close(line.side);
  }
  proxies_.clear();
}

void Wire::publish(caf::strong_actor_ptr actor) {
  published_ = std::move(actor);
  system_.registry().put(published_->id(), published_);
  network_.listen(host_, [this](const ConnectionPtr& connection) { own(connection, 1); });
}

Wire::Line& Wire::own(const ConnectionPtr& connection, int side) {
  connection->own(side, this, [this, number = connection->number()] { lost(number); });
  return lines_[connection->number()] = Line{connection, side, {}, {}};
}

Wire::Line* Wire::line_of(std::uint64_t connection) {
  const auto found = lines_.find(connection);
  return found == lines_.end() ? nullptr : &found->second;
}

Wire::Line* Wire::line_to(const caf::node_id& node) {
  for (auto& [key, line] : lines_)
    if (line.peer == node) return &line;
  return nullptr;
}

void Wire::lost(std::uint64_t connection) {
  auto gone = lines_.extract(connection);
  if (!gone) return;
  if (gone.mapped().peer) proxies_.erase(gone.mapped().peer);
  for (auto& [number, done] : gone.mapped().asked) done(std::string("the connection ended"));
}

void Wire::find(Host& to, Found done) {
  for (auto& [key, line] : lines_)
    if (line.peer && &line.connection->host(1 - line.side) == &to) return ask(line, std::move(done));
  ++dialing_[to.id];
  network_.dial(host_, to,
                [this, &to, alive = std::weak_ptr<int>(alive_), done = std::move(done)](const auto& made) {
                  if (alive.expired()) return;
                  --dialing_[to.id];
                  if (!made) return done(std::string("nobody answers"));
                  ask(own(made, 0), done);
                });
}

void Wire::ask(Line& line, Found done) {
  const std::uint64_t number = ++last_;
  line.asked[number] = std::move(done);
  // Bounded, as CAF's own handshake is.
  network_.world().after(Micros(5'000'000), &host_,
                         [this, number, key = line.connection->number(), alive = std::weak_ptr<int>(alive_)] {
                           Line* const asked = alive.expired() ? nullptr : line_of(key);
                           if (asked == nullptr) return;
                           if (auto late = asked->asked.extract(number))
                             late.mapped()(std::string("no answer"));
                         });
  line.connection->send(line.side,
                        [key = line.connection->number(), self = system_.node(), number](void* there) {
                          static_cast<Wire*>(there)->greeted(key, self, number);
                        });
}

void Wire::greeted(std::uint64_t connection, const caf::node_id& peer, std::uint64_t number) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  const ConnectionPtr kept = line->connection;
  const int side = line->side;
  // Where both connect at once, or are connected already, CAF closes what is new.
  Line* const before = line_to(peer);
  if ((before != nullptr && before != line) || dialing_[kept->host(1 - side).id] > 0) {
    lines_.erase(connection);
    kept->own(side, nullptr, nullptr);
    kept->close(side);
    return;
  }
  line->peer = peer;
  kept->send(side, [connection, self = system_.node(), id = published_->id(), number](void* there) {
    static_cast<Wire*>(there)->answered(connection, self, id, number);
  });
}

void Wire::answered(std::uint64_t connection, const caf::node_id& peer, caf::actor_id published,
                    std::uint64_t number) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  line->peer = peer;
  if (auto asked = line->asked.extract(number)) asked.mapped()(proxies_.get_or_put(peer, published));
}

caf::strong_actor_ptr Wire::make_proxy(caf::node_id node, caf::actor_id id) {
  caf::actor_config config;
  auto proxy = caf::make_actor<WireProxy, caf::strong_actor_ptr>(id, node, &system_, config, *this);
  // To hear of its end.
  if (Line* const line = line_to(node))
    line->connection->send(line->side, [key = line->connection->number(), id](void* there) {
      static_cast<Wire*>(there)->watch(key, id);
    });
  return proxy;
}

void Wire::watch(std::uint64_t connection, caf::actor_id id) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  const auto tell = [kept = line->connection, side = line->side, node = system_.node(),
                     id](const caf::error& reason) {
    kept->send(side, [node, id, reason](void* there) {
      static_cast<Wire*>(there)->proxies_.erase(node, id, reason);
    });
  };
  const auto actor = system_.registry().get(id);
  if (!actor) return tell(caf::exit_reason::unknown);
  actor->get()->attach_functor(tell);
}

void Wire::transmit(const caf::node_id& to, caf::actor_id receiver, const caf::strong_actor_ptr& sender,
                    caf::message_id id, caf::message message) {
  Line* const line = line_to(to);
  if (line == nullptr) return;
  if (meddle_) meddle_(message);
  std::vector<char> bytes;
  caf::serializer_impl<std::vector<char>> sink(&context_, bytes);
  caf::strong_actor_ptr from = sender;
  auto number = id.integer_value();
  if (const caf::error error = sink(receiver, from, number, message))
    return network_.world().fail("a message cannot be sent: " + to_string(message) + ": " +
                                 system_.render(error));
  ++messages_;
  line->connection->send(
      line->side, [bytes = std::move(bytes)](void* there) { static_cast<Wire*>(there)->receive(bytes); });
}

void Wire::receive(const std::vector<char>& bytes) {
  caf::binary_deserializer source(&context_, bytes);
  caf::actor_id receiver = 0;
  caf::strong_actor_ptr sender;
  std::uint64_t number = 0;
  caf::message message;
  if (const caf::error error = source(receiver, sender, number, message))
    return network_.world().fail("a message cannot be read: " + system_.render(error));
  const caf::message_id id(number);
  if (const auto actor = system_.registry().get(receiver)) {
    actor->enqueue(caf::make_mailbox_element(std::move(sender), id, caf::mailbox_element::forwarding_stack{},
                                             std::move(message)),
                   &context_);
  } else {
    const caf::detail::sync_request_bouncer bounce(caf::exit_reason::remote_link_unreachable);
    bounce(sender, id);
  }
}

}  // namespace vigil::fleet::sim
