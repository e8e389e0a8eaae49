#include "fleet/events/gateway_books.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "actors/alerts/closing.h"
#include "actors/alerts/open_episodes.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {
namespace {

constexpr std::string_view kTenure = "gateway/maker/";
constexpr std::string_view kServed = "gateway/served";
constexpr std::string_view kStaged = "gateway/staged/";
constexpr std::string_view kEpisode = "episode/";

std::string staged_key(const std::string& topic, std::uint64_t sequence) {
  return std::string(kStaged) + topic + std::to_string(sequence);
}

// Words of a line: names have no spaces in them, and what has is another one's.
std::string line_of(const SeriesTenure& tenure) {
  return std::to_string(tenure.fence) + ' ' + std::to_string(tenure.others) + ' ' + tenure.session + ' ' +
         tenure.maker;
}

std::optional<SeriesTenure> tenure_of(const std::string& line) {
  std::istringstream words(line);
  SeriesTenure tenure;
  if (!(words >> tenure.fence >> tenure.others >> tenure.session)) return std::nullopt;
  words.ignore();
  std::getline(words, tenure.maker);
  return tenure;
}

/// "IDENTITY TOKEN", then a line for each other one: "with TOKEN NAME" or "without TOKEN NAME".
std::string text_of(const ServingTime& served, const std::string& identity) {
  std::ostringstream text;
  text << identity << ' ' << served.token;
  for (const auto& [name, token] : served.with) text << "\nwith " << token << ' ' << name;
  for (const auto& [name, token] : served.without) text << "\nwithout " << token << ' ' << name;
  return text.str();
}

ServingTime serving_time_of(const std::string& text, const std::string& identity) {
  ServingTime served;
  std::istringstream lines(text);
  std::string whose, kind, token, name;
  if (!(lines >> whose >> served.token) || whose != identity) return {};
  while (lines >> kind >> token && lines.ignore() && std::getline(lines, name))
    (kind == "with" ? served.with : served.without)[name] = token;
  return served;
}

/// The series of a note of an open episode: by its first topic.
std::string series_of_note(const std::string& value) {
  const nlohmann::json note = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  if (!note.is_object() || !note.contains("topics") || !note.at("topics").is_array()) return {};
  if (note.at("topics").empty() || !note.at("topics").front().is_string()) return {};
  return series_key(note.at("topics").front().get<std::string>());
}

}  // namespace

GatewayBooks::GatewayBooks(const Options& options, actors::Outbox& outbox)
    : options_(options), outbox_(outbox) {
  for (const actors::OutboxEvent& event : outbox_.last_events(1))
    if (!series_key(event.topic).empty()) topic_of(event.topic);
  for (const auto& [key, value] : outbox_.notes()) read_note(key, value);
}

void GatewayBooks::read_note(const std::string& key, const std::string& value) {
  if (key.starts_with(kTenure)) {
    if (const auto tenure = tenure_of(value)) series_[key.substr(kTenure.size())].tenure = *tenure;
  } else if (key == kServed) {
    served_ = serving_time_of(value, outbox_.identity());
  } else if (key.starts_with(kEpisode)) {
    if (const std::string series = series_of_note(value); !series.empty()) series_[series].notes[key] = value;
  } else if (key.starts_with(kStaged)) {
    // "FENCE UNIT TIME\nBODY" of "gateway/staged/TOPIC/SEQUENCE": a topic ends with '/'.
    const std::size_t end = key.rfind('/') + 1;
    const std::size_t body = value.find('\n');
    if (end <= kStaged.size() || end == key.size() || body == std::string::npos) return;
    Staged staged;
    staged.event.topic = key.substr(kStaged.size(), end - kStaged.size());
    staged.event.body = value.substr(body + 1);
    std::istringstream line(value.substr(0, body)), number(key.substr(end));
    if (!(line >> staged.fence >> staged.event.unit >> staged.event.time) ||
        !(number >> staged.event.sequence))
      return;
    const std::string series = series_key(staged.event.topic);
    if (series.empty()) return;
    ++series_[series].staged;
    ++staged_events_;
    staged_bytes_ += size_of(staged.event);
    topic_of(staged.event.topic).staged[staged.event.sequence] = std::move(staged);
  }
}

GatewayBooks::Topic& GatewayBooks::topic_of(const std::string& topic) {
  const auto [entry, is_new] = series_[series_key(topic)].topics.try_emplace(topic);
  if (is_new) {
    entry->second.last = outbox_.last_sequence(topic);
    committed_ += entry->second.last;
  }
  return entry->second;
}

