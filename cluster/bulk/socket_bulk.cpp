#include "cluster/bulk/socket_bulk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <zmq.hpp>

#include "base/descriptor.h"
#include "base/one_line.h"
#include "cluster/bulk/accepted_connections.h"
#include "cluster/bulk/bulk_listener.h"
#include "cluster/bulk/dialed_connection.h"
#include "cluster/bulk/frames.h"
#include "cluster/bulk/port_core.h"
#include "cluster/bulk/unfinished_bytes.h"
#include "cluster/sockets/bell.h"
#include "cluster/sockets/tcp_address.h"
#include "config/values/curve_key.h"

namespace vigil::cluster {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;
using TimePoint = base::Clock::TimePoint;

// How long what was said last has to arrive: a connection that is closed with bytes that nobody has read
// takes along what it was to bring.
constexpr milliseconds kFarewell(200);
// The same when all ends.
constexpr milliseconds kLastFarewell(100);
// Parts of what a receiver says, with the name that ZeroMQ gives the connection.
constexpr std::size_t kControlParts = 2;
// When descriptors are short, they may be so for a while.
constexpr milliseconds kKeysAgain(1000);
// Parcels that are read of one connection before others have their turn.
constexpr int kAtOnce = 64;
// What encryption and framing add to a message.
constexpr std::int64_t kAround = 256;
// Longest sleep: a clock that is not the machine's may go on meanwhile.
constexpr milliseconds kSleep(1000);
// ZeroMQ's own bound, 1023, is that of 340 peers: three for each that is dialed.
constexpr int kMostSockets = 1 << 15;

tcp::endpoint address_of(const std::string& endpoint) {
  if (!endpoint.starts_with("tcp://")) throw BulkError(endpoint + ": is not of the form tcp://ADDRESS:PORT");
  try {
    return parse_tcp(endpoint);
  } catch (const std::system_error& error) {
    throw BulkError(endpoint + ": " + error.code().message());
  }
}

void check_plain(const std::string& endpoint, const tcp::endpoint& where, const SocketBulkOptions& sockets) {
  if (sockets.keys || sockets.plain_text_beyond_loopback || where.address().is_loopback()) return;
  throw BulkError(endpoint + ": plain text is for loopback alone, unless the configuration says otherwise");
}

bool is_ready(const zmq::pollitem_t& item) {
  return (item.revents & ZMQ_POLLIN) != 0;
}

}  // namespace

