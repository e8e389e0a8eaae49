// Strangers at the gate, over real sockets: what they cost is bounded, and an honest client beside them is
// served.
#include "cluster/sockets/gate.h"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/descriptor.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "cluster/topics/publishing_thread.h"
#include "cluster/topics/replay.h"
#include "tests/cluster/sockets/raw_peer.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using namespace std::chrono_literals;

constexpr auto kLong = 20s;
constexpr std::uint64_t kMiB = 1 << 20;

/// What a gate tells, for a test to wait for. Thread-safe.
class Observed final : public GateObserver {
 public:
  void connections(int open) override {
    const std::lock_guard lock(mutex_);
    open_ = open;
    most_ = std::max(most_, open);
    changed_.notify_all();
  }
  void refused(Refusal reason) override {
    const std::lock_guard lock(mutex_);
    ++refused_[reason];
    changed_.notify_all();
  }
  int most() const {
    const std::lock_guard lock(mutex_);
    return most_;
  }
  int refusals(Refusal reason) const {
    const std::lock_guard lock(mutex_);
    const auto found = refused_.find(reason);
    return found == refused_.end() ? 0 : found->second;
  }
  bool wait_open(int open) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return open_ == open; });
  }
  bool wait_refused(Refusal reason, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return refused_[reason] >= times; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  int most_ = 0;
  std::map<Refusal, int> refused_;
};

class NoEvents final : public ReplaySource {
 public:
  ReplayPage replay(const ReplayQuery&) override { return {"A", {}, 0, false, 0}; }
};

std::uint64_t resident() {
  return process_memory().resident_bytes;
}

class GateTest : public ::testing::Test {
 protected:
  TopicPublisher::Options events(GateOptions gate = {}) {
    gate.observer = &observed_;
    return {.endpoint = "tcp://127.0.0.1:0", .high_water_mark = 100, .linger = 0ms, .gate = gate};
  }

  /// Whether a subscriber that was there before gets the next events, each at once.
  static void expect_served(PublishingThread& publisher, TopicSubscriber& sink) {
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t position = ++position_;
      ASSERT_TRUE(publisher.publish({"honest/", position, "event", position}));
      const auto sent = std::chrono::steady_clock::now();
      auto event = sink.receive(kLong);
      // The last event may come again, when somebody else has subscribed to what it matches.
      while (event && event->position < position) event = sink.receive(kLong);
      ASSERT_TRUE(event.has_value());
      EXPECT_EQ(event->position, position);
      EXPECT_LT(std::chrono::steady_clock::now() - sent, 2s);
    }
  }

  /// One that is subscribed.
  static std::unique_ptr<TopicSubscriber> honest(PublishingThread& publisher) {
    auto sink = std::make_unique<TopicSubscriber>(
        TopicSubscriber::Options{.endpoint = publisher.endpoint(), .prefixes = {"honest/"}});
    const std::uint64_t position = ++position_;
    EXPECT_TRUE(publisher.publish({"honest/", position, "hello", position}));
    EXPECT_TRUE(sink->receive(kLong).has_value()) << "the last event, or the event";
    // The last event may come as well as the event itself.
    while (sink->receive(100ms)) {
    }
    return sink;
  }

  Observed observed_;
  static inline std::uint64_t position_ = 0;
};

TEST_F(GateTest, AnEndlessMultipartMessageIsCutShort) {
  PublishingThread publisher(events());
  const auto sink = honest(publisher);
  RawPeer attacker(publisher.endpoint());
  ASSERT_TRUE(attacker.shake_hands("SUB"));
  const std::uint64_t before = resident();
  const std::string part = zmtp_frame(std::string(1000, 'x'), 1);
  std::size_t sent = 0;
  while (sent < 64 * kMiB && attacker.send(part) == part.size()) sent += part.size();
  EXPECT_LT(sent, 8 * kMiB) << "what the kernel held when the gate closed";
  EXPECT_TRUE(observed_.wait_refused(Refusal::message_parts));
  EXPECT_LT(resident(), before + 8 * kMiB);
  expect_served(publisher, *sink);
}