const GatewayBooks::Topic* GatewayBooks::find_topic(const std::string& topic) const {
  const auto series = series_.find(series_key(topic));
  if (series == series_.end()) return nullptr;
  const auto entry = series->second.topics.find(topic);
  return entry == series->second.topics.end() ? nullptr : &entry->second;
}

const SeriesTenure* GatewayBooks::tenure(const std::string& series) const {
  const auto entry = series_.find(series);
  return entry == series_.end() || !entry->second.tenure ? nullptr : &*entry->second.tenure;
}

std::uint64_t GatewayBooks::highest_fence() const {
  std::uint64_t highest = 0;
  for (const auto& [name, series] : series_)
    if (series.tenure && !is_own_news(name)) highest = std::max(highest, series.tenure->fence);
  return highest;
}

void GatewayBooks::set_tenure(const std::string& series, const SeriesTenure& tenure) {
  Series& own = series_[series];
  if (own.tenure == tenure) return;
  own.tenure = tenure;
  notes_.push_back({std::string(kTenure) + series, line_of(tenure)});
}

void GatewayBooks::set_served(const ServingTime& served) {
  if (served_ == served) return;
  served_ = served;
  notes_.push_back({std::string(kServed), text_of(served, outbox_.identity())});
}

std::map<std::uint64_t, GatewayBooks::Staged>::iterator GatewayBooks::unstage(
    Series& series, const std::string& topic, std::map<std::uint64_t, Staged>& staged,
    std::map<std::uint64_t, Staged>::iterator entry) {
  notes_.push_back({staged_key(topic, entry->first), std::nullopt});
  staged_bytes_ -= size_of(entry->second.event);
  --staged_events_;
  --series.staged;
  return staged.erase(entry);
}

bool GatewayBooks::stage(const std::string& series, std::uint64_t fence, const ShippedEvent& event) {
  return stage(series, fence, event, Bounds::own);
}

void GatewayBooks::stage_copy(const std::string& series, const StagedEvent& staged) {
  stage(series, staged.fence, staged.event, Bounds::none);
}

bool GatewayBooks::stage(const std::string& series, std::uint64_t fence, const ShippedEvent& event,
                         Bounds bounds) {
  if (series_key(event.topic) != series) return true;
  Topic& topic = topic_of(event.topic);
  if (event.sequence <= topic.last) return true;
  Series& own = series_[series];
  const auto there = topic.staged.find(event.sequence);
  if (there != topic.staged.end()) {
    Staged& staged = there->second;
    if (!staged.stale && staged.fence > fence) return true;
    // The maker may have said something else since.
    if (!staged.stale && staged.fence == fence && bounds == Bounds::none) return true;
    if (staged.fence == fence && staged.event == event) {
      staged.stale = false;
      return true;
    }
    unstage(own, event.topic, topic.staged, there);
  }
  const std::size_t size = size_of(event);
  const bool is_full =
      own.staged >= options_.staged_of_series || staged_bytes_ + size > options_.staged_bytes;
  if (bounds == Bounds::own && is_full) return false;
  topic.staged[event.sequence] = {fence, event, false};
  ++own.staged;
  ++staged_events_;
  staged_bytes_ += size;
  notes_.push_back(
      {staged_key(event.topic, event.sequence), std::to_string(fence) + ' ' + std::to_string(event.unit) +
                                                    ' ' + std::to_string(event.time) + '\n' + event.body});
  return true;
}

void GatewayBooks::make_stale() {
  for (auto& [name, series] : series_)
    for (auto& [topic, own] : series.topics)
      for (auto& [sequence, staged] : own.staged) staged.stale = true;
}

void GatewayBooks::freshen() {
  for (auto& [name, series] : series_)
    for (auto& [topic, own] : series.topics)
      for (auto& [sequence, staged] : own.staged) staged.stale = false;
}

void GatewayBooks::drop_stale() {
  for (auto& [name, series] : series_)
    for (auto& [topic, own] : series.topics)
      for (auto entry = own.staged.begin(); entry != own.staged.end();)
        entry = entry->second.stale ? unstage(series, topic, own.staged, entry) : std::next(entry);
}

void GatewayBooks::note_episode(Series& series, const std::vector<std::string>& topics,
                                const std::string& body) {
  if (!actors::event_name(body)) return;
  const actors::OutboxNote note = actors::episode_note(topics, body);
  if (note.value) {
    series.notes[note.key] = *note.value;
  } else if (series.notes.erase(note.key) == 0) {
    return;
  }
  notes_.push_back(note);
}

