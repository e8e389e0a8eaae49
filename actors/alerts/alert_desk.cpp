#include "actors/alerts/alert_desk.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/alerts/closing.h"
#include "config/fields.h"

namespace vigil::actors {
namespace {

constexpr std::size_t kPublishAtOnce = 256;
constexpr auto kPruneEvery = std::chrono::minutes(1);
// After a failure the outbox is left alone so long: trying again costs it tens of milliseconds.
constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

AlertDesk::AlertDesk(Options options, Outbox& outbox, Publisher& publisher, Metrics& metrics,
                     const config::Clock& clock)
    : options_(std::move(options)),
      outbox_(outbox),
      publisher_(publisher),
      metrics_(metrics),
      clock_(clock) {}

void AlertDesk::observe(const WindowAnswersPtr& window) {
  const config::CameraSettings& camera = *window->camera;
  Watched& watched = watched_[camera.name];
  if (watched.camera != window->camera) follow(watched, window->camera);
  // What is kept for later must not keep the window in the cache.
  auto kept = std::make_shared<WindowAnswers>(*window);
  kept->lease.reset();
  const config::Clock::WallTime now = clock_.wall();
  for (std::size_t i = 0; i < watched.rules.size(); ++i) {
    Rule& rule = watched.rules[i];
    rule.window = kept;
    rule.place = i;
    const auto snoozed_until = camera.snoozed_until(camera.rules[i]);
    const Observation observation{window->answers.at(i).probability_yes, window->end, window->end_wall,
                                  snoozed_until && now < *snoozed_until};
    if (const auto emission = rule.policy.observe(observation)) {
      std::optional<std::uint64_t> ticket;
      if (camera.rules[i].explain && window->lease && emission->phase != Phase::end) {
        ticket = tickets_++;
        requests_.push_back({window, i, *ticket});
      }
      tell(rule, *emission, ticket);
    }
    const auto held = rule.policy.held();
    if (held && !rule.held) metrics_.alert_held(name_of(*held));
    rule.held = held.has_value();
  }
  flush();
}

void AlertDesk::explained(std::uint64_t ticket, const std::optional<std::string>& text) {
  // More than one, if the alert goes to several topics.
  for (Waiting& event : backlog_) {
    if (event.ticket != ticket) continue;
    event.ticket.reset();
    event.text = text;
  }
  flush();
}

bool AlertDesk::explains(const std::string& camera) const {
  return std::any_of(backlog_.begin(), backlog_.end(),
                     [&](const Waiting& event) { return event.ticket && event.camera == camera; });
}

void AlertDesk::finish() {
  for (Waiting& event : backlog_) event.ticket.reset();
  flush(/*patient=*/false);
  publisher_.serve();
}

void AlertDesk::follow(Watched& watched, const CameraPtr& camera) {
  std::vector<Rule> rules;
  for (const config::RuleSettings& settings : camera->rules) {
    std::string topic = alert_topic(*camera, settings);
    std::string version = rule_version(*camera, settings);
    const auto same = std::find_if(watched.rules.begin(), watched.rules.end(), [&](const Rule& rule) {
      return rule.topic == topic && rule.version == version;
    });
    if (same == watched.rules.end()) {
      rules.push_back({.topic = std::move(topic),
                       .version = std::move(version),
                       .policy = AlertPolicy(settings, camera->stream.window),
                       .window = nullptr,
                       .place = 0,
                       .episode = "",
                       .evidence = {},
                       .held = false});
    } else {
      rules.push_back(std::move(*same));
      watched.rules.erase(same);
    }
  }
  for (Rule& gone : watched.rules) close(gone, EndReason::rule_changed);
  watched = {camera, std::move(rules)};
}

void AlertDesk::end(const CameraPtr& camera) {
  const auto entry = watched_.find(camera->name);
  if (entry == watched_.end()) return;
  for (Rule& rule : entry->second.rules) close(rule, EndReason::camera_ended);
  watched_.erase(entry);
  flush();
}

void AlertDesk::close(Rule& rule, EndReason reason) {
  if (const auto emission = rule.policy.close(reason)) tell(rule, *emission, std::nullopt);
}

void AlertDesk::status(const CameraPtr& camera, CameraState state, const std::string& reason) {
  const config::Clock::WallTime time = clock_.wall();
  enqueue({.topic = status_topic(*camera),
           .time = time,
           .body = [camera, state, reason, time](
                       std::uint64_t sequence,
                       const auto&) { return status_event(*camera, state, reason, sequence, time); },
           .ticket = {},
           .until = {},
           .camera = camera->name,
           .text = {}});
  flush();
}

void AlertDesk::tick() {
  flush();
  publisher_.serve();
  if (const std::uint64_t dropped = publisher_.take_dropped()) {
    metrics_.messages_dropped("events", "slow_subscriber", dropped);
  }
  if (clock_.now() >= prune_at_) forget_old();
}

void AlertDesk::tell(Rule& rule, const Emission& emission, std::optional<std::uint64_t> ticket,
                     bool only_evidence) {
  if (emission.phase == Phase::begin) {
    rule.episode = episode_id(
        emission.start, rule.topic + '#' + std::to_string(options_.run) + '#' + std::to_string(episodes_++));
    const config::RuleSettings& settings = rule.window->camera->rules[rule.place];
    metrics_.alert(rule.topic, std::string(config::name_of(settings.severity)));
    rule.evidence = {};
    if (options_.evidence) promise_evidence(rule);
  }
  const Told told{rule.window, rule.place, emission, rule.episode, rule.evidence, only_evidence};
  const auto promise = promises_.find(rule.episode);
  if (emission.phase == Phase::end && promise != promises_.end()) promise->second.end = told;
  publish(told, ticket);
}

void AlertDesk::publish(const Told& told, std::optional<std::uint64_t> ticket) {
  const config::CameraSettings& camera = *told.window->camera;
  const config::Clock::TimePoint now = clock_.now();
  for (std::string& topic : alert_topics(camera, camera.rules[told.place])) {
    enqueue({.topic = std::move(topic),
             .time = told.window->end_wall,
             .body =
                 [this, told, now](std::uint64_t sequence, const auto& text) {
                   return alert_event({*told.window, told.place, told.emission, told.episode, text,
                                       options_.model, told.evidence, told.only_evidence},
                                      sequence, now);
                 },
             .ticket = ticket,
             .until = now + options_.explanation,
             .camera = camera.name,
             .text = {}});
  }
}

// The still shows the window's last frame, which is the newest that has been looked at.
void AlertDesk::promise_evidence(Rule& rule) {
  const WindowAnswers& window = *rule.window;
  const double interval = 1 / window.camera->stream.fps;
  rule.evidence.state = EvidenceState::pending;
  promises_[rule.episode].camera = window.camera->name;
  evidence_requests_.push_back({.camera = window.camera,
                                .rule = window.camera->rules[rule.place].name,
                                .episode = rule.episode,
                                .span = {.from = window.start - config::seconds(options_.evidence->before),
                                         .to = window.end + config::seconds(options_.evidence->after),
                                         .moment = window.end - interval},
                                // When that frame was captured.
                                .moment = window.end_wall});
}

void AlertDesk::evidence(const EvidenceReport& report) {
  const auto entry = promises_.find(report.episode);
  if (entry == promises_.end()) return;
  Promise promise = std::move(entry->second);
  promises_.erase(entry);
  if (promise.end) {
    // It is over, and stays so for whoever reads this.
    ++promise.end->emission.ordinal;
    promise.end->evidence = report.evidence;
    promise.end->only_evidence = true;
    publish(*promise.end, std::nullopt);
  } else if (Rule* rule = find_rule(report.episode)) {
    rule->evidence = report.evidence;
    if (const auto emission = rule->policy.amend()) {
      tell(*rule, *emission, std::nullopt, /*only_evidence=*/true);
    }
  }
  flush();
}

AlertDesk::Rule* AlertDesk::find_rule(const std::string& episode) {
  for (auto& [camera, watched] : watched_) {
    for (Rule& rule : watched.rules) {
      if (rule.episode == episode) return &rule;
    }
  }
  return nullptr;
}

bool AlertDesk::awaits_evidence(const std::string& camera) const {
  return std::any_of(promises_.begin(), promises_.end(),
                     [&](const auto& promise) { return promise.second.camera == camera; });
}

void AlertDesk::give_up_evidence() {
  while (!promises_.empty()) {
    EvidenceReport report{promises_.begin()->first, {}};
    report.evidence.state = EvidenceState::failed;
    report.evidence.reason = "Vigil was stopped before it was made";
    evidence(report);
  }
}

void AlertDesk::enqueue(Waiting event) {
  if (backlog_.size() >= options_.backlog) {
    backlog_.pop_front();
    metrics_.messages_dropped("outbox", "backlog_full", 1);
  }
  backlog_.push_back(std::move(event));
}

// Before anything else is written: what the last process had open ends, and what it told last is known again.
void AlertDesk::recover() {
  std::deque<Waiting> ends;
  const config::Clock::WallTime now = clock_.wall();
  const std::vector<OutboxEvent> events = outbox_.last_events(kLookBack);
  for (auto first = events.begin(); first != events.end();) {
    const auto end_of_topic = std::find_if(
        first, events.end(), [&](const OutboxEvent& event) { return event.topic != first->topic; });
    publisher_.remember(*std::prev(end_of_topic));
    for (OutboxEvent& last : last_of_each_episode({first, end_of_topic})) {
      if (!closing_event(last, last.sequence + 1, now)) continue;
      Waiting end;
      end.topic = last.topic;
      end.time = now;
      end.body = [last = std::move(last), now](std::uint64_t sequence, const std::optional<std::string>&) {
        return closing_event(last, sequence, now).value();
      };
      ends.push_back(std::move(end));
    }
    first = end_of_topic;
  }
  backlog_.insert(backlog_.begin(), std::make_move_iterator(ends.begin()),
                  std::make_move_iterator(ends.end()));
  recovered_ = true;
}

void AlertDesk::flush(bool patient) {
  if (!patient || failure_.empty() || clock_.now() >= retry_at_) write_and_publish();
  metrics_.outbox_pending(backlog_.size() + written_);
}

void AlertDesk::write_and_publish() {
  try {
    if (!recovered_) recover();
    while (!backlog_.empty()) {
      const Waiting& next = backlog_.front();
      if (next.ticket && clock_.now() < next.until) break;
      OutboxEvent event;
      event.topic = next.topic;
      event.sequence = outbox_.last_sequence(next.topic) + 1;
      event.time = next.time;
      event.body = next.body(event.sequence, next.text);
      outbox_.append(event);
      ++written_;
      backlog_.pop_front();
    }
    for (bool taken = true; taken;) {
      const std::vector<OutboxEvent> events = outbox_.unacknowledged(kPublishAtOnce);
      written_ = events.size();
      taken = !events.empty();
      for (const OutboxEvent& event : events) {
        taken = publisher_.publish(event);
        if (!taken) break;
        --written_;
        outbox_.acknowledge(event.position);
      }
    }
    failure_.clear();
  } catch (const OutboxError& error) {
    metrics_.outbox_failed();
    failure_ = error.what();
    retry_at_ = clock_.now() + kRetryAfter;
  }
}

void AlertDesk::forget_old() {
  prune_at_ = clock_.now() + kPruneEvery;
  try {
    outbox_.prune(clock_.wall() - options_.retention);
  } catch (const OutboxError& error) {
    metrics_.outbox_failed();
    failure_ = error.what();
  }
}

}  // namespace vigil::actors
