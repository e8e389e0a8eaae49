#include "cluster/topics/follower.h"

#include <algorithm>
#include <utility>

#include "base/one_line.h"
#include "base/timestamp.h"

namespace vigil::cluster {
namespace {

using std::chrono::milliseconds;

// Live events that are read before the entries that they made are given out.
constexpr int kEventsAtOnce = 256;
// While a query cannot be sent, and after one that was refused.
constexpr auto kPause = milliseconds(200);
// So many patiences one gateway is followed that replays nothing when none does.
constexpr int kRounds = 12;

std::string plural(std::uint64_t count) {
  return count == 1 ? "1 event" : std::to_string(count) + " events";
}

}  // namespace

std::optional<Since> parse_since(std::string_view text, base::Clock::WallTime now) {
  if (const auto time = base::parse_rfc3339(text)) return Since{*time};
  if (const auto ago = base::parse_duration(text)) {
    // Nothing is older than 1970, and the clock's nanoseconds do not reach back much further.
    const auto age = std::chrono::duration_cast<base::Duration>(now.time_since_epoch());
    return Since{now - std::min(*ago, age)};
  }
  if (const auto sequence = parse_number(text)) return Since{*sequence};
  return std::nullopt;
}

// What a server bounds: a query's topics and bytes (replay.cpp), and those of a subscription and of all that
// a connection sends in its life (topics.cpp), with room for connecting again.
std::optional<std::string> topics_fault(const std::vector<std::string>& topics) {
  constexpr std::size_t kBytes = 1000;
  constexpr std::size_t kBytesOfAll = 8 << 10;
  if (topics.size() > kQueryTopics)
    return std::to_string(topics.size()) +
           " topics are more than a server takes: " + std::to_string(kQueryTopics) +
           "; a beginning stands for all that begin so";
  std::size_t bytes = 0;
  for (const std::string& topic : topics) {
    if (topic.size() > kBytes) return "a topic has 1000 bytes at most, not " + std::to_string(topic.size());
    bytes += topic.size();
  }
  if (bytes > kBytesOfAll)
    return "topics have 8 KiB together at most, not " + std::to_string(bytes) + " bytes";
  return std::nullopt;
}

Follower::Follower(Options options, const base::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      begun_(clock.wall()),
      ledger_({.last_values = !options_.since, .fleet = !options_.others.empty()}) {
  gateways_.push_back({options_.endpoint, options_.replay, options_.curve});
  gateways_.insert(gateways_.end(), options_.others.begin(), options_.others.end());
  told_.resize(gateways_.size());
  // What makes no sense is told before anything is followed.
  for (at_ = gateways_.size(); at_ > 0;) {
    --at_;
    connect();
  }
}

void Follower::connect() {
  events_.reset();
  replay_.reset();
  // Where it goes on, the last events of topics have to be no older than the position where it begins; unless
  // nobody tells one.
  early_ = ledger_.moved() && tried_all();
  if (!ledger_.moved() || early_) subscribe();
  replay_.emplace(ReplayClient::Options{.endpoint = gateway().replay, .curve = gateway().curve});
  connected_ = false;
  unsure_ = true;
  refused_ = false;
  asked_.reset();
  ask_at_ = {};
  unanswered_since_.reset();
  answered_ = silent_since_ = away_since_ = clock_.now();
}

void Follower::subscribe() {
  connected_ = false;
  away_since_ = clock_.now();
  events_.emplace(TopicSubscriber::Options{
      .endpoint = gateway().endpoint, .prefixes = options_.topics, .curve = gateway().curve});
}

std::optional<Follower::Entry> Follower::next(base::Duration timeout) {
  const base::Clock::TimePoint until = clock_.now() + timeout;
  for (;;) {
    if (auto entry = take()) return entry;
    hear_connections();
    hear_answers();
    hear_events();
    ask_if_needed();
    lose_patience();
    if (auto entry = take()) return entry;
    const base::Clock::TimePoint now = clock_.now();
    if (now >= until) return std::nullopt;
    const auto wait = std::min(std::chrono::ceil<base::Duration>(until - now), nap());
    std::vector<zmq::pollitem_t> items = {
        zmq::pollitem_t{replay_->socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{replay_->connection().socket().handle(), 0, ZMQ_POLLIN, 0}};
    if (events_) {
      items.push_back({events_->socket().handle(), 0, ZMQ_POLLIN, 0});
      items.push_back({events_->connection().socket().handle(), 0, ZMQ_POLLIN, 0});
    }
    zmq::poll(items.data(), items.size(), wait);
  }
}

/// How long nothing is due but what the sockets tell.
base::Duration Follower::nap() const {
  if (is_waiting() || !connected_) return kPause;
  const auto quiet = clock_.now() - answered_;
  return std::max<base::Duration>(kPause, std::chrono::ceil<base::Duration>(options_.heartbeat - quiet));
}

std::optional<Follower::Entry> Follower::take() {
  if (!notices_.empty()) {
    Notice notice = std::move(notices_.front());
    notices_.pop_front();
    return notice;
  }
  auto entry = ledger_.take();
  if (!entry) return std::nullopt;
  if (auto* message = std::get_if<TopicMessage>(&*entry)) return std::move(*message);
  if (const auto* missed = std::get_if<Missed>(&*entry)) {
    return Notice{plural(missed->count) + " of " + base::one_line(missed->topic) +
                  " cannot be replayed and will be missing"};
  }
  return Notice{gateway().endpoint +
                " has another outbox than before: its events are counted anew, and all "
                "that it keeps is read"};
}

void Follower::hear_connections() {
  const std::string& endpoint = gateway().endpoint;
  Told& told = told_[at_];
  bool begins_anew = false;
  while (const auto event = events_ ? events_->connection().take() : std::nullopt) {
    switch (*event) {
      case ConnectionEvent::up:
        connected_ = was_connected_ = true;
        silent_since_ = clock_.now();
        if (told.lost || std::exchange(connected_to_, at_) != at_)
          notices_.push_back({"connected to " + endpoint});
        told.lost = told.refused = told.failed = false;
        break;
      case ConnectionEvent::lost:
        // Another process may answer with the next one, before it is known that its positions are others.
        begins_anew = begins_anew || (connected_ && gateways_.size() > 1);
        if (connected_) away_since_ = clock_.now();
        connected_ = false;
        if (!told.refused && !told.failed) {
          tell(told.lost, "no connection to " + endpoint +
                              (gateways_.size() > 1 ? "; then the next one is followed"
                                                    : "; it is tried again and again"));
        }
        break;
      case ConnectionEvent::refused:
        connected_ = false;
        tell(told.refused, endpoint + " does not let this key in");
        break;
      case ConnectionEvent::failed:
        connected_ = false;
        tell(told.failed,
             endpoint + (gateway().curve
                             ? " does not have this server key, or no keys at all, or takes no more "
                               "connections from here"
                             : " wants keys (--server-key and --key-file), or is no Vigil"));
        break;
    }
    unsure_ = true;
  }
  if (begins_anew) {
    ledger_.move();
    return connect();
  }
  // A query or its answer may have got lost with a connection.
  while (replay_->connection().take()) {
    asked_.reset();
    unsure_ = true;
  }
}

void Follower::hear_events() {
  for (int i = 0; i < kEventsAtOnce && events_; ++i) {
    auto message = events_->receive(milliseconds(0));
    if (!message) return;
    if (ledger_.waiting() == 0) silent_since_ = std::max(silent_since_, clock_.now());
    ledger_.live(std::move(*message));
  }
}

void Follower::hear_answers() {
  while (auto answer = replay_->take_answer()) {
    asked_.reset();
    answered_ = clock_.now();
    Told& told = told_[at_];
    if (const auto* refusal = std::get_if<ReplayRefusal>(&*answer)) {
      tell(told.unavailable, "no replay from " + gateway().replay + ": " + refusal->reason);
      unsure_ = refused_ = true;
      ask_at_ = clock_.now() + kPause;
    } else {
      silent_since_ = clock_.now();
      unanswered_since_.reset();
      left_ = 0;
      refused_ = false;
      told.silent = told.unavailable = told.mute = false;
      const ReplayPage& page = std::get<ReplayPage>(*answer);
      const bool moved = asked_for_gap_ ? ledger_.gap_page(page) : ledger_.page(page);
      if (moved) return connect();
      // Who reads the past there needs its events later only.
      if (ledger_.behind()) away_since_ = clock_.now();
      if (ledger_.begun() && (!events_ || std::exchange(early_, false))) subscribe();
    }
  }
}

void Follower::ask_if_needed() {
  const base::Clock::TimePoint now = clock_.now();
  if (asked_ && now - *asked_ < options_.ask_again) return;
  if (!ledger_.behind() && !unsure_ && now - answered_ < options_.heartbeat) return;
  if (now < ask_at_) return;
  const Gap* const gap = ledger_.gap();
  if (replay_->ask(gap != nullptr ? query_of(*gap) : query())) {
    asked_ = now;
    asked_for_gap_ = gap != nullptr;
    // What may have been missed, a gap's answer does not tell.
    if (gap == nullptr) unsure_ = false;
  } else {
    ask_at_ = now + kPause;
  }
}

ReplayQuery Follower::query_of(const Gap& gap) const {
  ReplayQuery query;
  query.topics = {gap.topic};
  query.after = gap.after.value_or(0);
  const auto* const number = options_.since ? std::get_if<std::uint64_t>(&options_.since->begin) : nullptr;
  if (!gap.after) query.from = gap.from.value_or(number != nullptr ? *number : 1);
  if (gap.from || number != nullptr) return query;
  // A topic that may be as old as any: only what is wanted of it.
  const auto* const time =
      options_.since ? std::get_if<base::Clock::WallTime>(&options_.since->begin) : nullptr;
  const base::Clock::WallTime begin = time != nullptr ? *time : begun_;
  query.since_ms = std::chrono::duration_cast<milliseconds>(begin.time_since_epoch()).count();
  return query;
}

ReplayQuery Follower::query() const {
  ReplayQuery query;
  query.topics = options_.topics;
  query.after = ledger_.cursor();
  if (ledger_.begun() || ledger_.moved() || !options_.since) return query;
  if (const auto* time = std::get_if<base::Clock::WallTime>(&options_.since->begin)) {
    query.since_ms = std::chrono::duration_cast<milliseconds>(time->time_since_epoch()).count();
  } else if (!query.after) {
    query.from = std::get<std::uint64_t>(options_.since->begin);
  }
  // From the beginning.
  if (!query.after) query.after = 0;
  return query;
}

void Follower::lose_patience() {
  note_waiting();
  if (is_worth_leaving()) return go_on();
  if (ledger_.waiting() == 0 || !connected_ || clock_.now() - silent_since_ < options_.patience) return;
  tell(told_[at_].silent, "no replay from " + gateway().replay + ": what was missed cannot be filled in");
  ledger_.give_up();
}

/// Time counts from what was to be answered, not from what happened last: between two questions there may be
/// nothing to hear.
void Follower::note_waiting() {
  if (!is_waiting()) {
    unanswered_since_.reset();
  } else if (!unanswered_since_) {
    unanswered_since_ = clock_.now();
  }
}

/// Whether this gateway has let nobody in, or not answered, for too long.
bool Follower::is_worth_leaving() const {
  const base::Clock::TimePoint now = clock_.now();
  if (gateways_.size() == 1) return false;
  // Where one lets in and none replays, events are shown as they come, and others are tried now and then.
  const auto patience = options_.patience * (connected_ && tried_all() ? kRounds : 1);
  return (events_ && !connected_ && now - away_since_ >= patience) ||
         (unanswered_since_ && now - *unanswered_since_ >= patience);
}

void Follower::go_on() {
  Told& told = told_[at_];
  if (!told.lost && !told.refused && !told.failed && !told.unavailable)
    tell(told.mute, (events_ && !connected_ ? gateway().endpoint : gateway().replay) +
                        " does not answer; then the next one is followed");
  at_ = (at_ + 1) % gateways_.size();
  ++left_;
  ledger_.move();
  connect();
}

void Follower::tell(bool& told, const std::string& text) {
  if (!told) notices_.push_back({base::one_line(text)});
  told = true;
}

}  // namespace vigil::cluster
