// The tunnel itself: sides that go away while nothing moves, and why a handshake failed.
#include "media/tls_tunnel.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "tests/media/certificate.h"
#include "tests/media/listener.h"

namespace vigil::media {
namespace {

using namespace std::chrono_literals;

/// Whoever has not read for so long does not.
constexpr int kLooks = 200;

void reset(base::Descriptor& socket) {
  const linger at_once{1, 0};
  setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket = base::Descriptor();
}

/// A socket's address as the system's table of connections has it.
std::string shown(const base::Descriptor& socket, decltype(getsockname)* name) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(name(socket.number(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  char text[16];
  std::snprintf(text, sizeof text, "%08X:%04X", address.sin_addr.s_addr, ntohs(address.sin_port));
  return text;
}

/// Whether the other end of this socket has read all that there is.
bool is_read(const base::Descriptor& socket) {
  const std::string other = shown(socket, getpeername) + ' ' + shown(socket, getsockname);
  for (int i = 0; i < kLooks; ++i) {
    std::ifstream table("/proc/net/tcp");
    for (std::string line; std::getline(table, line);) {
      const std::size_t at = line.find(other);
      // Behind both addresses: the state, and bytes to be sent and to be read.
      if (at != std::string::npos && line.compare(at + other.size() + 13, 8, "00000000") == 0) return true;
    }
    poll(nullptr, 0, 1);
  }
  return false;
}

/// Has `write` send bytes until the other end reads no more. None are under way then: a reset comes at once.
/// `poke`: something from the other side, at which the tunnel tries once more to get rid of what it has.
void fill(const base::Descriptor& socket, const std::function<void()>& write,
          const std::function<void()>& poke) {
  do {
    write();
    poke();
  } while (is_read(socket));
  for (int left = 1; left > 0; poll(nullptr, 0, 1)) ioctl(socket.number(), SIOCOUTQ, &left);
}

/// Processor time of this process while nothing is done here.
std::chrono::duration<double> spent_in(std::chrono::milliseconds time) {
  const auto spent = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  const auto before = spent();
  poll(nullptr, 0, static_cast<int>(time.count()));
  return spent() - before;
}

class TlsTunnelTest : public testing::Test {
 protected:
  TlsTunnelTest() : context_(server_context(make_certificate({"IP:127.0.0.1"}))) { tls_.insecure = true; }
  ~TlsTunnelTest() override { SSL_free(session_); }

  /// The tunnel to the server, which has accepted it.
  std::unique_ptr<TlsTunnel> tunnel() {
    auto accepted = std::async(std::launch::async, [this] {
      server_ = listener_.accepted();
      session_ = SSL_new(context_.get());
      SSL_set_fd(session_, server_.number());
      return SSL_accept(session_) == 1;
    });
    Interrupt interrupt({});
    interrupt.allow(20s);
    const int port = ntohs(listener_.address().sin_port);
    auto tunnel = std::make_unique<TlsTunnel>("127.0.0.1", port, tls_, interrupt);
    EXPECT_TRUE(accepted.get());
    return tunnel;
  }

  void enter(const TlsTunnel& tunnel) {
    sockaddr_in address = listener_.address();
    address.sin_port = htons(static_cast<std::uint16_t>(tunnel.port()));
    EXPECT_EQ(connect(client_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void say_to_client(std::size_t size) { SSL_write(session_, bytes_.data(), static_cast<int>(size)); }
  void say_to_server(std::size_t size) { send(client_.number(), bytes_.data(), size, MSG_NOSIGNAL); }

  const Listener listener_;
  const std::shared_ptr<SSL_CTX> context_;
  Tls tls_;
  const std::vector<char> bytes_ = std::vector<char>(16 << 10);
  base::Descriptor server_;
  SSL* session_ = nullptr;
  base::Descriptor client_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

TEST_F(TlsTunnelTest, AServerThatGoesWhileTheClientTakesNothingCostsNoTime) {
  const auto open = tunnel();
  enter(*open);
  fill(
      server_, [this] { say_to_client(bytes_.size()); }, [this] { say_to_server(1); });
  reset(server_);
  EXPECT_LT(spent_in(500ms).count(), 0.1);
}

TEST_F(TlsTunnelTest, AClientThatGoesWhileTheServerTakesNothingCostsNoTime) {
  const auto open = tunnel();
  enter(*open);
  fill(
      client_, [this] { say_to_server(bytes_.size()); }, [this] { say_to_client(1); });
  reset(client_);
  EXPECT_LT(spent_in(500ms).count(), 0.1);
}

TEST_F(TlsTunnelTest, AClientForWhomNoDescriptorIsLeftIsTurnedAway) {
  const auto open = tunnel();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto next = static_cast<rlim_t>(base::Descriptor(dup(0)).number());
  const rlimit no_more{next, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &no_more), 0);
  enter(*open);
  pollfd client{client_.number(), POLLIN, 0};
  EXPECT_EQ(poll(&client, 1, 5000), 1);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(TlsTunnelTest, AHandshakeThatFailsWithoutVerificationIsNotBlamedOnTheCertificate) {
  // The server shows its own, which nobody has signed, and then wants one of the client.
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
  try {
    tunnel();
    FAIL() << "there is a tunnel";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("no TLS: "));
  }
}

}  // namespace
}  // namespace vigil::media