TEST_F(GateTest, ManySubscriptionsAreCutShort) {
  PublishingThread publisher(events());
  const auto sink = honest(publisher);
  const std::uint64_t before = resident();
  for (int i = 0; i < 20; ++i) {
    RawPeer attacker(publisher.endpoint());
    ASSERT_TRUE(attacker.shake_hands("SUB"));
    std::size_t sent = 0;
    for (int number = 0; sent < 8 * kMiB; ++number) {
      const std::string frame =
          zmtp_frame('\1' + std::to_string(i * 1'000'000 + number) + std::string(900, 'x'));
      if (attacker.send(frame) != frame.size()) break;
      sent += frame.size();
    }
    EXPECT_LT(sent, 8 * kMiB);
  }
  EXPECT_TRUE(observed_.wait_refused(Refusal::allowance, 20));
  EXPECT_LT(resident(), before + 32 * kMiB);
  expect_served(publisher, *sink);
}

TEST_F(GateTest, AMultipartQueryIsCutShortEvenWhereItIsEncrypted) {
  const KeyPair server_keys = make_key_pair();
  const KeyPair client_keys = make_key_pair();
  for (const bool encrypted : {false, true}) {
    NoEvents none;
    ReplayServer::Options options{.endpoint = "tcp://127.0.0.1:0"};
    options.gate.observer = &observed_;
    if (encrypted) options.curve = CurveServer{server_keys, {client_keys.public_key}};
    ReplayServer server(options, none);
    zmq::context_t context;
    zmq::socket_t dealer(context, zmq::socket_type::dealer);
    ConnectionMonitor connection(context, dealer);
    dealer.set(zmq::sockopt::linger, 0);
    dealer.set(zmq::sockopt::sndtimeo, 10);
    if (encrypted) use_curve(dealer, CurveClient{client_keys, server_keys.public_key});
    dealer.connect(server.endpoint());
    const std::uint64_t before = resident();
    // ZeroMQ begins to send a message when it is whole.
    const std::string part(1000, 'x');
    for (int i = 0; i < 5000; ++i) dealer.send(zmq::buffer(part), zmq::send_flags::sndmore);
    dealer.send(zmq::buffer(part), zmq::send_flags::none);
    std::optional<ConnectionEvent> event;
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (event != ConnectionEvent::lost && std::chrono::steady_clock::now() < until) {
      if (auto next = connection.take()) event = next;
      server.serve();
    }
    EXPECT_EQ(event, ConnectionEvent::lost);
    EXPECT_TRUE(observed_.wait_refused(encrypted ? Refusal::allowance : Refusal::message_parts));
    // The client's own memory is in it as well.
    EXPECT_LT(resident(), before + 32 * kMiB);
  }
}

TEST_F(GateTest, AThousandConnectionsThatSayNothingDisplaceEachOther) {
  PublishingThread publisher(events({.handshakes = 16}));
  const auto sink = honest(publisher);
  std::vector<RawPeer> silent;
  for (int i = 0; i < 1000; ++i) silent.emplace_back(publisher.endpoint());
  EXPECT_TRUE(observed_.wait_refused(Refusal::handshake, 1000 - 16));
  EXPECT_LE(observed_.most(), 1 + 16);
  expect_served(publisher, *sink);
  const auto late = honest(publisher);
  expect_served(publisher, *late);
}

TEST_F(GateTest, AFloodOfOneAddressDisplacesNobodyWhoIsFartherAway) {
  PublishingThread publisher(events({.handshakes = 8}));
  // Its first byte takes longer than hundreds of others' connections.
  const RawPeer far(publisher.endpoint(), INADDR_LOOPBACK + 1);
  std::vector<RawPeer> flood;
  for (int i = 0; i < 200; ++i) flood.emplace_back(publisher.endpoint(), INADDR_LOOPBACK + 2);
  EXPECT_TRUE(observed_.wait_refused(Refusal::handshake, 200 - 7));
  EXPECT_TRUE(far.shake_hands("SUB"));
}

TEST_F(GateTest, AHandshakeThatDoesNotEndIsEnded) {
  PublishingThread publisher(events({.handshake_time = 50ms}));
  const std::string greeting = zmtp_greeting();
  for (const std::string& start : {std::string(), greeting.substr(0, 5), greeting.substr(0, 40), greeting,
                                   greeting + zmtp_ready("SUB").substr(0, 9)}) {
    RawPeer peer(publisher.endpoint());
    peer.send(start);
    EXPECT_TRUE(peer.closes()) << start.size();
  }
  EXPECT_TRUE(observed_.wait_open(0));
  EXPECT_EQ(observed_.refusals(Refusal::handshake), 5);
  // With time for it on a machine that is busy.
  PublishingThread patient(events({.handshake_time = 2s}));
  RawPeer done(patient.endpoint());
  ASSERT_TRUE(done.shake_hands("SUB"));
  EXPECT_FALSE(done.closes(2200ms)) << "who is through stays";
}

