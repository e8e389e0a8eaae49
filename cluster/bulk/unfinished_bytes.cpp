#include "cluster/bulk/unfinished_bytes.h"

#include <array>
#include <cstddef>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace vigil::cluster {
namespace {

// Greeting, handshake, and what is said to keep a connection.
constexpr std::uint64_t kUnfinishedSlack = 256 << 10;
// What a message costs beside its bytes: its place in the first frame, that frame's own, and its receipt's.
constexpr std::uint64_t kAroundMessage = 256;
constexpr std::uint64_t kAroundPart = 16;
// Of tcpi_bytes_received in what the kernel tells (linux/tcp.h, since 4.1): glibc's tcp_info ends before it.
constexpr std::size_t kBytesReceivedAt = 128;

}  // namespace

std::uint64_t most_unfinished_of_sender(const BulkLimits& limits) {
  // Parts that are frames have 8 KiB at least; what is around one is less than a 16th.
  return kUnfinishedSlack + limits.bytes + limits.bytes / 16 +
         limits.messages * (kAroundMessage + kAroundPart * limits.parts);
}

std::uint64_t most_unfinished_of_receiver(const BulkLimits& limits) {
  return kUnfinishedSlack + limits.messages * kAroundMessage;
}

std::optional<std::uint64_t> bytes_received(int descriptor) {
  std::uint64_t received = 0;
  std::array<std::byte, kBytesReceivedAt + sizeof received> info{};
  socklen_t size = info.size();
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info.data(), &size) != 0 || size < info.size())
    return std::nullopt;
  std::memcpy(&received, info.data() + kBytesReceivedAt, sizeof received);
  return received;
}

}  // namespace vigil::cluster