class SocketBulk::Running final : public BulkLinks {
 public:
  Running(const BulkOptions& options, SocketBulkOptions sockets, BulkOwner& owner, const base::Clock& clock)
      : options_(options),
        sockets_(std::move(sockets)),
        owner_(owner),
        clock_(clock),
        where_(address_of(sockets_.endpoint)),
        context_(sockets_.io_threads, kMostSockets),
        core_(options, owner, *this, clock, [this] { wake(); }) {
    check_plain(sockets_.endpoint, where_, sockets_);
    listener_ = listen_at(sockets_.endpoint, where_);
    endpoint_ = tcp_text(where_);
    book_.emplace(where_.port(), sockets_.connections, options.handshake,
                  most_unfinished_of_receiver(options.limits));
    try {
      open_sockets();
    } catch (const zmq::error_t& error) {
      throw BulkError(endpoint_ + ": " + error.what());
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Running() override {
    stopping_ = true;
    wake();
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  PortCore& core() { return core_; }
  const PortCore& core() const { return core_; }
  const std::string& endpoint() const { return endpoint_; }

  std::vector<BulkRefusal> set_peers(const std::vector<BulkPeer>& peers) {
    std::vector<BulkRefusal> refused;
    std::vector<BulkPeer> good;
    for (const BulkPeer& peer : peers) {
      try {
        check_plain(peer.endpoint, address_of(peer.endpoint), sockets_);
        if (!std::all_of(peer.keys.begin(), peer.keys.end(), config::is_curve_key))
          throw BulkError("its key is no CURVE key");
        good.push_back(peer);
      } catch (const BulkError& error) {
        refused.push_back({base::one_line(peer.name.substr(0, kNameBytes)), base::one_line(error.what())});
      }
    }
    for (BulkRefusal& each : core_.set_peers(good, sockets_.keys.has_value()))
      refused.push_back(std::move(each));
    return refused;
  }

  void set_keys(const KeyPair& keys) {
    if (!sockets_.keys) throw BulkError("a port that speaks plain text gets no keys while it runs");
    {
      const std::lock_guard lock(mutex_);
      new_keys_ = keys;
    }
    wake();
  }

  BulkStrangers strangers() const {
    const std::lock_guard lock(mutex_);
    return strangers_;
  }

  bool dial(const BulkPeer& peer, const std::string& key) override;
  void hang_up(const std::string& peer, bool told) override;
  void send_dialed(const std::string& peer, Frames frames) override;
  bool send_accepted(const BulkConnection& connection, Frames frames) override;
  void welcomed(const BulkConnection& connection) override { book_->welcomed(connection); }
  void dismiss(const BulkConnection& connection, bool told) override {
    book_->dismiss(connection, clock_.now() + (told ? kFarewell : milliseconds(0)));
  }

 private:
  using DialPtr = std::shared_ptr<DialedConnection>;

  void wake() {
    if (!rung_.exchange(true)) bell_.ring();
  }
  void open_sockets();
  std::unique_ptr<BulkListener> listen(const std::optional<KeyPair>& keys);
  void run();
  void wait(TimePoint until);
  /// When it is to be called again.
  TimePoint take_new_keys();
  TimePoint look_at_dials(TimePoint now);
  void hear_handshakes();
  void hear_monitor();
  void hear_accepted();
  void hear_dial(const std::string& peer, const DialPtr& dial);
  void say_farewell();

  const BulkOptions options_;
  const SocketBulkOptions sockets_;
  BulkOwner& owner_;
  const base::Clock& clock_;
  tcp::endpoint where_;
  base::Descriptor listener_;
  std::string endpoint_;
  Bell bell_;
  std::atomic<bool> rung_ = false;
  std::atomic<bool> stopping_ = false;

  // The port's thread alone, once it runs. What is declared first is destroyed last.
  zmq::context_t context_;
  zmq::socket_t handshakes_;
  std::unique_ptr<BulkListener> router_;
  std::optional<KeyPair> keys_;
  /// Of those that could not be taken up: when that is tried again, and whether the owner has heard.
  TimePoint keys_at_{};
  bool keys_wait_ = false;
  TimePoint look_at_{};
  std::optional<AcceptedConnections> book_;
  /// That broke, and what they said last may still be there.
  std::vector<BulkConnection> lost_;
  std::map<std::string, DialPtr> dials_;
  /// Those that were hung up on, the oldest first, and until when they stay.
  std::deque<std::pair<TimePoint, DialPtr>> leaving_;
  std::uint64_t dialed_ = 0;
  std::uint64_t listened_ = 0;
  std::uint64_t unknown_keys_ = 0;

  PortCore core_;
  mutable std::mutex mutex_;
  std::optional<KeyPair> new_keys_;
  BulkStrangers strangers_;
  std::thread thread_;
};

void SocketBulk::Running::open_sockets() {
  keys_ = sockets_.keys;
  if (keys_) {
    handshakes_ = zmq::socket_t(context_, zmq::socket_type::rep);
    handshakes_.set(zmq::sockopt::linger, 0);
    handshakes_.bind(kHandshakes);
  }
  router_ = listen(keys_);
}

std::unique_ptr<BulkListener> SocketBulk::Running::listen(const std::optional<KeyPair>& keys) {
  return std::make_unique<BulkListener>(
      context_, "listener." + std::to_string(++listened_), listener_.number(),
      BulkListener::Options{
          .endpoint = endpoint_,
          .ipv6 = where_.address().is_v6(),
          .keys = keys,
          .most_bytes = static_cast<std::int64_t>(kControlBytes) + kAround,
          .handshake_ms = static_cast<int>(options_.handshake.count()),
          .farewell_ms = static_cast<int>(kFarewell.count()),
          // ZeroMQ hears of what was read when half of the mark is. Credits keep everything below it.
          .send_mark = static_cast<int>(2 * options_.limits.messages + 64),
          .send_buffer = sockets_.send_buffer});
}

// All that may fail comes before anything is given up.
TimePoint SocketBulk::Running::take_new_keys() {
  std::optional<KeyPair> keys;
  {
    const std::lock_guard lock(mutex_);
    keys = new_keys_;
  }
  if (!keys) return TimePoint::max();
  if (clock_.now() < keys_at_) return keys_at_;
  std::unique_ptr<BulkListener> made;
  try {
    made = listen(keys);
  } catch (const zmq::error_t& error) {
    if (!std::exchange(keys_wait_, true))
      owner_.trouble(std::string("another key is not taken up yet, the one before stays: ") + error.what());
    keys_at_ = clock_.now() + kKeysAgain;
    return keys_at_;
  }
  core_.end_accepted();
  book_->forget();
  router_ = std::move(made);
  keys_ = keys;
  keys_wait_ = false;
  lost_.clear();
  const std::lock_guard lock(mutex_);
  if (new_keys_->public_key == keys->public_key) new_keys_.reset();
  return TimePoint::max();
}

// Descriptors may be short, and a key may be none: that ends this attempt, and not the process.
bool SocketBulk::Running::dial(const BulkPeer& peer, const std::string& key) try {
  auto dial = std::make_shared<DialedConnection>(context_, std::to_string(++dialed_));
  const std::uint64_t most = std::max<std::uint64_t>(
      {options_.limits.message, most_bytes_of_first_frame(options_.limits), kControlBytes});
  dial->connect({.where = address_of(peer.endpoint),
                 .curve = keys_ ? std::optional(CurveClient{*keys_, key}) : std::nullopt,
                 .most_bytes = kAround + static_cast<std::int64_t>(most),
                 .handshake_ms = static_cast<int>(options_.handshake.count()),
                 .farewell_ms = static_cast<int>(kFarewell.count()),
                 .receive_buffer = sockets_.receive_buffer});
  dials_[peer.name] = dial;
  return true;
} catch (const zmq::error_t&) {
  return false;
}

void SocketBulk::Running::hang_up(const std::string& peer, bool told) {
  const auto found = dials_.find(peer);
  if (found == dials_.end()) return;
  const DialPtr dial = found->second;
  dials_.erase(found);
  dial->monitor.reset();
  // Nor is anything read of it meanwhile.
  if (!told || dial->broken) return dial->socket.set(zmq::sockopt::linger, 0);
  dial->unfinished.heard();
  leaving_.emplace_back(clock_.now() + kFarewell, dial);
}

void SocketBulk::Running::send_dialed(const std::string& peer, Frames frames) {
  const auto found = dials_.find(peer);
  if (found == dials_.end() || found->second->broken) return;
  found->second->broken = !send_frames(found->second->socket, std::move(frames));
  // What broke is noticed at the next turn.
  if (found->second->broken) wake();
}

bool SocketBulk::Running::send_accepted(const BulkConnection& connection, Frames frames) {
  zmq::message_t name(connection.data(), connection.size());
  try {
    if (!router_->socket.send(name, zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH) return false;
    throw;
  }
  return send_frames(router_->socket, std::move(frames));
}

void SocketBulk::Running::hear_handshakes() {
  answer_handshake(handshakes_, [this](const std::string& key) {
    const bool known = core_.peer_of(key).has_value();
    if (!known) ++unknown_keys_;
    return known;
  });
}

void SocketBulk::Running::hear_monitor() {
  while (const auto event = router_->monitor.take()) {
    if (event->kind == ZMQ_EVENT_ACCEPTED) {
      book_->opened(event->value, clock_.now());
    } else if (auto name = book_->closed(event->value)) {
      lost_.push_back(std::move(*name));
    }
  }
}

void SocketBulk::Running::hear_accepted() {
  std::vector<zmq::message_t> parts;
  for (int i = 0; i < kAtOnce; ++i) {
    const Taken taken = take_message(router_->socket, parts, kControlParts);
    if (taken == Taken::nothing) {
      // What they said last has been heard.
      for (const BulkConnection& each : std::exchange(lost_, {})) core_.accepted_lost(each);
      return;
    }
    if (parts.size() < 2) continue;
    const BulkConnection connection = parts[0].to_string();
    // Whose descriptor it was before has closed by then, and is heard of first.
    if (!book_->knows(connection)) hear_monitor();
    const int descriptor = zmq_msg_get(parts[1].handle(), ZMQ_SRCFD);
    const bool lost = std::find(lost_.begin(), lost_.end(), connection) != lost_.end();
    if (!lost && !book_->speaks(connection, descriptor, clock_.now())) continue;
    if (taken == Taken::too_many) {
      core_.accepted_overrun(connection);
      continue;
    }
    // The property that the allow-list gave it.
    const char* const user = keys_ ? zmq_msg_gets(parts[1].handle(), "User-Id") : nullptr;
    const std::string key = user == nullptr ? "" : user;
    parts.erase(parts.begin());
    core_.accepted(connection, key, frames_of(std::move(parts)));
  }
}

TimePoint SocketBulk::Running::look_at_dials(TimePoint now) {
  if (dials_.empty() && leaving_.empty()) return TimePoint::max();
  if (now < look_at_) return look_at_;
  look_at_ = now + kBetweenLooks;
  const std::uint64_t most = most_unfinished_of_sender(options_.limits);
  std::vector<std::string> overrun;
  for (const auto& [peer, dial] : dials_)
    if (dial->overruns(most)) overrun.push_back(peer);
  for (const std::string& peer : overrun) core_.dial_overrun(peer);
  std::erase_if(leaving_, [&](const auto& each) {
    const bool over = each.second->overruns(most);
    if (over) each.second->socket.set(zmq::sockopt::linger, 0);
    return over;
  });
  return look_at_;
}

void SocketBulk::Running::hear_dial(const std::string& peer, const DialPtr& dial) {
  // What came before the end is heard before it.
  const std::optional<BulkEnd> fate = dial->fate();
  std::vector<zmq::message_t> parts;
  for (int i = 0; i < kAtOnce || fate; ++i) {
    const Taken taken = take_message(dial->socket, parts, kFramesTogether + options_.limits.parts);
    if (taken == Taken::nothing) {
      if (fate) core_.dial_lost(peer, *fate);
      return;
    }
    if (taken == Taken::too_many) return core_.dial_overrun(peer);
    dial->unfinished.heard();
    core_.dialed(peer, frames_of(std::move(parts)));
    // It may have been hung up on.
    const auto now = dials_.find(peer);
    if (now == dials_.end() || now->second != dial) return;
  }
}

void SocketBulk::Running::wait(TimePoint until) {
  std::vector<zmq::pollitem_t> items = {{nullptr, bell_.descriptor(), ZMQ_POLLIN, 0},
                                        {router_->socket.handle(), 0, ZMQ_POLLIN, 0},
                                        {router_->monitor.socket().handle(), 0, ZMQ_POLLIN, 0}};
  if (keys_) items.push_back({handshakes_.handle(), 0, ZMQ_POLLIN, 0});
  const std::size_t before = items.size();
  const std::vector<std::pair<std::string, DialPtr>> dials(dials_.begin(), dials_.end());
  for (const auto& [peer, dial] : dials) {
    items.push_back({dial->socket.handle(), 0, ZMQ_POLLIN, 0});
    items.push_back({dial->monitor->socket().handle(), 0, ZMQ_POLLIN, 0});
  }
  for (const auto& [end, dial] : leaving_) items.push_back({dial->socket.handle(), 0, ZMQ_POLLIN, 0});
  const auto left = until - std::min(until, clock_.now());
  const auto sleep = left > kSleep ? kSleep : std::chrono::ceil<milliseconds>(left);
  try {
    zmq::poll(items.data(), items.size(), sleep);
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
    return;
  }
  // In this order: who rings in between has left what the next step finds.
  bell_.silence();
  rung_ = false;
  if (keys_ && is_ready(items[3])) hear_handshakes();
  if (is_ready(items[2])) hear_monitor();
  if (is_ready(items[1]) || !lost_.empty()) hear_accepted();
  // What comes from those that were hung up on is thrown away.
  for (const auto& [end, dial] : leaving_) {
    zmq::message_t part;
    for (int i = 0; i < kAtOnce && dial->socket.recv(part, zmq::recv_flags::dontwait); ++i) {
    }
  }
  for (std::size_t i = 0; i < dials.size(); ++i) {
    const auto& [peer, dial] = dials[i];
    const auto now = dials_.find(peer);
    if (now == dials_.end() || now->second != dial) continue;
    if (dial->broken || is_ready(items[before + 2 * i]) || is_ready(items[before + 2 * i + 1]))
      hear_dial(peer, dial);
  }
}

void SocketBulk::Running::run() {
  while (!stopping_) {
    const TimePoint keys = take_new_keys();
    const TimePoint next = core_.step();
    const TimePoint now = clock_.now();
    const TimePoint cut = book_->step(now);
    for (const BulkConnection& each : book_->take_overrun()) core_.accepted_overrun(each);
    const TimePoint look = look_at_dials(now);
    while (!leaving_.empty() && leaving_.front().first <= now) leaving_.pop_front();
    const TimePoint leave = leaving_.empty() ? TimePoint::max() : leaving_.front().first;
    {
      const std::lock_guard lock(mutex_);
      strangers_ = {book_->open(), book_->displaced(), book_->expired(), unknown_keys_};
    }
    wait(std::min({next, cut, leave, keys, look}));
  }
  say_farewell();
}

void SocketBulk::Running::say_farewell() {
  core_.stop();
  // Whoever hears it closes by himself.
  const auto until = std::chrono::steady_clock::now() + kLastFarewell;
  while (book_->open() > 0 && std::chrono::steady_clock::now() < until) {
    zmq::pollitem_t item{router_->monitor.socket().handle(), 0, ZMQ_POLLIN, 0};
    zmq::poll(&item, 1, milliseconds(10));
    hear_monitor();
  }
  for (auto& [peer, dial] : dials_) dial->monitor.reset();
  dials_.clear();
  leaving_.clear();
  router_.reset();
  handshakes_.close();
  context_.close();
}

SocketBulk::SocketBulk(const BulkOptions& options, const SocketBulkOptions& sockets, BulkOwner& owner,
                       const base::Clock& clock)
    : running_(std::make_unique<Running>(options, sockets, owner, clock)) {}

SocketBulk::~SocketBulk() = default;

BulkSent SocketBulk::send(const std::string& peer, const BulkMessage& message) {
  return running_->core().send(peer, message);
}

std::vector<BulkRefusal> SocketBulk::set_peers(const std::vector<BulkPeer>& peers) {
  return running_->set_peers(peers);
}

std::map<std::string, BulkCounters> SocketBulk::counters() const {
  return std::as_const(*running_).core().counters();
}

const std::string& SocketBulk::endpoint() const {
  return running_->endpoint();
}

void SocketBulk::set_keys(const KeyPair& keys) {
  running_->set_keys(keys);
}

BulkStrangers SocketBulk::strangers() const {
  return running_->strangers();
}

}  // namespace vigil::cluster