TEST_F(GateTest, WhatIsNoZmtpIsTurnedAway) {
  const KeyPair keys = make_key_pair();
  for (const bool encrypted : {false, true}) {
    TopicPublisher::Options options = events();
    if (encrypted) options.curve = CurveServer{keys, {keys.public_key}};
    PublishingThread publisher(options);
    for (const std::string& text :
         {std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(64, '\0'),
          std::string("\xff"
                      "\xff\xff\xff\xff"
                      "\xff\xff\xff\xff"
                      "\xfe\xff")}) {
      RawPeer peer(publisher.endpoint());
      peer.send(text);
      EXPECT_TRUE(peer.closes());
    }
    RawPeer large(publisher.endpoint());
    large.send(zmtp_greeting(encrypted ? "CURVE" : "NULL") + std::string("\2\0\0\0\1\0\0\0\0", 9));
    EXPECT_TRUE(large.closes());
  }
  EXPECT_TRUE(observed_.wait_refused(Refusal::protocol, 6));
  EXPECT_TRUE(observed_.wait_refused(Refusal::frame_size, 2));
}

TEST_F(GateTest, WithKeysAStrangerDoesNotGetIn) {
  const KeyPair keys = make_key_pair();
  const KeyPair listed = make_key_pair();
  TopicPublisher::Options options = events();
  options.curve = CurveServer{keys, {listed.public_key}};
  PublishingThread publisher(options);
  ASSERT_TRUE(publisher.publish({"a/", 1, "event", 1}));
  TopicSubscriber friendly(
      {.endpoint = publisher.endpoint(), .prefixes = {""}, .curve = CurveClient{listed, keys.public_key}});
  EXPECT_TRUE(friendly.receive(kLong).has_value());
  TopicSubscriber stranger({.endpoint = publisher.endpoint(),
                            .prefixes = {""},
                            .curve = CurveClient{make_key_pair(), keys.public_key}});
  std::optional<ConnectionEvent> event;
  for (int i = 0; i < 1000 && event != ConnectionEvent::refused; ++i) {
    EXPECT_FALSE(stranger.receive(10ms).has_value());
    if (auto next = stranger.connection().take()) event = next;
  }
  EXPECT_EQ(event, ConnectionEvent::refused);
}

TEST_F(GateTest, AnAddressHasItsShareAndAllHaveTheirs) {
  PublishingThread publisher(events({.connections = 6, .connections_of_address = 4}));
  std::vector<RawPeer> peers;
  for (int i = 0; i < 4; ++i) {
    peers.emplace_back(publisher.endpoint());
    ASSERT_TRUE(peers.back().shake_hands("SUB"));
  }
  RawPeer fifth(publisher.endpoint());
  EXPECT_TRUE(fifth.closes());
  EXPECT_EQ(observed_.refusals(Refusal::address), 1);
  constexpr std::uint32_t kOther = INADDR_LOOPBACK + 1;
  for (int i = 0; i < 2; ++i) {
    peers.emplace_back(publisher.endpoint(), kOther);
    ASSERT_TRUE(peers.back().shake_hands("SUB")) << "another address has its own";
  }
  RawPeer seventh(publisher.endpoint(), kOther + 1);
  EXPECT_TRUE(seventh.closes());
  EXPECT_EQ(observed_.refusals(Refusal::connections), 1);
  peers.pop_back();
  EXPECT_TRUE(observed_.wait_open(5));
  RawPeer eighth(publisher.endpoint(), kOther + 1);
  EXPECT_TRUE(eighth.shake_hands("SUB")) << "there is room again";
}

