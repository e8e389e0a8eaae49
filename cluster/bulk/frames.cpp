#include "cluster/bulk/frames.h"

#include <memory>
#include <utility>

namespace vigil::cluster {
namespace {

// Below that, a copy costs less than its owner does.
constexpr std::size_t kCopied = 512;

zmq::message_t message_of(Bytes frame) {
  if (frame.size() <= kCopied) return zmq::message_t(frame.data(), frame.size());
  auto owner = std::make_unique<Bytes>(std::move(frame));
  // ZeroMQ does not write to it.
  void* data = const_cast<std::byte*>(owner->data());
  const std::size_t size = owner->size();
  zmq::message_t message(
      data, size, [](void*, void* hint) { delete static_cast<Bytes*>(hint); }, owner.get());
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
