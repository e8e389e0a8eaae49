// Messages of CAF between the systems of nodes, as its own network carries them: by proxies, as bytes, in the
// order of a connection, and with nothing said but silence when that is cut.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <caf/all.hpp>
#include <caf/proxy_registry.hpp>

#include "tests/fleet/sim/network.h"

namespace vigil::fleet::sim {

/// Of one system, which outlives it.
class Wire final : private caf::proxy_registry::backend {
 public:
  /// A mistake: what becomes of a message that is sent.
  using Meddle = std::function<void(caf::message&)>;

  /// `meddle` may be null.
  Wire(Network& network, Host& host, caf::actor_system& system, Meddle meddle);
  ~Wire() override;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  /// Whoever connects gets this actor.
  void publish(caf::strong_actor_ptr actor);

  /// Ends all connections.
  void close();

  using Found = std::function<void(std::variant<caf::strong_actor_ptr, std::string>)>;
  void find(Host& to, Found done);

  /// By a proxy. What cannot be sent is lost.
  void transmit(const caf::node_id& to, caf::actor_id receiver, const caf::strong_actor_ptr& sender,
                caf::message_id id, caf::message message);

  std::uint64_t messages() const { return messages_; }

 private:
  struct Line {
    ConnectionPtr connection;
    int side = 0;
    /// Invalid until the other side has said who it is.
    caf::node_id peer;
    std::map<std::uint64_t, Found> asked;
  };

  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id id) override;
  void set_last_hop(caf::node_id* /*node*/) override {}

  Line* line_to(const caf::node_id& node);
  Line* line_of(std::uint64_t connection);
  Line& own(const ConnectionPtr& connection, int side);
  void lost(std::uint64_t connection);
  void ask(Line& line, Found done);
  void greeted(std::uint64_t connection, const caf::node_id& peer, std::uint64_t number);
  void answered(std::uint64_t connection, const caf::node_id& peer, caf::actor_id published,
                std::uint64_t number);
  void watch(std::uint64_t connection, caf::actor_id id);
  void receive(const std::vector<char>& bytes);

  Network& network_;
  Host& host_;
  caf::actor_system& system_;
  const Meddle meddle_;
  caf::scoped_execution_unit context_;
  caf::proxy_registry proxies_;
  caf::strong_actor_ptr published_;
  /// By numbers of connections.
  std::map<std::uint64_t, Line> lines_;
  std::map<int, int> dialing_;
  std::uint64_t last_ = 0;
  std::uint64_t messages_ = 0;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::fleet::sim