TEST_F(GateTest, APeerThatNeverReadsCostsNoMoreThanItsShare) {
  PublishingThread publisher(events());
  TopicSubscriber sink({.endpoint = publisher.endpoint(), .prefixes = {""}});
  ASSERT_TRUE(publisher.publish({"load/", 1, "first", 1}));
  ASSERT_TRUE(sink.receive(kLong).has_value());
  while (sink.receive(100ms)) {
  }
  std::vector<RawPeer> lazy;
  for (int i = 0; i < 10; ++i) {
    lazy.emplace_back(publisher.endpoint());
    ASSERT_TRUE(lazy.back().shake_hands("SUB"));
    lazy.back().send(zmtp_frame("\1"));
    ASSERT_FALSE(lazy.back().receive().empty()) << "the last event: it is subscribed";
  }
  while (sink.receive(100ms)) {
  }
  const std::uint64_t before = resident();
  const std::string body(64 << 10, 'x');
  for (std::uint64_t i = 2; i < 1500; ++i) {
    ASSERT_TRUE(publisher.publish({"load/", i, body, i}));
    const auto event = sink.receive(kLong);
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->sequence, i) << "the one that reads misses nothing";
  }
  EXPECT_GT(publisher.take_dropped(), 0U);
  // 100 events at most, which all share, and some buffers of each.
  EXPECT_LT(resident(), before + 100 * body.size() + 10 * kMiB);
}

TEST_F(GateTest, APeerThatVanishedIsForgotten) {
  TopicPublisher::Options options = events();
  options.heartbeat = {.interval = 200ms, .timeout = 2s};
  PublishingThread publisher(options);
  // It answers nothing, and the kernel keeps its connection as that of one whose cable was pulled.
  RawPeer vanished(publisher.endpoint());
  ASSERT_TRUE(vanished.shake_hands("SUB"));
  vanished.send(zmtp_frame("\1"));
  const auto sink = honest(publisher);
  EXPECT_TRUE(observed_.wait_open(1)) << "only the one that answers is left";
  expect_served(publisher, *sink);

  NoEvents none;
  ReplayServer::Options replay{.endpoint = "tcp://127.0.0.1:0", .silence = 100ms};
  Observed seen;
  replay.gate.observer = &seen;
  const ReplayServer server(replay, none);
  RawPeer asked(server.endpoint());
  ASSERT_TRUE(asked.shake_hands("DEALER"));
  EXPECT_TRUE(seen.wait_open(0));
  EXPECT_EQ(seen.refusals(Refusal::silence), 1);
}

TEST_F(GateTest, ClientsThatAskMuchReadNothingAndGoDoNotEndTheProcess) {
  NoEvents none;
  const ReplayServer::Options options{.endpoint = "tcp://127.0.0.1:0"};
  ReplayServer server(options, none);
  TopicPublisher::Options beating = events();
  beating.heartbeat = {.interval = 20ms, .timeout = 5s};
  PublishingThread publisher(beating);
  const auto sink = honest(publisher);
  const std::string query = zmtp_frame("1", 1) + zmtp_frame(R"({"topics": [""]})");
  for (int round = 0; round < 3; ++round) {
    std::vector<RawPeer> peers;
    for (int i = 0; i < 10; ++i) {
      peers.emplace_back(server.endpoint());
      ASSERT_TRUE(peers.back().shake_hands("DEALER"));
      for (int number = 0; number < 60; ++number) peers.back().send(query);
      peers.emplace_back(publisher.endpoint());
      ASSERT_TRUE(peers.back().shake_hands("SUB"));
      for (int number = 0; number < 200; ++number)
        peers.back().send(zmtp_frame('\1' + std::to_string(number)));
    }
  }
  EXPECT_TRUE(observed_.wait_open(1)) << "only the honest one is left";
  expect_served(publisher, *sink);
  ReplayClient client({.endpoint = server.endpoint()});
  ReplayQuery one;
  one.topics = {"a/"};
  bool answered = false;
  for (int i = 0; i < 2000 && !answered; ++i) {
    if (i % 100 == 0) client.ask(one);
    server.serve();
    answered = client.take_answer().has_value();
    if (!answered) ::poll(nullptr, 0, 5);
  }
  EXPECT_TRUE(answered);
}

TEST_F(GateTest, WhoComesAndGoesReachesTheServerAtAPace) {
  PublishingThread publisher(events({.connections_of_address = 5}));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5 + 8; ++i) {
    const RawPeer peer(publisher.endpoint());
    ASSERT_TRUE(peer.shake_hands("SUB")) << i;
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 400ms) << "16 a second, after the first five";
  const RawPeer other(publisher.endpoint(), INADDR_LOOPBACK + 1);
  EXPECT_TRUE(other.shake_hands("SUB"));
}

