#include "fleet/events/maker_desk.h"

#include <algorithm>
#include <iterator>

namespace vigil::fleet {
namespace {

// Of the units that a request commits.
constexpr std::size_t kCommits = 256;

/// It is the last of its topic, unless there is a later one.
void put_last(actors::SeriesBooks& books, const ShippedEvent& event) {
  const auto last = std::find_if(books.last.begin(), books.last.end(),
                                 [&](const actors::OutboxEvent& each) { return each.topic == event.topic; });
  if (last == books.last.end()) {
    books.last.push_back(kept(event));
  } else if (last->sequence < event.sequence) {
    *last = kept(event);
  }
}

}  // namespace

MakerDesk::MakerDesk(Options options, const base::Clock& clock)
    : options_(std::move(options)), clock_(clock), given_up_(options_.given_up) {}

void MakerDesk::see(const GatewayView& view) {
  view_ = view;
  std::erase_if(lanes_, [&](const auto& lane) { return !view_.contains(lane.first); });
  for (const auto& [name, seen] : view_) {
    Lane& lane = lanes_[name];
    if (lane.born == seen.born) continue;
    lane = {};
    lane.born = seen.born;
  }
  settle();
}

bool MakerDesk::has_gateways() const {
  return std::any_of(view_.begin(), view_.end(), [](const auto& each) { return each.second.serves; });
}

MakerDesk::Required MakerDesk::required() const {
  Required required;
  for (const auto& [name, seen] : view_)
    if (seen.serves) required.names.insert(name);
  required.is_known = !required.names.empty();
  std::vector<std::string> left(required.names.begin(), required.names.end());
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    const Lane& lane = lanes_.at(name);
    if (lane.token.empty()) {
      required.is_known = false;
      continue;
    }
    required.all.push_back({name, lane.born, lane.token});
    for (const GatewayTenure& peer : lane.peers) {
      const auto there = lanes_.find(peer.gateway);
      // Either the registry has not told of it yet, or the one that named it does not know that it is gone.
      if (there == lanes_.end() || there->second.born != peer.born) {
        required.is_known = false;
        continue;
      }
      if (there->second.token != peer.token) required.is_known = false;
      if (required.names.insert(peer.gateway).second) left.push_back(peer.gateway);
    }
  }
  return required;
}

bool MakerDesk::is_everywhere(const std::set<std::string>& tokens, const Required& required) {
  return std::all_of(required.all.begin(), required.all.end(),
                     [&](const GatewayTenure& gateway) { return tokens.contains(gateway.token); });
}

void MakerDesk::claim(const std::string& name, std::uint64_t fence) {
  const auto known = series_.find(name);
  if (known != series_.end() && known->second.fence > fence) {
    lost_.push_back({name, fence, known->second.fence});
    return;
  }
  if (own_.contains(name) || name == options_.own) {
    left_.erase(name);
  } else {
    left_[name] = clock_.now();
  }
  Series& series = series_[name];
  busy_.insert(name);
  if (series.fence == fence && !series.is_open) return;
  if (series.is_open) series.before = series.fence;
  series.fence = fence;
  series.is_open = false;
  series.answers.clear();
  series.again.clear();
  settle();
}

void MakerDesk::have(const std::string& name) {
  own_.insert(name);
  left_.erase(name);
}

void MakerDesk::leave(const std::string& name) {
  own_.erase(name);
  if (series_.contains(name)) left_[name] = clock_.now();
}

void MakerDesk::forget_left() {
  const auto now = clock_.now();
  if (waiting_ >= options_.most / 2) full_at_ = now;
  for (auto& [name, since] : left_)
    if (busy_.contains(name)) since = now;
  if (now - full_at_ < options_.farewell) return;
  std::erase_if(left_, [&](const auto& left) {
    if (now - left.second < options_.farewell) return false;
    series_.erase(left.first);
    return true;
  });
}

void MakerDesk::look_at_left(const Required& required) {
  const auto now = clock_.now();
  const bool is_blocked = !required.is_known || std::any_of(required.names.begin(), required.names.end(),
                                                            [&](const std::string& name) {
                                                              return lanes_.at(name).silent_since.has_value();
                                                            });
  if (is_blocked) blocked_at_ = now;
  // What there is no room for here waits in the outbox.
  const bool has_left =
      std::any_of(left_.begin(), left_.end(), [&](const auto& left) { return busy_.contains(left.first); }) ||
      (!left_.empty() && waiting_ >= options_.most / 2);
  if (has_left) {
    had_left_at_ = now;
    // What has waited comes to an end some time after all gateways answer.
    keeps_ = keeps_ || now - blocked_at_ < options_.deference;
  } else if (now - had_left_at_ >= options_.quiet) {
    keeps_ = false;
  }
}

