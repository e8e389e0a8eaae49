#include "fleet/events/gateway_desk.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace vigil::fleet {
namespace {

// Of an answer, at most: events, their bytes; places; series.
constexpr std::size_t kPageEvents = 256;
constexpr std::size_t kPageBytes = 256 << 10;
constexpr std::size_t kPlaces = 256;

}  // namespace

GatewayDesk::GatewayDesk(Options options, actors::Outbox& outbox)
    : options_(std::move(options)), outbox_(outbox), books_(options_.books, outbox) {}

void GatewayDesk::see(const GatewayView& view) {
  view_ = view;
  const auto own = view_.find(options_.name);
  const std::string born = own == view_.end() ? "" : own->second.born;
  if (born != born_) {
    leave();
    born_ = born;
  }
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const auto there = view_.find(peer->first);
    const bool is_gone = there == view_.end() || there->second.born != peer->second.born;
    const std::string name = peer++->first;
    if (is_gone) forget(name);
  }
}

void GatewayDesk::forget(const std::string& name) {
  const auto peer = peers_.find(name);
  if (peer == peers_.end()) return;
  const std::string token = peer->second.token;
  peers_.erase(peer);
  go_without(name, token);
}

void GatewayDesk::go_without(const std::string& name, const std::string& token) {
  // One that is away goes on with nothing.
  if (mode_ == GatewayMode::away || name == options_.name || token.empty()) return;
  std::string& last = without_[name];
  last = std::max(last, token);
  note_peers();
}

void GatewayDesk::note_peers() {
  if (mode_ != GatewayMode::serving) return;
  ServingTime now{token_, {}, without_};
  for (const auto& [name, peer] : peers_) now.with[name] = peer.token;
  books_.set_served(now);
}

void GatewayDesk::join(std::string token) {
  token_ = std::move(token);
  mode_ = GatewayMode::joining;
  without_ = books_.served().without;
  books_.make_stale();
}

void GatewayDesk::learn(const GatewayTenure& peer) {
  if (peer.gateway == options_.name) return;
  const auto there = view_.find(peer.gateway);
  // Gone already; one that is not known yet is asked again.
  if (there == view_.end() || there->second.born != peer.born) return;
  GatewayTenure& known = peers_[peer.gateway];
  if (known.born == peer.born && known.token >= peer.token) return;
  known = peer;
  note_peers();
}

void GatewayDesk::take(const std::vector<ShippedEvent>& committed) {
  const std::span<const ShippedEvent> all(committed);
  const auto name = [](const ShippedEvent& event) {
    return unit_name(event.topic, event.sequence, event.body);
  };
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const std::string unit = name(all[begin]);
    for (end = begin + 1; end < all.size() && name(all[end]) == unit;) ++end;
    books_.follow(all.subspan(begin, end - begin));
  }
  write();
}

void GatewayDesk::take(const std::vector<SeriesCopy>& series, bool with_notes) {
  for (const SeriesCopy& copy : series) {
    const SeriesTenure* const own = books_.tenure(copy.series);
    if (copy.tenure.fence > 0 && (own == nullptr || own->fence < copy.tenure.fence))
      books_.set_tenure(copy.series, copy.tenure);
    for (const StagedEvent& staged : copy.staged) books_.stage_copy(copy.series, staged);
    if (with_notes) books_.set_notes(copy);
  }
  write();
}

void GatewayDesk::serve(bool as_first) {
  if (as_first) {
    books_.freshen();
    // Nobody has to have anything yet.
    for (const auto& [name, token] : books_.served().with) go_without(name, token);
  } else {
    books_.drop_stale();
  }
  mode_ = GatewayMode::serving;
  note_peers();
  write();
}

void GatewayDesk::write() {
  const std::uint64_t before = outbox_.last_position();
  books_.write();
  counts_.committed += outbox_.last_position() - before;
}

void GatewayDesk::leave() {
  mode_ = GatewayMode::away;
  token_.clear();
}

bool GatewayDesk::knows_all(const MakerTalk& talk) const {
  return std::all_of(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return std::find(talk.all.begin(), talk.all.end(), peer.second) != talk.all.end();
  });
}

