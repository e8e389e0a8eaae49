#include "cluster/peers/peer_servants.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

namespace vigil::cluster {
namespace {

namespace io = caf::io;
using io::network::rw_state;

/// Handles of doormen that have no descriptor: none that a descriptor has.
std::int64_t next_doorman() {
  static std::atomic<std::int64_t> last{std::int64_t{1} << 40};
  return ++last;
}

/// How much of a message is read at once.
constexpr std::size_t kPiece = std::size_t{64} << 10;

rw_state state_of(SecureSocket::Outcome outcome) {
  return outcome == SecureSocket::Outcome::closed ? rw_state::failure : rw_state::success;
}

}  // namespace

rw_state PeerStreamPolicy::read_some(std::size_t& bytes, int, void* to, std::size_t size) {
  bytes = 0;
  return size == 0 ? rw_state::indeterminate : state_of(socket_.read(to, size, bytes));
}

rw_state PeerStreamPolicy::write_some(std::size_t& bytes, int, const void* from, std::size_t size) {
  bytes = 0;
  return size == 0 ? rw_state::indeterminate : state_of(socket_.write(from, size, bytes));
}

PeerScribe::PeerScribe(io::network::default_multiplexer& multiplexer, SecureSocket socket,
                       std::shared_ptr<PeerLog> log)
    : scribe(io::network::conn_hdl_from_socket(socket.descriptor())),
      peer_(parse_peer(socket.peer()).value_or(PeerAddress{})),
      log_(std::move(log)),
      has_pending_(socket.pending() > 0),
      // CAF's stream closes the descriptor.
      stream_(multiplexer, socket.lend(), std::move(socket)) {}

// The broker asks for a message's header, then for exactly as much as that announces, from within `consume`.
void PeerScribe::configure_read(io::receive_policy::config config) {
  const auto [how, size] = config;
  wanted_ = 0;
  announces_too_much_ = size > kMostOfAMessage;
  if (announces_too_much_) {
    log_->say("peers: closed the connection with " + text_of(peer_) + ": it announces a message of " +
              std::to_string(size) + " bytes, more than " + std::to_string(kMostOfAMessage));
    // What CAF makes ready until it is closed.
    config.second = 1;
  } else if (how == io::receive_policy_flag::exactly && size > kPiece) {
    wanted_ = size;
    return read_next_piece();
  }
  stream_.configure_read(config);
  if (std::exchange(launched_, true)) return;
  stream_.start(this);
  // What the dialer waited for has left the socket already, which will not tell of it.
  if (has_pending_)
    stream_.backend().post([self = io::scribe_ptr(this), this] {
      if (parent() != nullptr) stream_.handle_event(io::network::operation::read);
    });
}

void PeerScribe::read_next_piece() {
  const std::size_t left = wanted_ - gathered_.size();
  stream_.configure_read(io::receive_policy::exactly(std::min(left, kPiece)));
}

bool PeerScribe::consume(caf::execution_unit* context, const void* data, std::size_t size) {
  const bool goes_on = wanted_ > 0 ? gather(context, static_cast<const char*>(data), size)
                                   : scribe::consume(context, data, size);
  if (!announces_too_much_ || detached()) return goes_on;
  io_failure(context, io::network::operation::read);
  return false;
}

bool PeerScribe::gather(caf::execution_unit* context, const char* data, std::size_t size) {
  // As CAF's own: an event may still come after the broker has let the connection go.
  if (detached()) return false;
  gathered_.insert(gathered_.end(), data, data + size);
  if (gathered_.size() < wanted_) {
    read_next_piece();
    return true;
  }
  is_whole_ = true;
  const bool goes_on = scribe::consume(context, gathered_.data(), gathered_.size());
  is_whole_ = false;
  gathered_ = {};
  return goes_on;
}

void PeerScribe::flush() {
  stream_.flush(this);
}

void PeerScribe::graceful_shutdown() {
  stream_.graceful_shutdown();
  detach(&stream_.backend(), false);
}

PeerDoorman::PeerDoorman(io::network::default_multiplexer& multiplexer, PeerSockets& sockets,
                         const PeerAddress& address)
    : doorman(io::accept_handle::from_int(next_doorman())), multiplexer_(multiplexer), sockets_(sockets) {
  address_ = sockets_.listen(address, [this](SecureSocket socket) { admit(std::move(socket)); });
}

void PeerDoorman::graceful_shutdown() {
  sockets_.stop_listening();
  detach(&multiplexer_, false);
}

void PeerDoorman::admit(SecureSocket socket) {
  // CAF's functions have to be copied.
  auto own = std::make_shared<SecureSocket>(std::move(socket));
  multiplexer_.post([self = io::doorman_ptr(this), own, this] {
    io::abstract_broker* const broker = parent();
    if (broker == nullptr) return;
    auto scribe = caf::make_counted<PeerScribe>(multiplexer_, std::move(*own), sockets_.log());
    const io::connection_handle handle = scribe->hdl();
    broker->add_scribe(std::move(scribe));
    doorman::new_connection(&multiplexer_, handle);
  });
}

}  // namespace vigil::cluster
