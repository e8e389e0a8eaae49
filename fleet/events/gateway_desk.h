// A gateway's side of the protocol: what it answers to makers and to other gateways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/outbox.h"
#include "actors/status/gateway_series.h"
#include "fleet/events/gateway_books.h"
#include "fleet/messages/event_messages.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {

/// Four things keep what a subscriber saw at all gateways that serve:
/// - Whoever comes is admitted by each that holds a lease before it serves itself: from then on, that one
///   takes nothing that is not given to the new one, too, and the new one copies what was staged before.
/// - Each answer names the gateways that its giver has admitted. A maker asks them all before it numbers, and
///   gives to them all, whatever the registry has told it so far.
/// - A gateway whose record was gone from the registry, for however short a time, is another one (`born`):
///   what others did meanwhile it does not have.
/// - Before a gateway takes what another one is not given, it has on its disk that it goes on without that
///   one. So those that were started anew can tell which of them has all.
/// Every call that throws OutboxError leaves this of no use: a new one is made of the outbox. Not
/// thread-safe.
class GatewayDesk {
 public:
  struct Options {
    std::string name;
    GatewayBooks::Options books = {};
  };

  GatewayDesk(Options options, actors::Outbox& outbox);

  /// Who holds a lease, as far as the registry told. It is away if its own record is not what it was.
  void see(const GatewayView& view);

  GatewayTalk answer(const MakerTalk& talk);
  PeerAnswer answer(const PeerQuestion& question);

  GatewayMode mode() const { return mode_; }
  const std::string& token() const { return token_; }
  const std::string& born() const { return born_; }
  const std::map<std::string, GatewayTenure>& peers() const { return peers_; }
  const GatewayBooks& books() const { return books_; }
  const GatewayView& view() const { return view_; }
  /// How many events it has, staged ones and those that are forgotten included.
  std::uint64_t has() const { return books_.committed() + books_.staged_events(); }
  std::uint64_t newest() const { return outbox_.last_position(); }
  /// Whether its outbox was damaged, and has what could be read of it: anything may be missing of it.
  bool has_lost() const { return !outbox_.mark_of_loss().empty(); }
  /// Of events that came since the last call.
  actors::GatewayCounts take_counts() { return std::exchange(counts_, {}); }

  std::vector<TopicGap> take_gaps() { return books_.take_gaps(); }

  /// Of the one that comes: takes what makers and gateways give it from now on, with this token.
  void join(std::string token);
  void learn(const GatewayTenure& peer);
  /// That one does not come any more, by its own word.
  void forget(const std::string& peer);
  /// Another one, since it had this token: it does not have what is published from now on.
  void go_without(const std::string& peer, const std::string& token);
  void take(const std::vector<ShippedEvent>& committed);
  /// `with_notes`: of the gateway whose events it follows.
  void take(const std::vector<SeriesCopy>& series, bool with_notes);
  /// It has all that it lacked; `as_first`: there was nothing to be had elsewhere.
  void serve(bool as_first);
  void leave();

 private:
  void claim(const MakerTalk& talk, const SeriesClaim& claim, GatewayTalk& answer);
  SeriesAnswer offer(const MakerTalk& talk, const SeriesOffer& offer);
  SeriesAnswer commit(const MakerTalk& talk, const SeriesCommit& commit);
  /// Nothing if this is the tenure that has claimed it.
  std::optional<SeriesAnswer> why_not(const MakerTalk& talk, const std::string& series,
                                      std::uint64_t fence) const;
  bool knows_all(const MakerTalk& talk) const;
  void write();
  /// Who has to have everything, and who has not, to be written with what comes next.
  void note_peers();
  void page(const PeerQuestion& question, PeerAnswer& answer) const;
  void series(const PeerQuestion& question, PeerAnswer& answer) const;

  const Options options_;
  actors::Outbox& outbox_;
  GatewayBooks books_;
  GatewayView view_;
  GatewayMode mode_ = GatewayMode::away;
  /// Of its record, as it was when it began to come.
  std::string born_;
  std::string token_;
  std::map<std::string, GatewayTenure> peers_;
  /// Since it began to come, and before; by name, with the tokens that they had.
  std::map<std::string, std::string> without_;
  /// Of each maker: its session, and the number of what it said last.
  std::map<std::string, std::pair<std::string, std::uint64_t>> heard_;
  actors::GatewayCounts counts_;
};

}  // namespace vigil::fleet
