#include "cluster/bulk/frames.h"

#include <atomic>
#include <memory>
#include <utility>

namespace vigil::cluster {
namespace {

// Below that, a copy costs less than its owner does.
constexpr std::size_t kCopied = 512;

/// Bytes that ZeroMQ's thread lets go. It has them from us by atomics that ThreadSanitizer does not see; it
/// sees this one.
struct Kept {
  Bytes bytes;
  std::atomic<bool> handed_over = false;
};

void let_go(void* /*data*/, void* kept) {
  auto* const owner = static_cast<Kept*>(kept);
  if (owner->handed_over.load(std::memory_order_acquire)) delete owner;
}

zmq::message_t message_of(Bytes frame) {
  if (frame.size() <= kCopied) return zmq::message_t(frame.data(), frame.size());
  auto owner = std::make_unique<Kept>();
  owner->bytes = std::move(frame);
  // ZeroMQ does not write to it.
  void* data = const_cast<std::byte*>(owner->bytes.data());
  const std::size_t size = owner->bytes.size();
  owner->handed_over.store(true, std::memory_order_release);
  zmq::message_t message(data, size, let_go, owner.get());
  static_cast<void>(owner.release());
  return message;
}

}  // namespace

bool send_frames(zmq::socket_t& socket, Frames frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    zmq::message_t message = message_of(std::move(frames[i]));
    const auto more = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
    // The first decides for all.
    if (!socket.send(message, more | zmq::send_flags::dontwait)) return false;
  }
  return true;
}

Taken take_message(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t most) {
  parts.clear();
  zmq::message_t part;
  if (!socket.recv(part, zmq::recv_flags::dontwait)) return Taken::nothing;
  Taken taken = Taken::whole;
  for (;;) {
    const bool more = part.more();
    if (parts.size() < most)
      parts.push_back(std::move(part));
    else
      taken = Taken::too_many;
    if (!more) return taken;
    // The parts of a message come together.
    part = zmq::message_t();
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return Taken::too_many;
  }
}

Frames frames_of(std::vector<zmq::message_t> parts) {
  Frames frames;
  frames.reserve(parts.size());
  for (zmq::message_t& part : parts) {
    const auto owner = std::make_shared<zmq::message_t>(std::move(part));
    frames.emplace_back(std::shared_ptr<const std::byte>(owner, owner->data<std::byte>()), owner->size());
  }
  return frames;
}

}  // namespace vigil::cluster
