#include "actors/alerts/alert_desk.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "actors/alerts/process_news.h"
#include "actors/messages/topic.h"
#include "config/schema/fields.h"

namespace vigil::actors {
namespace {

// So much is not left waiting for `flush`.
constexpr std::size_t kGatherAtMost = 256;
constexpr auto kPruneEvery = std::chrono::minutes(1);
// After a failure the outbox is left alone so long: trying again costs it tens of milliseconds.
constexpr auto kRetryAfter = std::chrono::seconds(1);

}  // namespace

AlertDesk::AlertDesk(Options options, Outbox& outbox, Publisher& publisher, Metrics& metrics,
                     const base::Clock& clock)
    : options_(std::move(options)),
      outbox_(outbox),
      publisher_(publisher),
      metrics_(metrics),
      clock_(clock),
      queue_(queue_options()),
      publishing_(outbox, publisher),
      held_(options_.backlog) {
  if (options_.claims) claims_.emplace();
}

EventQueue::Options AlertDesk::queue_options() const {
  EventQueue::Options options;
  options.most = options_.backlog;
  if (options_.claims)
    options.may_write = [this](const std::string& camera) { return claims_->holds(camera); };
  return options;
}

void AlertDesk::observe(const WindowAnswersPtr& window) {
  left_.erase(window->watch->name);
  if (!claims_ || may_tell(window->watch)) {
    run(window, /*explainable=*/true);
  } else {
    hold({.camera = window->watch->name, .since = clock_.now(), .window = window});
  }
  taken_in();
}

void AlertDesk::run(const WindowAnswersPtr& window, bool explainable) {
  const std::vector<config::RuleSettings>& rules = window->watch->rules;
  Watched& watched = watched_[window->watch->name];
  if (watched.watch != window->watch) follow(watched, window->watch);
  const base::Clock::WallTime now = clock_.wall();
  for (std::size_t i = 0; i < watched.rules.size(); ++i) {
    Rule& rule = watched.rules[i];
    rule.window = window;
    rule.place = i;
    const auto snoozed_until = rules[i].snooze_until;
    const Observation observation{window->answers.at(i).probability_yes, window->end, window->end_wall,
                                  snoozed_until && now < *snoozed_until};
    if (const auto emission = rule.policy.observe(observation)) {
      std::optional<std::uint64_t> ticket;
      if (explainable && rules[i].explain && window->id && emission->phase != Phase::end) {
        ticket = tickets_++;
        requests_.push_back({window->watch, {*window->id, static_cast<std::uint32_t>(i), *ticket}, window});
      }
      tell(rule, *emission, ticket);
    }
    const auto held = rule.policy.held();
    if (held && !rule.held) metrics_.alert_held(name_of(*held));
    rule.held = held.has_value();
  }
  observed_.push_back(window);
}

void AlertDesk::explained(std::uint64_t ticket, const std::optional<std::string>& text) {
  queue_.explained(ticket, text);
  taken_in();
}

void AlertDesk::finish() {
  queue_.let_go();
  if (!finished_ && !options_.process.empty()) {
    WaitingEvent offline =
        noted_news({options_.process, ProcessState::offline, "stopped", ""}, clock_.wall(), outbox_);
    // Nothing of this process comes after it.
    offline.urgent = false;
    enqueue(std::move(offline));
  }
  finished_ = true;
  flush(/*patient=*/false, /*all=*/true);
  // Until the publisher has room for no more, and then what that left.
  for (std::size_t left = publishing_.waiting() + 1;
       publishing_.waiting() > 0 && publishing_.waiting() < left && failure_.empty();) {
    left = publishing_.waiting();
    publisher_.drain();
    flush(/*patient=*/false, /*all=*/true);
  }
  publisher_.serve();
  note_losses();
}

void AlertDesk::note_losses() {
  // Who never was anybody in its fleet, as at a start that is refused, has nothing to tell of itself.
  if (claims_ && !claims_->holds("")) queue_.drop("");
  lost_ = {queue_.size() + held_.size(), failure_};
  if (claims_ && lost_.events > 0 && failure_.empty()) lost_.reason = "nobody said where their series go on";
  try {
    const Outbox::Passing passing = outbox_.finish();
    lost_.events += passing.events;
    if (lost_.reason.empty()) lost_.reason = passing.reason;
  } catch (const OutboxError& error) {
    if (lost_.reason.empty()) lost_.reason = error.what();
  }
}

void AlertDesk::follow(Watched& watched, const WatchPtr& watch) {
  std::vector<Rule> rules;
  for (const config::RuleSettings& settings : watch->rules) {
    std::string topic = alert_topic(*watch, settings);
    std::string version = rule_version(*watch, settings);
    const auto same = std::find_if(watched.rules.begin(), watched.rules.end(), [&](const Rule& rule) {
      return rule.topic == topic && rule.version == version;
    });
    if (same == watched.rules.end()) {
      rules.push_back({.topic = std::move(topic),
                       .version = std::move(version),
                       .policy = AlertPolicy(settings, watch->window),
                       .window = nullptr,
                       .place = 0,
                       .episode = "",
                       .topics = {},
                       .evidence = {},
                       .held = false,
                       .resumed = {}});
    } else {
      rules.push_back(std::move(*same));
      watched.rules.erase(same);
    }
  }
  for (Rule& gone : watched.rules) close(gone, EndReason::rule_changed);
  watched = {watch, std::move(rules)};
}

void AlertDesk::end(const std::string& camera) {
  if (claims_) {
    left_.insert(camera);
    end_for_good(camera);
    return taken_in();
  }
  const auto entry = watched_.find(camera);
  if (entry == watched_.end()) return;
  for (Rule& rule : entry->second.rules) close(rule, EndReason::camera_ended);
  watched_.erase(entry);
  taken_in();
}

void AlertDesk::close(Rule& rule, EndReason reason) {
  const auto emission = rule.policy.close(reason);
  if (!emission) return;
  if (!rule.window) return end_resumed(rule.topics, rule.resumed, {name_of(reason), {}});
  tell(rule, *emission, std::nullopt);
}

void AlertDesk::status(const WatchPtr& watch, CameraState state, const std::string& reason) {
  const base::Clock::WallTime time = clock_.wall();
  if (state != CameraState::down) left_.erase(watch->name);
  if (!claims_ || may_tell(watch)) {
    tell_state(watch, state, reason, time);
  } else {
    hold({.camera = watch->name,
          .since = clock_.now(),
          .watch = watch,
          .state = state,
          .reason = reason,
          .time = time});
  }
  taken_in();
}

void AlertDesk::tell_state(const WatchPtr& watch, CameraState state, const std::string& reason,
                           base::Clock::WallTime time) {
  if (claims_) {
    if (!is_news(watch->name, state)) return;
    told_[watch->name] = name_of(state);
  }
  WaitingEvent event;
  event.topics = {status_topic(*watch)};
  event.time = time;
  event.body = [this, watch, state, reason, time](const EventDraft& draft) {
    return status_event(*watch, state, reason, {outbox_.identity(), draft.sequence}, time);
  };
  event.urgent = false;
  event.camera = watch->name;
  enqueue(std::move(event));
}

void AlertDesk::tick() {
  for (const OutboxNotice& notice : outbox_.take_notices())
    if (!options_.process.empty())
      enqueue(process_news({options_.process, ProcessState::online, notice.reason, notice.text},
                           clock_.wall(), outbox_));
  if (claims_) claim_long_held();
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
    const config::RuleSettings& settings = rule.window->watch->rules[rule.place];
    metrics_.alert(rule.topic, std::string(config::name_of(settings.severity)));
    rule.topics = alert_topics(*rule.window->watch, settings);
    rule.evidence = {};
    if (options_.evidence) promise_evidence(rule);
  }
  const Told told{rule.window, rule.place, emission, rule.episode, rule.topics, rule.evidence, only_evidence};
  if (emission.phase == Phase::end) promises_.ended(told);
  publish(told, ticket);
}