void GatewayBooks::append(Series& series, Topic& topic, const ShippedEvent& event) {
  if (event.sequence != topic.last + 1) {
    // Where it goes on is said before the events of a write.
    if (!events_.empty()) write();
    continuations_.push_back({event.topic, event.sequence - 1});
  }
  events_.push_back(kept(event));
  committed_ += event.sequence - topic.last;
  topic.last = event.sequence;
  for (auto entry = topic.staged.begin(); entry != topic.staged.end() && entry->first <= topic.last;)
    entry = unstage(series, event.topic, topic.staged, entry);
}

SeriesVerdict GatewayBooks::commit(const std::string& series, std::uint64_t fence, const CommitUnit& unit) {
  std::vector<ShippedEvent> events;
  std::vector<std::string> topics;
  for (const EventPoint& place : unit.places) {
    if (series_key(place.topic) != series) return SeriesVerdict::missing;
    topics.push_back(place.topic);
    const Topic& topic = topic_of(place.topic);
    if (place.sequence <= topic.last) continue;
    const auto staged = topic.staged.find(place.sequence);
    if (staged == topic.staged.end() || staged->second.stale || staged->second.fence != fence)
      return SeriesVerdict::missing;
    // An offer of the body that was there before may have come last. A maker of a former build does not say.
    if (place.print != 0 && fingerprint(staged->second.event.body) != place.print)
      return SeriesVerdict::missing;
    if (place.sequence != topic.last + 1 && !unit.over_gap) return SeriesVerdict::gap;
    events.push_back(staged->second.event);
  }
  if (events.empty()) return SeriesVerdict::done;
  std::sort(topics.begin(), topics.end());
  Series& own = series_[series];
  note_episode(own, topics, events.front().body);
  for (const ShippedEvent& event : events) {
    Topic& topic = topic_of(event.topic);
    if (event.sequence != topic.last + 1) gaps_.push_back({event.topic, topic.last, event.sequence});
    append(own, topic, event);
  }
  return SeriesVerdict::done;
}

void GatewayBooks::follow(std::span<const ShippedEvent> unit) {
  std::vector<const ShippedEvent*> lacking;
  std::vector<std::string> topics;
  for (const ShippedEvent& event : unit) {
    if (series_key(event.topic).empty()) return;
    topics.push_back(event.topic);
    if (event.sequence > topic_of(event.topic).last) lacking.push_back(&event);
  }
  if (lacking.empty()) return;
  std::sort(topics.begin(), topics.end());
  Series& own = series_[series_key(unit.front().topic)];
  note_episode(own, topics, lacking.front()->body);
  // Before them: a gap among them has what was gathered written.
  follows_ = true;
  for (const ShippedEvent* event : lacking) {
    append(own, topic_of(event->topic), *event);
    follows_ = true;
  }
}

void GatewayBooks::set_notes(const SeriesCopy& copy) {
  Series& own = series_[copy.series];
  for (const auto& [key, value] : own.notes)
    if (!copy.notes.contains(key)) notes_.push_back({key, std::nullopt});
  for (const auto& [key, value] : copy.notes) {
    const auto there = own.notes.find(key);
    if (there == own.notes.end() || there->second != value) notes_.push_back({key, value});
  }
  own.notes = copy.notes;
  note_ahead(own, copy.staged);
}

void GatewayBooks::note_ahead(Series& own, const std::vector<StagedEvent>& staged_there) {
  struct Unit {
    std::vector<std::string> topics;
    std::string body;
  };
  // An episode's events in their order.
  std::map<std::pair<std::string, std::uint64_t>, Unit> ahead;
  for (const auto& [fence, event] : staged_there) {
    const auto name = actors::event_name(event.body);
    if (!name || event.sequence > last(event.topic)) continue;
    Unit& unit = ahead[{name->episode, name->number}];
    if (unit.topics.empty()) {
      // Another body may be staged there.
      const auto committed = event_at(event.topic, event.sequence);
      unit.body = committed ? committed->body : event.body;
    }
    unit.topics.push_back(event.topic);
  }
  for (auto& [name, unit] : ahead) {
    std::sort(unit.topics.begin(), unit.topics.end());
    note_episode(own, unit.topics, unit.body);
  }
}

bool GatewayBooks::has_changes() const {
  return !events_.empty() || !notes_.empty() || !continuations_.empty();
}