bool MakerDesk::defers(const std::string& name, const Series& series) const {
  return !series.is_open && !keepers_.empty() && !left_.contains(name) && name != options_.own &&
         clock_.now() - blocked_at_ < options_.deference;
}

void MakerDesk::publish(const std::vector<actors::OutboxEvent>& copies) {
  if (copies.empty()) return;
  const auto entry = series_.find(series_key(copies.front().topic));
  for (const actors::OutboxEvent& event : copies) newest_ = std::max(newest_, event.position);
  if (entry == series_.end()) {
    dropped_ += copies.size();
    return;
  }
  Series& series = entry->second;
  if (publish_again(entry->first, series, copies)) return;
  Unit unit;
  unit.number = ++series.units;
  for (const actors::OutboxEvent& event : copies) {
    unit.events.push_back(shipped(event, unit.number));
    unit.bytes += size_of(unit.events.back());
    unit.positions.push_back(event.position);
    under_way_.insert(event.position);
  }
  waiting_ += unit.events.size();
  series.queue.push_back(std::move(unit));
  busy_.insert(entry->first);
}

/// What an outbox that took the place of another one has again keeps its place here. What has another event
/// there by now has the newer one, unless a gateway may have committed the other.
bool MakerDesk::publish_again(const std::string& name, Series& series,
                              const std::vector<actors::OutboxEvent>& copies) {
  bool is_again = false;
  for (const actors::OutboxEvent& event : copies)
    for (Unit& unit : series.queue)
      for (ShippedEvent& known : unit.events) {
        if (known.topic != event.topic || known.sequence != event.sequence) continue;
        is_again = true;
        if (known.body != event.body && unit.committed.empty() && !unit.is_to_be_committed) {
          unit.bytes -= size_of(known);
          known = shipped(event, unit.number);
          unit.bytes += size_of(known);
          unit.staged.clear();
          offer_anew(name, unit.number);
        }
        unit.positions.push_back(event.position);
        under_way_.insert(event.position);
      }
  return is_again;
}

void MakerDesk::offer_anew(const std::string& series, std::uint64_t unit) {
  for (auto& [name, lane] : lanes_) {
    if (!lane.sent) continue;
    const auto found = lane.sent->offers.find(series);
    if (found != lane.sent->offers.end()) std::ranges::replace(found->second, unit, std::uint64_t{0});
  }
}

void MakerDesk::start_over() {
  under_way_.clear();
  newest_ = 0;
  for (auto& [name, series] : series_)
    for (Unit& unit : series.queue) unit.positions.clear();
}

std::vector<MakerDesk::Ask> MakerDesk::take_asks() {
  forget_left();
  std::vector<Ask> asks;
  const Required all = required();
  look_at_left(all);
  for (const std::string& name : all.names) {
    Lane& lane = lanes_.at(name);
    if (lane.sent || clock_.now() < lane.again) continue;
    if (auto talk = next_for(lane, all)) asks.push_back({name, std::move(*talk)});
    if (!lane.sent) continue;
    for (const auto& [series, numbers] : lane.sent->commits)
      for (Unit& unit : series_.at(series).queue)
        if (std::ranges::count(numbers, unit.number) > 0) unit.is_to_be_committed = true;
  }
  return asks;
}

std::optional<MakerTalk> MakerDesk::next_for(Lane& lane, const Required& required) {
  MakerTalk talk;
  talk.maker = options_.node;
  talk.session = options_.session;
  talk.born = lane.born;
  talk.token = lane.token;
  talk.all = required.all;
  Sent sent;
  sent.token = lane.token;
  if (!lane.token.empty() && !busy_.empty()) {
    Room room{options_.offer_events, options_.offer_bytes, kCommits, options_.claims};
    // Each in its turn: beginning behind the one that had the last word.
    auto turn = busy_.upper_bound(turn_);
    for (std::size_t i = 0; i < busy_.size(); ++i, ++turn) {
      if (turn == busy_.end()) turn = busy_.begin();
      const std::size_t events = room.events;
      add_series(*turn, series_.at(*turn), required, talk, sent, room);
      if (room.events != events) turn_ = *turn;
      if (room.events == 0) break;
    }
  }
  if (talk.claims.empty() && talk.offers.empty() && talk.commits.empty()) {
    // Who it is, or whom it names by now.
    const bool is_unknown = lane.token.empty() || (!required.is_known && !busy_.empty());
    if (!is_unknown || clock_.now() < lane.probed) return std::nullopt;
    lane.probed = clock_.now() + options_.pause;
  }
  talk.number = sent.number = ++numbers_;
  lane.sent = std::move(sent);
  return talk;
}

