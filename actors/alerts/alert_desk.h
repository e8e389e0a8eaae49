// From answers to events: policy, outbox, topics.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/alerts/alert_policy.h"
#include "actors/alerts/event.h"
#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "actors/messages/data.h"
#include "actors/status/metrics.h"
#include "config/clock.h"

namespace vigil::actors {

/// Every event is written to the outbox before it is published, and published in the order in which it was
/// written. Events that the outbox cannot take, as on a full disk, wait in memory. Not thread-safe.
class AlertDesk {
 public:
  struct Options {
    ModelIdentity model;
    /// How long published events are kept.
    config::Duration retention = config::AlertSettings().retention;
    /// Events that wait in memory at most while the outbox fails; beyond, the oldest are lost, and counted.
    std::size_t backlog = 4096;
  };

  /// What it is given has to outlive it. Call `tick` once to publish what the last process left.
  AlertDesk(Options options, Outbox& outbox, Publisher& publisher, Metrics& metrics,
            const config::Clock& clock);

  void observe(const WindowAnswersPtr& window);

  void status(const CameraPtr& camera, CameraState state, const std::string& reason);

  /// The camera has ended: so have its episodes.
  void end(const CameraPtr& camera);

  /// Retries what waits, serves new subscribers, forgets what is old. To be called regularly.
  void tick();

  /// Events that are not in the outbox yet.
  std::size_t backlog() const { return backlog_.size(); }
  /// Why the outbox fails; empty while it does not.
  const std::string& failure() const { return failure_; }

 private:
  struct Rule {
    AlertPolicy policy;
    /// The last window that was answered: what an episode's end is told with.
    WindowAnswersPtr window;
  };
  struct Waiting {
    std::string topic;
    config::Clock::WallTime time;
    std::function<std::string(std::uint64_t sequence)> body;
  };

  void tell(const WindowAnswersPtr& window, std::size_t rule, const Emission& emission);
  void enqueue(Waiting event);
  void flush();
  void forget_old();

  Options options_;
  Outbox& outbox_;
  Publisher& publisher_;
  Metrics& metrics_;
  const config::Clock& clock_;
  /// By camera; one for each of its rules.
  std::map<std::string, std::vector<Rule>> rules_;
  std::deque<Waiting> backlog_;
  std::string failure_;
  config::Clock::TimePoint prune_at_{};
};

}  // namespace vigil::actors