GatewayTalk GatewayDesk::answer(const MakerTalk& talk) {
  GatewayTalk answer;
  answer.number = talk.number;
  if (mode_ == GatewayMode::away || talk.born != born_) {
    answer.verdict = TalkVerdict::away;
    return answer;
  }
  answer.token = token_;
  for (const auto& [name, peer] : peers_) answer.peers.push_back(peer);
  if (!talk.token.empty() && talk.token != token_) {
    answer.verdict = TalkVerdict::other;
    return answer;
  }
  // What a connection that is gone still had: whoever sent it has said something else since.
  auto& [session, number] = heard_[talk.maker];
  if (session == talk.session && talk.number < number) {
    answer.verdict = TalkVerdict::away;
    return answer;
  }
  session = talk.session;
  number = talk.number;
  for (const SeriesClaim& each : talk.claims) claim(talk, each, answer);
  if (!talk.offers.empty() || !talk.commits.empty()) {
    if (knows_all(talk)) {
      for (const SeriesOffer& each : talk.offers) answer.offers.push_back(offer(talk, each));
      for (const SeriesCommit& each : talk.commits) answer.commits.push_back(commit(talk, each));
    } else {
      answer.verdict = TalkVerdict::lacks;
    }
  }
  write();
  return answer;
}

void GatewayDesk::claim(const MakerTalk& talk, const SeriesClaim& claim, GatewayTalk& answer) {
  ClaimAnswer told;
  told.series = claim.series;
  told.fence = claim.fence;
  const SeriesTenure* const known = books_.tenure(claim.series);
  SeriesTenure tenure{claim.fence, talk.maker, talk.session, 0};
  if (known != nullptr) {
    const bool is_other = known->fence == claim.fence && known->maker != talk.maker;
    if (known->fence > claim.fence || is_other) {
      told.refused = true;
      told.higher = known->fence;
      answer.claims.push_back(std::move(told));
      return;
    }
    told.previous = known->fence;
    tenure.others = known->maker == talk.maker ? known->others : known->fence;
  }
  books_.set_tenure(claim.series, tenure);
  told.others = tenure.others;
  books_.tell(claim.series, told);
  answer.claims.push_back(std::move(told));
}

std::optional<SeriesAnswer> GatewayDesk::why_not(const MakerTalk& talk, const std::string& series,
                                                 std::uint64_t fence) const {
  SeriesAnswer answer{series, fence, SeriesVerdict::claim, 0, 0};
  const SeriesTenure* const known = books_.tenure(series);
  if (known == nullptr || known->fence < fence) return answer;
  answer.higher = known->fence;
  if (known->fence > fence || known->maker != talk.maker) answer.verdict = SeriesVerdict::fenced;
  if (answer.verdict == SeriesVerdict::fenced || known->session != talk.session) return answer;
  return std::nullopt;
}

SeriesAnswer GatewayDesk::offer(const MakerTalk& talk, const SeriesOffer& offer) {
  if (auto refusal = why_not(talk, offer.series, offer.fence)) {
    if (refusal->verdict == SeriesVerdict::fenced) counts_.refused += offer.events.size();
    return std::move(*refusal);
  }
  SeriesAnswer answer{offer.series, offer.fence, SeriesVerdict::done, 0, 0};
  std::uint64_t unit = 0;
  for (const ShippedEvent& event : offer.events) {
    if (event.unit != unit) answer.units += unit == 0 ? 0 : 1;
    unit = event.unit;
    const std::size_t before = books_.staged_events();
    if (books_.stage(offer.series, offer.fence, event)) {
      ++(books_.staged_events() > before ? counts_.stored : counts_.duplicate);
      continue;
    }
    answer.verdict = SeriesVerdict::full;
    return answer;
  }
  answer.units += unit == 0 ? 0 : 1;
  return answer;
}

SeriesAnswer GatewayDesk::commit(const MakerTalk& talk, const SeriesCommit& commit) {
  if (auto refusal = why_not(talk, commit.series, commit.fence)) {
    if (refusal->verdict == SeriesVerdict::fenced)
      for (const CommitUnit& unit : commit.units) counts_.refused += unit.places.size();
    return std::move(*refusal);
  }
  SeriesAnswer answer{commit.series, commit.fence, SeriesVerdict::done, 0, 0};
  // What comes before it comes from another gateway.
  if (mode_ != GatewayMode::serving) {
    answer.verdict = SeriesVerdict::wait;
    return answer;
  }
  for (const CommitUnit& unit : commit.units) {
    answer.verdict = books_.commit(commit.series, commit.fence, unit);
    if (answer.verdict != SeriesVerdict::done) return answer;
    ++answer.units;
  }
  return answer;
}