void MakerDesk::add_series(const std::string& name, const Series& series, const Required& required,
                           MakerTalk& talk, Sent& sent, Room& room) const {
  const std::string& token = talk.token;
  const bool wants_claim = series.is_open ? series.again.contains(token) : !series.answers.contains(token);
  if (wants_claim && room.claims > 0 && !defers(name, series)) {
    talk.claims.push_back({name, series.fence});
    --room.claims;
  }
  if (!series.is_open || !required.is_known || wants_claim) return;
  SeriesOffer offer{name, series.fence, {}};
  SeriesCommit commit{name, series.fence, {}};
  bool may_offer = true, may_commit = true;
  for (const Unit& unit : series.queue) {
    if (!unit.staged.contains(token) && may_offer) {
      // An event that is larger than all goes alone.
      const bool is_first = room.events == options_.offer_events;
      may_offer = is_first || (unit.events.size() <= room.events && unit.bytes <= room.bytes);
      if (may_offer) {
        offer.events.insert(offer.events.end(), unit.events.begin(), unit.events.end());
        sent.offers[name].push_back(unit.number);
        room.events -= std::min(room.events, unit.events.size());
        room.bytes -= std::min(room.bytes, unit.bytes);
      } else {
        room.events = 0;
      }
    }
    may_commit = may_commit && is_everywhere(unit.staged, required) && room.units > 0;
    if (may_commit && !unit.committed.contains(token)) {
      CommitUnit places;
      for (const ShippedEvent& event : unit.events)
        places.places.push_back({event.topic, event.sequence, fingerprint(event.body)});
      places.over_gap = unit.gaps.contains(token);
      commit.units.push_back(std::move(places));
      sent.commits[name].push_back(unit.number);
      --room.units;
    }
    if (!may_offer && !may_commit) break;
  }
  if (!offer.events.empty()) talk.offers.push_back(std::move(offer));
  if (!commit.units.empty()) talk.commits.push_back(std::move(commit));
}

void MakerDesk::failed(const std::string& gateway, std::uint64_t number) {
  const auto lane = lanes_.find(gateway);
  if (lane == lanes_.end() || !lane->second.sent || lane->second.sent->number != number) return;
  lane->second.sent.reset();
  lane->second.again = clock_.now() + options_.pause;
  if (!lane->second.silent_since) lane->second.silent_since = clock_.now();
}

std::string MakerDesk::waits_for() const {
  if (busy_.empty()) return {};
  for (const std::string& name : required().names) {
    const Lane& lane = lanes_.at(name);
    if (lane.silent_since && clock_.now() - *lane.silent_since >= options_.silence) return name;
  }
  return {};
}

void MakerDesk::heard(const std::string& gateway, const GatewayTalk& answer) {
  const auto entry = lanes_.find(gateway);
  if (entry == lanes_.end()) return;
  Lane& lane = entry->second;
  if (!lane.sent || lane.sent->number != answer.number) return;
  const Sent sent = *std::exchange(lane.sent, std::nullopt);
  lane.silent_since.reset();
  lane.token = answer.token;
  lane.peers = answer.peers;
  if (answer.verdict == TalkVerdict::away) {
    lane.again = clock_.now() + options_.pause;
    return settle();
  }
  if (answer.verdict == TalkVerdict::other) return settle();
  for (const ClaimAnswer& claim : answer.claims) take(answer.token, claim);
  for (const SeriesAnswer& offer : answer.offers) take(sent, offer, /*is_commit=*/false, lane);
  for (const SeriesAnswer& commit : answer.commits) take(sent, commit, /*is_commit=*/true, lane);
  settle();
}

void MakerDesk::take(const std::string& token, const ClaimAnswer& answer) {
  const auto entry = series_.find(answer.series);
  if (entry == series_.end() || entry->second.fence != answer.fence) return;
  Series& series = entry->second;
  if (answer.refused && answer.series == options_.own && !series.is_open) {
    series.fence = answer.higher + 1;
    series.answers.clear();
    return;
  }
  if (answer.refused) return lose(answer.series, answer.higher);
  if (series.is_open) {
    // What is numbered here goes before what others left there.
    series.again.erase(token);
  } else {
    series.answers[token] = answer;
  }
}

