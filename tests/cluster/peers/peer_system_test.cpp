// Actor systems that find each other over connections between nodes. Real sockets and threads.
#include "cluster/peers/peer_system.h"

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <variant>

#include <caf/actor_system.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/basp/instance.hpp>
#include <caf/io/basp/version.hpp>
#include <caf/scoped_actor.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "cluster/peers/peer_servants.h"
#include "cluster/process/process.h"
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

/// Lines of a log.
class Lines {
 public:
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    text_ += line + '\n';
    said_.notify_all();
  }
  bool have(const std::string& part) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, 10s, [&] { return text_.find(part) != std::string::npos; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable said_;
  std::string text_;
};

/// A node with one actor, which says its name and what it was told.
struct Node {
  Node(const std::string& name, const std::filesystem::path& folder, const PeerHeartbeat& heartbeat = {})
      : config(heartbeat),
        sockets(options(folder, &lines)),
        system(config),
        peers(std::in_place, system, sockets) {
    const caf::actor actor = system.spawn([name](caf::event_based_actor*) {
      return caf::behavior{[name](const std::string& text) { return name + " heard " + text; }};
    });
    address = peers->publish({"127.0.0.1", 0}, caf::actor_cast<caf::strong_actor_ptr>(actor), {});
    hidden = actor;
  }
  static PeerSockets::Options options(const std::filesystem::path& folder, Lines* lines = nullptr) {
    PeerSockets::Options options;
    if (lines != nullptr) options.log = [lines](const std::string& line) { lines->add(line); };
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

  Lines lines;
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

/// Speaks CAF's protocol by hand.
class Stranger {
 public:
  explicit Stranger(SecureSocket socket) : socket_(std::move(socket)) {}

  void greet() {
    const caf::node_id own = caf::make_node_id(7, caf::node_id::default_data::host_id_type{});
    auto payload = caf::make_callback([&](caf::serializer& sink) -> caf::error { return sink(own); });
    caf::io::basp::header header{caf::io::basp::message_type::client_handshake, 0, 0, 0, 0, 0};
    std::vector<char> bytes;
    caf::io::basp::instance::write(nullptr, bytes, header, &payload);
    send(bytes);
  }
  /// That a message of so many bytes comes.
  void announce(std::size_t size, caf::io::basp::message_type what) {
    caf::io::basp::header header{what, 0, static_cast<std::uint32_t>(size), caf::io::basp::version, 0, 1};
    std::vector<char> bytes;
    caf::io::basp::instance::write(nullptr, bytes, header);
    send(bytes);
  }
  void announce(std::size_t size) { announce(size, caf::io::basp::message_type::direct_message); }

  void send(const std::vector<char>& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      std::size_t more = 0;
      if (socket_.write(bytes.data() + sent, bytes.size() - sent, more) == SecureSocket::Outcome::closed)
        return;
      sent += more;
      if (more == 0) wait(POLLOUT);
    }
  }

  /// Whether the other side closes it.
  bool is_closed() {
    for (;;) {
      std::array<char, 4096> ignored{};
      std::size_t bytes = 0;
      const SecureSocket::Outcome outcome = socket_.read(ignored.data(), ignored.size(), bytes);
      if (outcome == SecureSocket::Outcome::closed) return true;
      if (outcome == SecureSocket::Outcome::would_block && !wait(POLLIN)) return false;
    }
  }

 private:
  bool wait(short what) const {
    pollfd ready{socket_.descriptor(), what, 0};
    return ::poll(&ready, 1, 10'000) == 1;
  }

  SecureSocket socket_;
};

/// With and without TLS.
class PeerMessagesTest : public PeerSystemTest, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr std::size_t kMost = PeerScribe::kMostOfAMessage;
  /// Nobody is taken for silent here, however slow this machine is.
  static constexpr PeerHeartbeat kPatient{500ms, 60s};

  std::filesystem::path folder() const { return GetParam() ? certificates() : std::filesystem::path(); }

  Stranger stranger_of(const Node& node) {
    Letter<std::variant<SecureSocket, std::string>> letter;
    dialer_.dial(node.address, [&letter](auto result) { letter.put(std::move(result)); });
    auto result = letter.take();
    return Stranger(result && std::holds_alternative<SecureSocket>(*result)
                        ? std::get<SecureSocket>(std::move(*result))
                        : SecureSocket());
  }

  static std::string too_much(std::size_t size) {
    return ": it announces a message of " + std::to_string(size) + " bytes, more than 16777216";
  }

  std::uint64_t before_ = process_memory().most_resident_bytes;
  std::uint64_t taken() const { return process_memory().most_resident_bytes - before_; }

  PeerSockets dialer_{Node::options(folder())};
};

TEST_P(PeerMessagesTest, OneThatAnnouncesFourGibibytesIsClosedAndTheOthersAreNot) {
  Node a("a", folder(), kPatient);
  Node b("b", folder(), kPatient);
  const auto found = b.find(a.address);
  ASSERT_TRUE(std::holds_alternative<caf::strong_actor_ptr>(found)) << std::get<std::string>(found);
  const auto link = caf::actor_cast<caf::actor>(std::get<caf::strong_actor_ptr>(found));
  caf::scoped_actor self{b.system};
  self->monitor(link);
  Stranger stranger = stranger_of(a);
  stranger.greet();
  constexpr std::size_t kAll = std::numeric_limits<std::uint32_t>::max();
  stranger.announce(kAll);
  EXPECT_TRUE(stranger.is_closed());
  EXPECT_TRUE(a.lines.have("peers: closed the connection with 127.0.0.1:"));
  EXPECT_TRUE(a.lines.have(too_much(kAll)));
  Stranger rude = stranger_of(a);
  rude.announce(kAll);
  EXPECT_TRUE(rude.is_closed());
  EXPECT_LT(taken(), std::uint64_t{256} << 20);
  std::string answer;
  self->request(link, 10s, std::string("hello"))
      .receive([&](std::string& said) { answer = std::move(said); },
               [&](const caf::error& error) { answer = b.system.render(error); });
  EXPECT_EQ(answer, "a heard hello");
  bool is_down = false;
  self->receive([&](const caf::down_msg&) { is_down = true; }, caf::after(0s) >> [] {});
  EXPECT_FALSE(is_down);
}

TEST_P(PeerMessagesTest, WhoIsDialedAnnouncesNoMoreEither) {
  Node a("a", folder(), kPatient);
  PeerSockets other(Node::options(folder()));
  const PeerAddress address = other.listen({"127.0.0.1", 0}, [](SecureSocket socket) {
    Stranger stranger(std::move(socket));
    stranger.announce(kMost + 1, caf::io::basp::message_type::server_handshake);
    EXPECT_TRUE(stranger.is_closed());
  });
  const auto found = a.find(address);
  ASSERT_TRUE(std::holds_alternative<std::string>(found));
  EXPECT_THAT(std::get<std::string>(found), HasSubstr("no connection to " + text_of(address)));
  EXPECT_TRUE(a.lines.have("peers: closed the connection with " + text_of(address) + too_much(kMost + 1)));
}

TEST_P(PeerMessagesTest, WhatIsAnnouncedAndDoesNotComeTakesNoMemory) {
  Node a("a", folder(), kPatient);
  const std::uint64_t before = process_memory().resident_bytes;
  std::list<Stranger> all;
  for (int i = 0; i < 48; ++i) {
    all.push_back(stranger_of(a));
    all.back().announce(kMost);
    all.back().send(std::vector<char>(100'000, 'x'));
  }
  Node b("b", folder(), kPatient);
  EXPECT_EQ(b.tell(a.address, "hello"), "a heard hello");
  EXPECT_LT(process_memory().resident_bytes, before + (std::uint64_t{256} << 20));
}

TEST_P(PeerMessagesTest, OneThatIsAsLargeAsMayBeComesAsItIs) {
  Node a("a", folder(), kPatient);
  Node b("b", folder(), kPatient);
  std::string large(kMost - 1024, 'x');
  for (std::size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>('a' + i % 26);
  EXPECT_TRUE(a.tell(b.address, large) == "b heard " + large);
  // And what comes behind it.
  EXPECT_EQ(a.tell(b.address, "hello"), "b heard hello");
  // Sizes about the one by which it is read.
  for (std::size_t size = 65'300; size < 65'700; size += 7) {
    const std::string said = a.tell(b.address, large.substr(0, size));
    ASSERT_TRUE(said == "b heard " + large.substr(0, size)) << size << ": " << said.substr(0, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PeerMessagesTest, ::testing::Bool(),
                         [](const auto& tls) { return tls.param ? "Tls" : "PlainText"; });

}  // namespace
}  // namespace vigil::cluster