PeerAnswer GatewayDesk::answer(const PeerQuestion& question) {
  PeerAnswer answer;
  answer.number = question.number;
  answer.mode = mode_;
  answer.token = token_;
  answer.has = has();
  answer.newest = newest();
  answer.served = books_.served().token;
  answer.with = books_.served().with;
  answer.without = mode_ == GatewayMode::away ? books_.served().without : without_;
  // Before the registry has told of whoever asks, nothing could tell either that it is gone.
  const auto asker = view_.find(question.from);
  const bool is_known = asker != view_.end() && asker->second.born == question.born;
  const bool has_all = mode_ != GatewayMode::away;
  if (question.to_born != born_ || born_.empty() || !is_known ||
      (!has_all && question.kind > PeerQuestionKind::admit)) {
    answer.refused = true;
    return answer;
  }
  switch (question.kind) {
    case PeerQuestionKind::state: {
      // Whoever asks this has nothing, and is not waited for: unless it had the question under way for long.
      const auto peer = peers_.find(question.from);
      if (peer != peers_.end() && peer->second.token >= question.token) break;
      forget(question.from);
      go_without(question.from, question.token);
      break;
    }
    case PeerQuestionKind::nominate:
      break;
    case PeerQuestionKind::where:
      for (const EventPoint& place : question.places) answer.places.push_back(books_.compare(place));
      break;
    case PeerQuestionKind::topics: {
      const auto topics = books_.topics_after(question.text, kPlaces);
      for (const EventPoint& topic : topics) {
        PointAnswer place{topic.topic, topic.sequence, false, 0};
        place.next = outbox_.position_of(topic.topic, 1).value_or(0);
        answer.places.push_back(std::move(place));
      }
      answer.more = topics.size() == kPlaces;
      answer.text = topics.empty() ? question.text : topics.back().topic;
      break;
    }
    case PeerQuestionKind::page:
      page(question, answer);
      break;
    case PeerQuestionKind::admit: {
      // A question that was under way for long is of a time before.
      GatewayTenure& peer = peers_[question.from];
      if (peer.born == question.born && peer.token > question.token) {
        answer.refused = true;
      } else {
        peer = {question.from, question.born, question.token};
        note_peers();
      }
      break;
    }
    case PeerQuestionKind::series:
      series(question, answer);
      break;
  }
  write();
  for (const auto& [name, peer] : peers_) answer.peers.push_back(peer);
  return answer;
}

void GatewayDesk::page(const PeerQuestion& question, PeerAnswer& answer) const {
  actors::ReplayQuery query;
  query.topics = {""};
  query.after = question.after;
  query.max_events = kPageEvents;
  query.max_bytes = kPageBytes;
  const actors::Replay found = outbox_.replay(query);
  for (const actors::OutboxEvent& event : found.events) answer.events.push_back(shipped(event));
  answer.after = found.cursor;
  answer.more = found.more;
  if (!found.more || found.events.empty()) return;
  // Copies of one event come together.
  const auto name = [](const ShippedEvent& event) {
    return unit_name(event.topic, event.sequence, event.body);
  };
  const std::string last = name(answer.events.back());
  std::size_t whole = answer.events.size();
  while (whole > 0 && name(answer.events[whole - 1]) == last) --whole;
  if (whole == 0) return;
  answer.events.resize(whole);
  answer.after = found.events[whole - 1].position;
}

void GatewayDesk::series(const PeerQuestion& question, PeerAnswer& answer) const {
  std::size_t bytes = 0;
  answer.text = question.text;
  const auto names = books_.series_after(question.text, kPlaces);
  answer.more = names.size() == kPlaces;
  for (const std::string& name : names) {
    SeriesCopy copy = books_.copy(name);
    for (const StagedEvent& staged : copy.staged) bytes += size_of(staged.event);
    for (const auto& [key, value] : copy.notes) bytes += key.size() + value.size();
    answer.series.push_back(std::move(copy));
    answer.text = name;
    if (bytes < kPageBytes) continue;
    answer.more = answer.more || name != names.back();
    return;
  }
}

}  // namespace vigil::fleet