void AlertDesk::publish(const Told& told, std::optional<std::uint64_t> ticket) {
  WaitingEvent event;
  event.topics = told.topics;
  event.time = told.window->end_wall;
  event.body = [this, told](const EventDraft& draft) {
    return alert_event({*told.window, told.place, told.emission, told.episode, draft.text, options_.model,
                        told.evidence, told.only_evidence},
                       draft.sequence, draft.now);
  };
  event.note = [topics = told.topics](const std::string& body) { return episode_note(topics, body); };
  event.ticket = ticket;
  event.until = clock_.now() + options_.explanation;
  event.camera = told.window->watch->name;
  enqueue(std::move(event));
}

// The still shows the window's last frame, which is the newest that has been looked at.
void AlertDesk::promise_evidence(Rule& rule) {
  const WindowAnswers& window = *rule.window;
  const double interval = 1 / window.watch->fps;
  rule.evidence.state = EvidenceState::pending;
  promises_.make(rule.episode, window.watch->name);
  evidence_requests_.push_back({.camera = window.watch->name,
                                .tenant = window.watch->tenant,
                                .rule = window.watch->rules[rule.place].name,
                                .episode = rule.episode,
                                .span = {.from = window.start - base::seconds(options_.evidence->before),
                                         .to = window.end + base::seconds(options_.evidence->after),
                                         .moment = window.end - interval},
                                // When that frame was captured.
                                .moment = window.end_wall});
}

void AlertDesk::evidence(const EvidenceReport& report) {
  auto promise = promises_.settle(report.episode);
  if (!promise) return;
  if (promise->end) {
    // It is over, and stays so for whoever reads this.
    ++promise->end->emission.ordinal;
    promise->end->evidence = report.evidence;
    promise->end->only_evidence = true;
    publish(*promise->end, std::nullopt);
  } else if (Rule* rule = find_rule(report.episode)) {
    rule->evidence = report.evidence;
    if (const auto emission = rule->policy.amend()) {
      tell(*rule, *emission, std::nullopt, /*only_evidence=*/true);
    }
  }
  taken_in();
}

