// Actor systems that find each other over connections between nodes. Real sockets and threads.
#include "cluster/peers/peer_system.h"

#include <optional>
#include <variant>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/process/system.h"
#include "tests/cluster/peers/letter.h"
#include "tests/cluster/peers/node_folders.h"
#include "tests/cluster/peers/silent_wire.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using testing::Authority;
using ::testing::HasSubstr;
using testing::Letter;

struct NodeConfig : SystemConfig {
  explicit NodeConfig(const PeerHeartbeat& heartbeat) { use_peers(*this, heartbeat); }
};

/// A node with one actor, which says its name and what it was told.
struct Node {
  Node(const std::string& name, const std::filesystem::path& folder, const PeerHeartbeat& heartbeat = {})
      : config(heartbeat), sockets(options(folder)), system(config), peers(std::in_place, system, sockets) {
    const caf::actor actor = system.spawn([name](caf::event_based_actor*) {
      return caf::behavior{[name](const std::string& text) { return name + " heard " + text; }};
    });
    address = peers->publish({"127.0.0.1", 0}, caf::actor_cast<caf::strong_actor_ptr>(actor), {});
    hidden = actor;
  }
  static PeerSockets::Options options(const std::filesystem::path& folder) {
    PeerSockets::Options options;
    if (!folder.empty()) options.certificates = std::make_shared<NodeCertificates>(folder, nullptr);
    return options;
  }
  ~Node() { caf::anon_send_exit(hidden, caf::exit_reason::user_shutdown); }

  std::variant<caf::strong_actor_ptr, std::string> find(const PeerAddress& to) {
    Letter<std::variant<caf::strong_actor_ptr, std::string>> letter;
    peers->find(to, [&letter](auto found) { letter.put(std::move(found)); });
    return letter.take().value_or("nobody answered");
  }

  /// What the actor there says to this, or why it says nothing.
  std::string tell(const PeerAddress& to, const std::string& text) {
    const auto found = find(to);
    if (const auto* reason = std::get_if<std::string>(&found)) return *reason;
    caf::scoped_actor self{system};
    std::string answer;
    self->request(caf::actor_cast<caf::actor>(std::get<caf::strong_actor_ptr>(found)), 10s, text)
        .receive([&](std::string& said) { answer = std::move(said); },
                 [&](const caf::error& error) { answer = system.render(error); });
    return answer;
  }

  NodeConfig config;
  PeerSockets sockets;
  caf::actor_system system;
  std::optional<PeerSystem> peers;
  PeerAddress address;
  caf::actor hidden;
};

class PeerSystemTest : public ::testing::Test {
 protected:
  PeerSystemTest() { site_.issue(folder_.path() / "a", "IP:127.0.0.1"); }
  std::filesystem::path certificates() const { return folder_.path() / "a"; }

  const TemporaryFolder folder_;
  const Authority site_;
};

TEST_F(PeerSystemTest, CarriesMessagesBothWaysOverTls) {
  Node a("a", certificates());
  Node b("b", certificates());
  EXPECT_EQ(a.tell(b.address, "hello"), "b heard hello");
  EXPECT_EQ(b.tell(a.address, "hello"), "a heard hello");
  // Larger than any buffer of a socket or of TLS.
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(a.tell(b.address, large), "b heard " + large);
}

TEST_F(PeerSystemTest, GivesEverySystemAnIdOfItsOwn) {
  // CAF's own would be the same: one machine, one process.
  Node a("a", "");
  Node b("b", "");
  EXPECT_NE(a.system.node(), b.system.node());
  EXPECT_EQ(a.tell(b.address, "hello"), "b heard hello");
}

TEST_F(PeerSystemTest, SaysWhyItFindsNobody) {
  Node a("a", certificates());
  EXPECT_THAT(a.tell({"127.0.0.1", 1}, "hello"), HasSubstr("Connection refused"));
  Authority("elsewhere").issue(folder_.path() / "b", "IP:127.0.0.1");
  Node b("b", folder_.path() / "b");
  EXPECT_THAT(a.tell(b.address, "hello"), HasSubstr("its certificate is refused"));
  EXPECT_THAT(b.tell(a.address, "hello"), HasSubstr("its certificate is refused"));
  Node plain("plain", "");
  EXPECT_THAT(a.tell(plain.address, "hello"), HasSubstr("no TLS: wrong version number"));
  EXPECT_THAT(plain.tell(a.address, "hello"), HasSubstr("no connection to"));
}

TEST_F(PeerSystemTest, FindsANodeAgainThatWasRestarted) {
  Node a("a", certificates());
  std::optional<Node> b(std::in_place, "b", certificates());
  const auto found = a.find(b->address);
  const auto old = caf::actor_cast<caf::actor>(std::get<caf::strong_actor_ptr>(found));
  const PeerAddress address = b->address;
  caf::scoped_actor self{a.system};
  self->monitor(old);
  b.reset();
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; }, caf::after(10s) >> [] {});
  EXPECT_TRUE(down);

  b.emplace("b again", certificates());
  EXPECT_EQ(a.tell(b->address, "hello"), "b again heard hello");
}

TEST_F(PeerSystemTest, NoticesAPeerThatIsSilentlyGone) {
  const PeerHeartbeat quick{100ms, 500ms};
  Node a("a", certificates(), quick);
  Node b("b", certificates(), quick);
  testing::SilentWire wire(b.address.port);
  const auto found = a.find({"127.0.0.1", wire.port()});
  ASSERT_TRUE(std::holds_alternative<caf::strong_actor_ptr>(found)) << std::get<std::string>(found);
  caf::scoped_actor self{a.system};
  self->monitor(caf::actor_cast<caf::actor>(std::get<caf::strong_actor_ptr>(found)));
  wire.stall();
  bool down = false;
  self->receive([&](const caf::down_msg&) { down = true; }, caf::after(10s) >> [] {});
  EXPECT_TRUE(down);
}

}  // namespace
}  // namespace vigil::cluster
