#include "cluster/topics/follower.h"

#include <algorithm>
#include <array>
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
      events_({.endpoint = options_.endpoint, .prefixes = options_.topics, .curve = options_.curve}),
      replay_({.endpoint = options_.replay, .curve = options_.curve}),
      ledger_({.last_values = !options_.since}),
      answered_(clock.now()),
      silent_since_(clock.now()) {}

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
    const base::Duration nap = ledger_.behind() || unsure_ ? kPause : options_.heartbeat;
    const auto wait = std::min(std::chrono::ceil<base::Duration>(until - now), nap);
    std::array<zmq::pollitem_t, 4> items = {
        zmq::pollitem_t{events_.socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{replay_.socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{events_.connection().socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{replay_.connection().socket().handle(), 0, ZMQ_POLLIN, 0}};
    zmq::poll(items.data(), items.size(), wait);
  }
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
  return Notice{options_.endpoint +
                " has another outbox than before: its events are counted anew, and all "
                "that it keeps is read"};
}

void Follower::hear_connections() {
  while (const auto event = events_.connection().take()) {
    switch (*event) {
      case ConnectionEvent::up:
        connected_ = was_connected_ = true;
        silent_since_ = clock_.now();
        if (told_lost_) notices_.push_back({"connected to " + options_.endpoint});
        told_lost_ = told_refused_ = told_failed_ = false;
        break;
      case ConnectionEvent::lost:
        connected_ = false;
        if (!told_refused_ && !told_failed_) {
          tell(told_lost_, "no connection to " + options_.endpoint + "; it is tried again and again");
        }
        break;
      case ConnectionEvent::refused:
        tell(told_refused_, options_.endpoint + " does not let this key in");
        break;
      case ConnectionEvent::failed:
        tell(told_failed_,
             options_.endpoint + (options_.curve
                                      ? " does not have this server key, or no keys at all, or takes no more "
                                        "connections from here"
                                      : " wants keys (--server-key and --key-file), or is no Vigil"));
        break;
    }
    unsure_ = true;
  }
  // A query or its answer may have got lost with a connection.
  while (replay_.connection().take()) {
    asked_.reset();
    unsure_ = true;
  }
}

void Follower::hear_events() {
  for (int i = 0; i < kEventsAtOnce; ++i) {
    auto message = events_.receive(milliseconds(0));
    if (!message) return;
    if (ledger_.waiting() == 0) silent_since_ = std::max(silent_since_, clock_.now());
    ledger_.live(std::move(*message));
  }
}

void Follower::hear_answers() {
  while (auto answer = replay_.take_answer()) {
    asked_.reset();
    answered_ = clock_.now();
    if (const auto* refusal = std::get_if<ReplayRefusal>(&*answer)) {
      tell(told_unavailable_, "no replay from " + options_.replay + ": " + refusal->reason);
      unsure_ = true;
      ask_at_ = clock_.now() + kPause;
    } else {
      silent_since_ = clock_.now();
      told_silent_ = told_unavailable_ = false;
      ledger_.page(std::get<ReplayPage>(*answer));
    }
  }
}

void Follower::ask_if_needed() {
  const base::Clock::TimePoint now = clock_.now();
  if (asked_ && now - *asked_ < options_.ask_again) return;
  if (!ledger_.behind() && !unsure_ && now - answered_ < options_.heartbeat) return;
  if (now < ask_at_) return;
  if (replay_.ask(query())) {
    asked_ = now;
    unsure_ = false;
  } else {
    ask_at_ = now + kPause;
  }
}

ReplayQuery Follower::query() const {
  ReplayQuery query;
  query.topics = options_.topics;
  query.after = ledger_.cursor();
  if (ledger_.begun() || !options_.since) return query;
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
  if (ledger_.waiting() == 0 || !connected_ || clock_.now() - silent_since_ < options_.patience) return;
  tell(told_silent_, "no replay from " + options_.replay + ": what was missed cannot be filled in");
  ledger_.give_up();
}

void Follower::tell(bool& told, const std::string& text) {
  if (!told) notices_.push_back({base::one_line(text)});
  told = true;
}

}  // namespace vigil::cluster