AlertDesk::Rule* AlertDesk::find_rule(const std::string& episode) {
  for (auto& [camera, watched] : watched_) {
    for (Rule& rule : watched.rules) {
      if (rule.episode == episode) return &rule;
    }
  }
  return nullptr;
}

void AlertDesk::give_up_evidence() {
  for (const std::string& episode : promises_.episodes()) {
    EvidenceReport report{episode, {}};
    report.evidence.state = EvidenceState::failed;
    report.evidence.reason = "Vigil was stopped before it was made";
    evidence(report);
  }
}

void AlertDesk::enqueue(WaitingEvent event) {
  const std::size_t lost = queue_.push(std::move(event));
  if (lost > 0) metrics_.messages_dropped("outbox", "backlog_full", lost);
}

// Before anything else is written: what the last process had open ends, and what it told last is known again.
void AlertDesk::recover() {
  if (claims_) return recover_claims();
  const std::vector<OutboxEvent> events = outbox_.last_events(kLookBack);
  notes_ = outbox_.notes();
  noted_in_ = outbox_.identity();
  std::vector<WaitingEvent> first;
  if (auto unsaid = unsaid_news(notes_, clock_.wall(), outbox_)) first.push_back(std::move(*unsaid));
  if (!options_.process.empty())
    first.push_back(
        noted_news({options_.process, ProcessState::online, "start", ""}, clock_.wall(), outbox_));
  for (WaitingEvent& owed :
       unfinished_events(events, notes_, options_.topics, clock_.wall(), outbox_.mark_of_loss()))
    first.push_back(std::move(owed));
  queue_.push_front(std::move(first));
  recovered_ = true;
}

void AlertDesk::taken_in() {
  if (!options_.gather || queue_.size() >= kGatherAtMost) flush();
}

bool AlertDesk::flush(bool patient, bool all) {
  bool more = false;
  if (!patient || failure_.empty() || clock_.now() >= retry_at_) more = write_and_publish(all);
  metrics_.outbox_pending(queue_.size() + publishing_.waiting());
  return more;
}

// Never the same again under another sequence.
void AlertDesk::resolve_doubt() {
  if (!doubtful_) return;
  if (!doubtful_->events.empty() && has_event(outbox_, doubtful_->events.back())) {
    written(*doubtful_);
    for (Loss& loss : losses_)
      loss.counted += static_cast<std::size_t>(
          std::count_if(doubtful_->events.begin(), doubtful_->events.end(),
                        [&](const OutboxEvent& event) { return series_of(event.topic) == loss.camera; }));
  }
  doubtful_.reset();
}

bool AlertDesk::write_batch() {
  resolve_doubt();
  EventQueue::Batch batch =
      queue_.next(clock_.now(), [this](const std::string& topic) { return outbox_.last_sequence(topic); });
  if (batch.empty()) return false;
  const std::string identity = outbox_.identity();
  if (identity != noted_in_) {
    std::vector<OutboxNote> notes;
    notes.reserve(notes_.size());
    for (const auto& [key, value] : notes_) notes.push_back({key, value});
    batch.notes.insert(batch.notes.begin(), notes.begin(), notes.end());
  }
  try {
    outbox_.append(batch.events, batch.notes);
  } catch (const OutboxError&) {
    doubtful_ = std::move(batch);
    throw;
  }
  noted_in_ = identity;
  written(batch);
  return batch.more;
}

void AlertDesk::note(const std::vector<OutboxNote>& notes) {
  for (const OutboxNote& note : notes) {
    if (note.value) {
      notes_[note.key] = *note.value;
    } else {
      notes_.erase(note.key);
    }
  }
}

void AlertDesk::written(const EventQueue::Batch& batch) {
  note(batch.notes);
  publishing_.wrote(batch.events.size());
  queue_.written(batch);
}

bool AlertDesk::write_and_publish(bool all) {
  try {
    outbox_.refresh();
    if (!recovered_) recover();
    publishing_.remember_last();
    if (claims_) settle_claims();
    bool more = write_batch();
    while (all && more) more = write_batch();
    publishing_.publish_written(left_events_.end());
    failure_.clear();
    return more;
  } catch (const OutboxError& error) {
    metrics_.outbox_failed();
    failure_ = error.what();
    retry_at_ = clock_.now() + kRetryAfter;
    return false;
  }
}

void AlertDesk::forget_old() {
  prune_at_ = clock_.now() + kPruneEvery;
  try {
    if (claims_) forget_left_behind();
    outbox_.prune(options_.retention);
  } catch (const OutboxError& error) {
    metrics_.outbox_failed();
    failure_ = error.what();
  }
}

std::string AlertDesk::GivenUp::who() const {
  constexpr std::size_t kNamed = 3;
  std::string text;
  std::size_t named = 0;
  for (auto camera = cameras.begin(); camera != cameras.end() && named < kNamed; ++camera, ++named)
    text += (named == 0 ? "" : ", ") + *camera;
  if (cameras.size() > named) text += " and " + std::to_string(cameras.size() - named) + " more";
  return text.empty() ? "this node itself" : text;
}

}  // namespace vigil::actors
