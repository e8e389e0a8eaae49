#include "actors/alerts/alert_desk.h"

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
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].window = window;
    const Observation observation{window->answers.at(i).probability_yes, window->end, window->end_wall};
    if (const auto emission = rules[i].policy.observe(observation)) tell(window, i, *emission);
  }
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
  enqueue({status_topic(*camera), time, [camera, state, reason, time](std::uint64_t sequence) {
             return status_event(*camera, state, reason, sequence, time);
           }});
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
  enqueue({topic, window->end_wall, [this, window, rule, emission, now](std::uint64_t sequence) {
             return alert_event(*window, rule, emission, options_.model, sequence, now);
           }});
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
      OutboxEvent event;
      event.topic = next.topic;
      event.sequence = outbox_.last_sequence(next.topic) + 1;
      event.time = next.time;
      event.body = next.body(event.sequence);
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
