// What a port says and does, whatever carries it: no sockets, no threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/bulk/back_off.h"
#include "cluster/bulk/bulk.h"
#include "cluster/bulk/receive_account.h"
#include "cluster/bulk/send_account.h"
#include "cluster/bulk/wire.h"

namespace vigil::cluster {

/// A connection that a peer has made to us, as whatever carries it names it.
using BulkConnection = std::string;

/// What a port needs of whatever carries its parcels. Nothing blocks; each connection keeps the order.
class BulkLinks {
 public:
  virtual ~BulkLinks() = default;

  /// Begins a connection to this peer, whose public key is this one, or empty where plain text is spoken.
  /// What is sent on it before it stands goes out once it does. One at a time for a peer. False if it cannot,
  /// as without a socket or with what is no key; then there is none.
  virtual bool dial(const BulkPeer& peer, const std::string& key) = 0;
  /// Ends it. `told`: what was sent on it last has a moment to arrive. `PortCore::dial_lost` is not called
  /// then.
  virtual void hang_up(const std::string& peer, bool told) = 0;
  virtual void send_dialed(const std::string& peer, Frames frames) = 0;

  /// False if it is gone, or cannot take more.
  virtual bool send_accepted(const BulkConnection& connection, Frames frames) = 0;
  /// A stream stands on it.
  virtual void welcomed(const BulkConnection& connection) = 0;
  /// Nothing that comes from it is wanted any more; it is to be closed. `told` as above.
  /// `PortCore::accepted_lost` is not called then.
  virtual void dismiss(const BulkConnection& connection, bool told) = 0;
};

/// The parts that are marked so are thread-safe; everything else is called by one thread, the port's.
class PortCore {
 public:
  /// `wake`: has `step` called soon, any thread; must not block, nor call back. Throws BulkError.
  PortCore(const BulkOptions& options, BulkOwner& owner, BulkLinks& links, const base::Clock& clock,
           std::function<void()> wake);
  /// Receipts that are still held do nothing any more.
  ~PortCore();
  PortCore(const PortCore&) = delete;
  PortCore& operator=(const PortCore&) = delete;

  /// Thread-safe; as in BulkPort. With `encrypted`, each peer has to have keys.
  BulkSent send(const std::string& peer, const BulkMessage& message);
  std::vector<BulkRefusal> set_peers(const std::vector<BulkPeer>& peers, bool encrypted);
  std::map<std::string, BulkCounters> counters() const;

  /// Whose key this is, by the list that was given last. Thread-safe.
  std::optional<std::string> peer_of(const std::string& key) const;

  /// What came: of a connection that we dialed, or that was made to us by the owner of this key (empty: plain
  /// text).
  void dialed(const std::string& peer, const Frames& frames);
  void dial_lost(const std::string& peer, BulkEnd why);
  /// More than may be has come, and is not kept: nothing more is to be heard of the peer there.
  void dial_overrun(const std::string& peer);
  void accepted(const BulkConnection& connection, const std::string& key, const Frames& frames);
  void accepted_lost(const BulkConnection& connection);
  /// As `dial_overrun`.
  void accepted_overrun(const BulkConnection& connection);

  /// Does what there is to do: hands over what was taken, gives credit, dials, notices silence. When it has
  /// to be called again, unless something happens before.
  base::Clock::TimePoint step();

  /// Ends all connections that were made to us: our key is another one.
  void end_accepted();

  /// Says goodbye to all. Nothing else is called afterwards.
  void stop();

 private:
  using TimePoint = base::Clock::TimePoint;

  struct Peer;
  using PeerPtr = std::shared_ptr<Peer>;

  std::optional<std::string> why_not(const BulkPeer& peer, bool encrypted,
                                     const std::map<std::string, std::string>& names_by_key) const;
  void take_up_list();
  void take_up(Peer& peer, const BulkPeer& as);
  void dial(Peer& peer);
  void end_incoming(Peer& peer, BulkEnd why, bool tell);
  void end_outgoing(Peer& peer, BulkEnd why, bool tell);
  PeerPtr greeted_by(const std::string& key, const BulkHello& hello) const;
  void greet(const BulkConnection& connection, const std::string& key, const BulkHello& hello);
  void welcome(Peer& peer, const BulkWelcome& welcome);
  void refuse(const BulkConnection& connection, BulkEnd why);
  void take_data(Peer& peer, BulkData& data);
  void take_credit(Peer& peer, const BulkCredit& credit);
  /// Whether it may say something that answers nothing of ours.
  bool may_speak(Peer& peer);
  /// Whether more is left.
  bool hand_over(Peer& peer);
  void give_credit(Peer& peer);
  /// When it has to be looked at again.
  TimePoint keep_outgoing(Peer& peer, TimePoint now);
  TimePoint keep_incoming(Peer& peer, TimePoint now);

  const BulkOptions options_;
  BulkOwner& owner_;
  BulkLinks& links_;
  const base::Clock& clock_;
  std::function<void()> wake_;
  std::mt19937_64 random_;
  const std::uint64_t incarnation_;

  // The port's thread alone.
  std::map<std::string, PeerPtr> peers_;
  std::map<BulkConnection, PeerPtr> accepted_;

  /// As they were listed last; `peers_` follows at the next step, or when somebody comes.
  struct Listed {
    BulkPeer as;
    PeerPtr peer;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Listed> listed_;
  std::map<std::string, std::string> names_by_key_;
  bool list_changed_ = false;
};

}  // namespace vigil::cluster