/// The soft limit of descriptors, as it was when this goes.
class DescriptorLimit {
 public:
  DescriptorLimit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimit() { lift(); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  /// So many more than are open now.
  void leave(rlim_t more) const {
    const auto folder = std::filesystem::directory_iterator("/proc/self/fd");
    rlim_t most = 0;
    for (const auto& each : folder)
      most = std::max(most, static_cast<rlim_t>(std::stoul(each.path().filename().string())));
    rlimit limit = before_;
    limit.rlim_cur = most + more;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  void lift() const { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(GateTest, WithoutDescriptorsItWaitsQuietlyAndGoesOnLater) {
  PublishingThread publisher(events());
  const auto sink = honest(publisher);
  std::vector<RawPeer> clients(30);
  const DescriptorLimit limit;
  limit.leave(4);
  std::vector<int> taken;
  for (int each = 0; (each = ::dup(0)) >= 0;) taken.push_back(each);
  const double before = process_cpu_seconds();
  for (const RawPeer& each : clients) each.connect(publisher.endpoint());
  EXPECT_TRUE(observed_.wait_refused(Refusal::descriptors, 3)) << "asked again and again, at intervals";
  EXPECT_LT(process_cpu_seconds() - before, 0.3);
  expect_served(publisher, *sink);
  for (const int each : taken) ::close(each);
  limit.lift();
  for (const RawPeer& each : clients) EXPECT_TRUE(each.shake_hands("SUB"));
}

// ZeroMQ ends a process that has no descriptor for a connection on a Unix socket: nobody else may make one.
TEST_F(GateTest, NobodyButThisProcessGetsPastIt) {
  PublishingThread publisher(events());
  const auto sink = honest(publisher);
  std::set<std::string> own;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    own.insert(std::filesystem::read_symlink(each, gone));
  }
  std::vector<std::string> names;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream columns(line);
    std::string inode;
    std::string name;
    for (int i = 0; i < 7; ++i) columns >> inode;
    if (columns >> name && own.contains("socket:[" + inode + ']')) names.push_back(name);
  }
  ASSERT_FALSE(names.empty()) << "where it was bound is still told";
  for (const std::string& name : names) {
    const base::Descriptor connection(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path);
    EXPECT_NE(::connect(connection.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(errno, ENOENT) << name;
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(name).parent_path())) << name;
  }
  expect_served(publisher, *sink);
}

TEST_F(GateTest, WithoutAFolderForTemporaryFilesItOpensToo) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/proc", 1);
  PublishingThread publisher(events());
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  const auto sink = honest(publisher);
  expect_served(publisher, *sink);
}

TEST_F(GateTest, APathIsOpenToItsOwnerAlone) {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(0);
  {
    const TopicPublisher publisher({.endpoint = "ipc://" + folder / "events"});
    struct stat status {};
    ASSERT_EQ(::stat((folder / "events").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
  }
  ::umask(mask);
}

TEST_F(GateTest, ListensWhereZeroMqWould) {
  const auto where = [](const std::string& endpoint) {
    return TopicPublisher({.endpoint = endpoint, .linger = 0ms}).endpoint();
  };
  using ::testing::StartsWith;
  EXPECT_THAT(where("tcp://127.0.0.1:0"), StartsWith("tcp://127.0.0.1:"));
  EXPECT_THAT(where("tcp://127.0.0.1:*"), StartsWith("tcp://127.0.0.1:"));
  EXPECT_THAT(where("tcp://*:0"), StartsWith("tcp://0.0.0.0:"));
  EXPECT_THAT(where("tcp://lo:0"), StartsWith("tcp://127.0.0.1:"));
  for (const char* wrong : {"tcp://127.0.0.1", "tcp://:5", "tcp://127.0.0.1:70000", "tcp://127.0.0.1:x",
                            "tcp://no-such-interface:0", "tcp://"})
    EXPECT_THROW(where(wrong), TopicError) << wrong;
}

TEST(Connections, TakeAQuarterOfTheDescriptorsAtMost) {
  EXPECT_EQ(fitting_connections(256, 1'048'576, 2), 256);
  EXPECT_EQ(fitting_connections(256, 1024, 2), 42);
  EXPECT_EQ(fitting_connections(256, 8, 2), 1);
  EXPECT_EQ(fitting_connections(1, 1'000'000, 2), 1);
}

}  // namespace
}  // namespace vigil::cluster