void MakerDesk::take(const Sent& sent, const SeriesAnswer& answer, bool is_commit, Lane& lane) {
  const auto entry = series_.find(answer.series);
  if (entry == series_.end() || entry->second.fence != answer.fence || !entry->second.is_open) return;
  Series& series = entry->second;
  const auto& told = is_commit ? sent.commits : sent.offers;
  const auto numbers = told.find(answer.series);
  if (numbers == told.end()) return;
  if (answer.verdict == SeriesVerdict::fenced) return lose(answer.series, answer.higher);
  if (answer.verdict == SeriesVerdict::claim) {
    series.again.insert(sent.token);
    return;
  }
  std::uint64_t done = 0;
  for (const std::uint64_t number : numbers->second) {
    const auto unit = std::find_if(series.queue.begin(), series.queue.end(),
                                   [&](const Unit& each) { return each.number == number; });
    const bool is_done = done++ < answer.units;
    if (unit == series.queue.end()) {
      if (number == 0 && !is_done) break;
      continue;
    }
    if (is_done) {
      (is_commit ? unit->committed : unit->staged).insert(sent.token);
      continue;
    }
    if (answer.verdict == SeriesVerdict::missing) unit->staged.erase(sent.token);
    if (answer.verdict == SeriesVerdict::gap) unit->gaps.insert(sent.token);
    break;
  }
  if (answer.verdict == SeriesVerdict::full || answer.verdict == SeriesVerdict::wait ||
      answer.verdict == SeriesVerdict::missing)
    lane.again = clock_.now() + options_.pause;
}

void MakerDesk::settle() {
  const Required all = required();
  claiming_ = 0;
  for (auto name = busy_.begin(); name != busy_.end();) {
    Series& series = series_.at(*name);
    if (!series.is_open && all.is_known &&
        std::all_of(all.all.begin(), all.all.end(),
                    [&](const GatewayTenure& gateway) { return series.answers.contains(gateway.token); }))
      open(*name, series, all);
    while (series.is_open && all.is_known && !series.queue.empty() &&
           is_everywhere(series.queue.front().committed, all)) {
      finish(series.queue.front());
      series.queue.pop_front();
    }
    if (!series.is_open) ++claiming_;
    name =
        series.is_open && series.queue.empty() && series.again.empty() ? busy_.erase(name) : std::next(name);
  }
}

void MakerDesk::open(const std::string& name, Series& series, const Required& required) {
  std::vector<ClaimAnswer> answers;
  std::uint64_t others = 0;
  for (const GatewayTenure& gateway : required.all) {
    answers.push_back(std::move(series.answers.at(gateway.token)));
    others = std::max(others, answers.back().others);
  }
  // Nobody had it in between: what is in hand goes on, and is all that there is beside what is committed.
  const bool goes_on = series.before > others;
  if (goes_on)
    for (ClaimAnswer& answer : answers) answer.staged.clear();
  MergedBooks merged = merge_books(name, series.fence, answers);
  std::deque<Unit> own = std::move(series.queue);
  series.queue.clear();
  series.units = 0;
  const auto enqueue = [&series](Unit unit) {
    unit.number = ++series.units;
    for (ShippedEvent& event : unit.events) event.unit = unit.number;
    series.queue.push_back(std::move(unit));
  };
  const auto unit_of = [](std::vector<ShippedEvent> events) {
    Unit unit;
    for (const ShippedEvent& event : events) unit.bytes += size_of(event);
    unit.events = std::move(events);
    return unit;
  };
  std::set<std::pair<std::string, std::string>> told;
  for (std::vector<ShippedEvent>& events : merged.units) {
    // Of its own, it has them in hand.
    if (goes_on) break;
    for (const ShippedEvent& event : events) told.emplace(event.topic, event.body);
    waiting_ += events.size();
    enqueue(unit_of(std::move(events)));
  }
  while (!own.empty()) {
    Unit unit = std::move(own.front());
    own.pop_front();
    unit.staged.clear();
    if (goes_on) {
      for (const ShippedEvent& event : unit.events) put_last(merged.books, event);
      enqueue(std::move(unit));
    } else {
      for (const ShippedEvent& event : unit.events)
        if (!told.contains({event.topic, event.body})) ++dropped_;
      finish(unit);
    }
  }
  // Nor may its maker go on with what this has dropped.
  const std::uint64_t given_up = given_up_.of(name);
  if (given_up_.knows(name)) {
    merged.books.since = std::max(merged.books.since, given_up + 1);
  } else if (given_up > 0) {
    // Another one's, for all that is known: not of this tenure.
    merged.books.since = std::max(merged.books.since, std::min(given_up + 1, series.fence));
  }
  series.is_open = true;
  series.before = 0;
  series.answers.clear();
  books_.push_back(std::move(merged.books));
}

void MakerDesk::lose(const std::string& name, std::uint64_t higher) {
  const auto entry = series_.find(name);
  lost_.push_back({name, entry->second.fence, higher});
  given_up_.saw(name, entry->second.fence);
  for (Unit& unit : entry->second.queue) {
    dropped_ += unit.positions.size();
    finish(unit);
  }
  busy_.erase(name);
  left_.erase(name);
  series_.erase(entry);
}

void MakerDesk::finish(Unit& unit) {
  waiting_ -= unit.events.size();
  for (const std::uint64_t position : unit.positions) under_way_.erase(position);
}

}  // namespace vigil::fleet