void GatewayBooks::write() {
  if (!has_changes()) return;
  const std::uint64_t first = continuations_.empty() ? outbox_.append(events_, notes_)
                                                     : outbox_.continue_from(continuations_, events_, notes_);
  if (follows_) {
    std::vector<std::uint64_t> positions;
    positions.reserve(events_.size());
    for (std::size_t i = 0; i < events_.size(); ++i) positions.push_back(first + i);
    outbox_.acknowledge(positions);
  }
  follows_ = false;
  continuations_.clear();
  events_.clear();
  notes_.clear();
}

std::optional<ShippedEvent> GatewayBooks::event_at(const std::string& topic, std::uint64_t sequence) const {
  const auto position = outbox_.position_of(topic, sequence);
  if (!position) return std::nullopt;
  actors::ReplayQuery query;
  query.topics = {topic};
  query.after = *position - 1;
  query.max_events = query.max_scanned = 1;
  const actors::Replay found = outbox_.replay(query);
  if (found.events.empty() || found.events.front().topic != topic ||
      found.events.front().sequence != sequence)
    return std::nullopt;
  return shipped(found.events.front());
}

void GatewayBooks::tell(const std::string& series, ClaimAnswer& answer) const {
  const auto entry = series_.find(series);
  if (entry == series_.end()) return;
  for (const auto& [name, topic] : entry->second.topics) {
    if (topic.last > 0) {
      ShippedEvent event{name, topic.last, 0, {}, 0};
      if (auto there = event_at(name, topic.last)) event = std::move(*there);
      answer.last.push_back(std::move(event));
    }
    for (const auto& [sequence, staged] : topic.staged)
      if (!staged.stale) answer.staged.push_back({staged.fence, staged.event});
  }
  answer.notes = entry->second.notes;
}

SeriesCopy GatewayBooks::copy(const std::string& series) const {
  SeriesCopy copy;
  copy.series = series;
  const auto entry = series_.find(series);
  if (entry == series_.end()) return copy;
  if (entry->second.tenure) copy.tenure = *entry->second.tenure;
  for (const auto& [name, topic] : entry->second.topics)
    for (const auto& [sequence, staged] : topic.staged)
      if (!staged.stale) copy.staged.push_back({staged.fence, staged.event});
  copy.notes = entry->second.notes;
  return copy;
}

std::vector<std::string> GatewayBooks::series_after(const std::string& series, std::size_t most) const {
  std::vector<std::string> names;
  for (auto entry = series_.upper_bound(series); entry != series_.end() && names.size() < most; ++entry)
    names.push_back(entry->first);
  return names;
}

std::vector<EventPoint> GatewayBooks::topics_after(const std::string& topic, std::size_t most) const {
  // By series, then by topic: a topic names its series.
  std::vector<EventPoint> points;
  for (auto series = series_.lower_bound(topic.empty() ? "" : series_key(topic));
       series != series_.end() && points.size() < most; ++series) {
    const auto& topics = series->second.topics;
    auto entry =
        !topic.empty() && series->first == series_key(topic) ? topics.upper_bound(topic) : topics.begin();
    for (; entry != topics.end() && points.size() < most; ++entry) {
      EventPoint point{entry->first, entry->second.last, 0};
      if (const auto event = event_at(point.topic, point.sequence)) point.print = fingerprint(event->body);
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::uint64_t GatewayBooks::last(const std::string& topic) const {
  const Topic* const own = find_topic(topic);
  return own == nullptr ? 0 : own->last;
}

const ShippedEvent* GatewayBooks::staged(const std::string& topic, std::uint64_t sequence) const {
  const Topic* const own = find_topic(topic);
  if (own == nullptr) return nullptr;
  const auto entry = own->staged.find(sequence);
  return entry == own->staged.end() ? nullptr : &entry->second.event;
}

PointAnswer GatewayBooks::compare(const EventPoint& point) const {
  PointAnswer answer{point.topic, point.sequence, false, 0};
  const Topic* const own = find_topic(point.topic);
  const std::uint64_t there = own == nullptr ? 0 : own->last;
  if (point.sequence > there) {
    const ShippedEvent* const event = staged(point.topic, point.sequence);
    answer.differs = event == nullptr || (point.print != 0 && fingerprint(event->body) != point.print);
  } else if (point.sequence > 0 && point.print != 0) {
    const auto event = event_at(point.topic, point.sequence);
    answer.differs = event && fingerprint(event->body) != point.print;
  }
  answer.next = outbox_.position_of(point.topic, point.sequence + 1).value_or(0);
  return answer;
}

}  // namespace vigil::fleet
