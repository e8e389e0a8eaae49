#include "actors/alerts/alert_desk.h"

#include <algorithm>
#include <utility>

#include "config/fields.h"

namespace vigil::actors {
namespace {

constexpr std::size_t kPublishAtOnce = 256;
constexpr auto kPruneEvery = std::chrono::minutes(1);

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
  std::vector<Rule>& rules = rules_[camera.name];
  if (rules.empty()) {
    for (const config::RuleSettings& rule : camera.rules) {
      rules.push_back({AlertPolicy(rule, camera.stream.window), nullptr});
    }
  }
  // What is kept for later must not keep the window in the cache.
  auto kept = std::make_shared<WindowAnswers>(*window);
  kept->lease.reset();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].window = kept;
    const Observation observation{window->answers.at(i).probability_yes, window->end, window->end_wall};
    if (const auto emission = rules[i].policy.observe(observation)) {
      tell(kept, i, *emission);
      if (camera.rules[i].explain && window->lease && emission->phase != Phase::end) {
        Waiting& told = backlog_.back();
        told.ticket = tickets_++;
        told.until = clock_.now() + options_.explanation;
        requests_.push_back({window, i, *told.ticket});
      }
    }
  }
  flush();
}

void AlertDesk::explained(std::uint64_t ticket, std::optional<std::string> text) {
  for (Waiting& event : backlog_) {
    if (event.ticket != ticket) continue;
    event.ticket.reset();
    event.text = std::move(text);
  }
  flush();
}

bool AlertDesk::explains(const std::string& camera) const {
  return std::any_of(backlog_.begin(), backlog_.end(),
                     [&](const Waiting& event) { return event.ticket && event.camera == camera; });
}

void AlertDesk::give_up_explanations() {
  for (Waiting& event : backlog_) event.ticket.reset();
  flush();
}

void AlertDesk::end(const CameraPtr& camera) {
  const auto entry = rules_.find(camera->name);
  if (entry == rules_.end()) return;
  for (std::size_t i = 0; i < entry->second.size(); ++i) {
    if (const auto emission = entry->second[i].policy.close()) tell(entry->second[i].window, i, *emission);
  }
  rules_.erase(entry);
  flush();
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

void AlertDesk::tell(const WindowAnswersPtr& window, std::size_t rule, const Emission& emission) {
  const config::RuleSettings& settings = window->camera->rules[rule];
  const std::string topic = alert_topic(*window->camera, settings);
  if (emission.phase == Phase::begin) metrics_.alert(topic, std::string(config::name_of(settings.severity)));
  const config::Clock::TimePoint now = clock_.now();
  enqueue({.topic = topic,
           .time = window->end_wall,
           .body =
               [this, window, rule, emission, now](std::uint64_t sequence, const auto& text) {
                 return alert_event(*window, rule, emission, text, options_.model, sequence, now);
               },
           .ticket = {},
           .until = {},
           .camera = window->camera->name,
           .text = {}});
}

void AlertDesk::enqueue(Waiting event) {
  if (backlog_.size() >= options_.backlog) {
    backlog_.pop_front();
    metrics_.messages_dropped("outbox", "backlog_full", 1);
  }
  backlog_.push_back(std::move(event));
}

void AlertDesk::flush() {
  try {
    while (!backlog_.empty()) {
      const Waiting& next = backlog_.front();
      if (next.ticket && clock_.now() < next.until) break;
      OutboxEvent event;
      event.topic = next.topic;
      event.sequence = outbox_.last_sequence(next.topic) + 1;
      event.time = next.time;
      event.body = next.body(event.sequence, next.text);
      outbox_.append(event);
      backlog_.pop_front();
    }
    for (bool taken = true; taken;) {
      const std::vector<OutboxEvent> events = outbox_.unacknowledged(kPublishAtOnce);
      metrics_.outbox_pending(events.size());
      taken = !events.empty();
      for (const OutboxEvent& event : events) {
        taken = publisher_.publish(event.topic, event.sequence, event.body);
        if (!taken) break;
        outbox_.acknowledge(event.position);
      }
    }
    failure_.clear();
  } catch (const OutboxError& error) {
    metrics_.outbox_failed();
    failure_ = error.what();
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
