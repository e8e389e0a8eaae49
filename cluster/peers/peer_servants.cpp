#include "cluster/peers/peer_servants.h"

#include <atomic>
#include <optional>
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

PeerScribe::PeerScribe(io::network::default_multiplexer& multiplexer, SecureSocket socket)
    : scribe(io::network::conn_hdl_from_socket(socket.descriptor())),
      peer_(parse_peer(socket.peer()).value_or(PeerAddress{})),
      has_pending_(socket.pending() > 0),
      // CAF's stream closes the descriptor.
      stream_(multiplexer, socket.lend(), std::move(socket)) {}

void PeerScribe::configure_read(io::receive_policy::config config) {
  stream_.configure_read(config);
  if (std::exchange(launched_, true)) return;
  stream_.start(this);
  // What the dialer waited for has left the socket already, which will not tell of it.
  if (has_pending_)
    stream_.backend().post([self = io::scribe_ptr(this), this] {
      if (parent() != nullptr) stream_.handle_event(io::network::operation::read);
    });
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
    auto scribe = caf::make_counted<PeerScribe>(multiplexer_, std::move(*own));
    const io::connection_handle handle = scribe->hdl();
    broker->add_scribe(std::move(scribe));
    doorman::new_connection(&multiplexer_, handle);
  });
}

}  // namespace vigil::cluster
