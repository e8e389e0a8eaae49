// What makers and gateways tell each other about events. Requests of CAF, each answered; whatever comes late,
// twice or in another order means what it meant before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <caf/meta/type_name.hpp>

#include "actors/messages/inspect.h"

namespace vigil::fleet {

/// An event on its way, on one of its topics.
struct ShippedEvent {
  std::string topic;
  std::uint64_t sequence = 0;
  /// In nanoseconds since 1970.
  std::int64_t time = 0;
  std::string body;
  /// Copies of one event have the same; it grows within a tenure of a series.
  std::uint64_t unit = 0;
  friend bool operator==(const ShippedEvent&, const ShippedEvent&) = default;
};

/// Where an event is, and what it is (`fingerprint`; 0 where that is not asked).
struct EventPoint {
  std::string topic;
  std::uint64_t sequence = 0;
  std::uint64_t print = 0;
  friend bool operator==(const EventPoint&, const EventPoint&) = default;
};

/// A gateway's time of serving, from its admission on. `born` is that of its record in the registry.
struct GatewayTenure {
  std::string gateway;
  std::string born;
  std::string token;
  friend bool operator==(const GatewayTenure&, const GatewayTenure&) = default;
};

/// All that gateways know of who makes a series. A session is one run of the maker's program.
struct SeriesTenure {
  std::uint64_t fence = 0;
  std::string maker;
  std::string session;
  /// The highest fence by which another maker has claimed it before; 0 if none has.
  std::uint64_t others = 0;
  friend bool operator==(const SeriesTenure&, const SeriesTenure&) = default;
};

struct SeriesClaim {
  std::string series;
  std::uint64_t fence = 0;
};

struct SeriesOffer {
  std::string series;
  std::uint64_t fence = 0;
  std::vector<ShippedEvent> events;
};

/// Copies of one event, to be committed together. What is staged may be another one, as its print tells.
struct CommitUnit {
  std::vector<EventPoint> places;
  /// Whether its topics go on behind what is missing there, which nobody has any more.
  bool over_gap = false;
};

struct SeriesCommit {
  std::string series;
  std::uint64_t fence = 0;
  std::vector<CommitUnit> units;
};

/// What a maker has to tell a gateway.
struct MakerTalk {
  std::uint64_t number = 0;
  std::string maker;
  std::string session;
  /// Which gateway it believes to talk to; the token is empty as long as it does not know it.
  std::string born;
  std::string token;
  /// All gateways that get these events, this one included.
  std::vector<GatewayTenure> all;
  std::vector<SeriesClaim> claims;
  std::vector<SeriesOffer> offers;
  std::vector<SeriesCommit> commits;
};

struct StagedEvent {
  std::uint64_t fence = 0;
  ShippedEvent event;
};

struct ClaimAnswer {
  std::string series;
  std::uint64_t fence = 0;
  /// Then there is a higher fence, and nothing else.
  bool refused = false;
  std::uint64_t higher = 0;
  std::uint64_t previous = 0;
  /// As in `SeriesTenure`.
  std::uint64_t others = 0;
  /// The last committed event of each topic.
  std::vector<ShippedEvent> last;
  std::vector<StagedEvent> staged;
  /// Of what is open: of committed events.
  std::map<std::string, std::string> notes;
};

/// done; fenced: there is a higher fence; claim: this tenure has not claimed it here; full: not now; missing:
/// what is to be committed is not staged; gap: the topic ends before; wait: it is not there yet.
enum class SeriesVerdict : std::uint8_t { done, fenced, claim, full, missing, gap, wait };

/// To an offer, or to a commit: then of its units, the first `units` are done.
struct SeriesAnswer {
  std::string series;
  std::uint64_t fence = 0;
  SeriesVerdict verdict = SeriesVerdict::done;
  std::uint64_t units = 0;
  std::uint64_t higher = 0;
};

/// heard; away: it does not serve, or is not the one that was meant; other: it has another token; lacks: it
/// knows gateways that are not among `all`: claims were taken, and nothing else.
enum class TalkVerdict : std::uint8_t { heard, away, other, lacks };

struct GatewayTalk {
  std::uint64_t number = 0;
  TalkVerdict verdict = TalkVerdict::heard;
  std::string token;
  /// The other gateways that have to have whatever this one is given.
  std::vector<GatewayTenure> peers;
  std::vector<ClaimAnswer> claims;
  std::vector<SeriesAnswer> offers;
  std::vector<SeriesAnswer> commits;
};

/// What a gateway that comes asks another one. state: how it is, from one that is not to be waited for (any
/// more), and for which the record that was put at revision `after` is the oldest; nominate: be the first,
/// from the one whose record that is; admit: count me among those that have to have everything; where:
/// whether these events are the same there, and what comes after them; topics: those after `text`; page:
/// events after position `after`; series: tenures, notes and staged events of series after `text`. The last
/// four are for one that has everything.
enum class PeerQuestionKind : std::uint8_t { state, nominate, admit, where, topics, page, series };

struct PeerQuestion {
  std::uint64_t number = 0;
  PeerQuestionKind kind = PeerQuestionKind::state;
  std::string from;
  std::string born;
  std::string token;
  /// Of the one that is asked.
  std::string to_born;
  std::uint64_t after = 0;
  std::string text;
  std::vector<EventPoint> places;
};

enum class GatewayMode : std::uint8_t { away, joining, serving };

/// To a place: whether the event is another one there; the position of the first that is kept behind it.
struct PointAnswer {
  std::string topic;
  std::uint64_t sequence = 0;
  bool differs = false;
  std::uint64_t next = 0;
};

struct SeriesCopy {
  std::string series;
  SeriesTenure tenure;
  std::vector<StagedEvent> staged;
  std::map<std::string, std::string> notes;
};

struct PeerAnswer {
  std::uint64_t number = 0;
  /// What was asked for is not to be had now.
  bool refused = false;
  /// Its outbox cannot be opened (any more): it has and takes nothing, and comes anew when it can.
  bool lacks_outbox = false;
  GatewayMode mode = GatewayMode::away;
  std::string token;
  /// How many events it has; its newest position.
  std::uint64_t has = 0;
  std::uint64_t newest = 0;
  /// The token with which it served last, as its disk has it; empty if it never did.
  std::string served;
  /// Gateways that had to have everything, too, when it served last, with their tokens, by name.
  std::map<std::string, std::string> with;
  /// Gateways that this one, or one that it has read from, went on without since they had this token, by
  /// name: what was published since then they need not have.
  std::map<std::string, std::string> without;
  std::vector<GatewayTenure> peers;
  std::vector<PointAnswer> places;
  std::vector<ShippedEvent> events;
  std::vector<SeriesCopy> series;
  /// Whether there is more after `after` or `text`.
  bool more = false;
  std::uint64_t after = 0;
  std::string text;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ShippedEvent& x) {
  return f(caf::meta::type_name("ShippedEvent"), x.topic, x.sequence, x.time, x.body, x.unit);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EventPoint& x) {
  return f(caf::meta::type_name("EventPoint"), x.topic, x.sequence, x.print);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GatewayTenure& x) {
  return f(caf::meta::type_name("GatewayTenure"), x.gateway, x.born, x.token);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesTenure& x) {
  return f(caf::meta::type_name("SeriesTenure"), x.fence, x.maker, x.session, x.others);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesClaim& x) {
  return f(caf::meta::type_name("SeriesClaim"), x.series, x.fence);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesOffer& x) {
  return f(caf::meta::type_name("SeriesOffer"), x.series, x.fence, x.events);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommitUnit& x) {
  return f(caf::meta::type_name("CommitUnit"), x.places, x.over_gap);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesCommit& x) {
  return f(caf::meta::type_name("SeriesCommit"), x.series, x.fence, x.units);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, MakerTalk& x) {
  return f(caf::meta::type_name("MakerTalk"), x.number, x.maker, x.session, x.born, x.token, x.all, x.claims,
           x.offers, x.commits);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, StagedEvent& x) {
  return f(caf::meta::type_name("StagedEvent"), x.fence, x.event);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ClaimAnswer& x) {
  return f(caf::meta::type_name("ClaimAnswer"), x.series, x.fence, x.refused, x.higher, x.previous, x.others,
           x.last, x.staged, x.notes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesAnswer& x) {
  return f(caf::meta::type_name("SeriesAnswer"), x.series, x.fence, x.verdict,
           actors::at_most(x.verdict, SeriesVerdict::wait), x.units, x.higher);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GatewayTalk& x) {
  return f(caf::meta::type_name("GatewayTalk"), x.number, x.verdict,
           actors::at_most(x.verdict, TalkVerdict::lacks), x.token, x.peers, x.claims, x.offers, x.commits);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PeerQuestion& x) {
  return f(caf::meta::type_name("PeerQuestion"), x.number, x.kind,
           actors::at_most(x.kind, PeerQuestionKind::series), x.from, x.born, x.token, x.to_born, x.after,
           x.text, x.places);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PointAnswer& x) {
  return f(caf::meta::type_name("PointAnswer"), x.topic, x.sequence, x.differs, x.next);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SeriesCopy& x) {
  return f(caf::meta::type_name("SeriesCopy"), x.series, x.tenure, x.staged, x.notes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, PeerAnswer& x) {
  return f(caf::meta::type_name("PeerAnswer"), x.number, x.refused, x.lacks_outbox, x.mode,
           actors::at_most(x.mode, GatewayMode::serving), x.token, x.has, x.newest, x.served, x.with,
           x.without, x.peers, x.places, x.events, x.series, x.more, x.after, x.text);
}

}  // namespace vigil::fleet
