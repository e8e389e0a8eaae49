// From answers to events: policy, outbox, topics.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
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
/// written. Events that the outbox cannot take, as on a full disk, wait in memory; so do those that wait for
/// their explanation, and all behind them, but not for long. Not thread-safe.
class AlertDesk {
 public:
  struct Options {
    ModelIdentity model;
    /// How long published events are kept.
    config::Duration retention = config::AlertSettings().retention;
    /// Events that wait in memory at most while the outbox fails; beyond, the oldest are lost, and counted.
    std::size_t backlog = 4096;
    /// How long an alert waits for its explanation; then it is told without.
    config::Duration explanation = std::chrono::seconds(10);
    /// Whether each episode is to have a still and a clip, and how much longer than its window that is.
    struct ClipRoll {
      config::Duration before{0};
      config::Duration after{0};
    };
    std::optional<ClipRoll> evidence = {};
    /// Tells this process's episodes from those of every other, whatever their clocks say.
    std::uint64_t run = 0;
  };

  /// What it is given has to outlive it. Call `tick` once to publish what the last process left, and to end
  /// the episodes that it left open.
  AlertDesk(Options options, Outbox& outbox, Publisher& publisher, Metrics& metrics,
            const config::Clock& clock);

  /// Tells what the answers are worth telling. A window that comes with other rules than the one before ends
  /// the episodes of those that are gone or ask something else now; the others go on.
  void observe(const WindowAnswersPtr& window);

  /// What has to be explained of what was observed since the last call. `explained` is to be called for each.
  std::vector<ExplainRequest> take_requests() { return std::exchange(requests_, {}); }

  /// The text of an answer; nothing if there is none. Of a request that waits no more, it is ignored.
  void explained(std::uint64_t ticket, const std::optional<std::string>& text);

  /// Whether an event of this camera waits for its explanation.
  bool explains(const std::string& camera) const;

  /// Nothing comes after this: tells what waits without the explanations that it waits for, and tries a
  /// failed outbox once more. What cannot be written now is lost with this object; `backlog` counts it.
  void finish();

  /// What was promised since the last call with events whose evidence is pending. `evidence` is to be called
  /// for each.
  std::vector<EvidenceRequest> take_evidence_requests() { return std::exchange(evidence_requests_, {}); }

  /// Tells it: as an `update` of its episode, or as another `end` of one that has ended.
  void evidence(const EvidenceReport& report);

  /// Whether evidence of this camera is promised.
  bool awaits_evidence(const std::string& camera) const;

  /// Tells that what is promised will not be made.
  void give_up_evidence();

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
  /// A rule of a camera, as long as it stays what it is.
  struct Rule {
    std::string topic;
    std::string version;
    AlertPolicy policy;
    /// The last window that was answered, and the rule's place in its camera: what an episode's end is told
    /// with.
    WindowAnswersPtr window;
    std::size_t place = 0;
    /// Of the episode that is told.
    std::string episode;
    Evidence evidence;
    bool held = false;
  };
  struct Watched {
    CameraPtr camera;
    /// One for each of its rules.
    std::vector<Rule> rules;
  };
  struct Waiting {
    std::string topic;
    config::Clock::WallTime time;
    std::function<std::string(std::uint64_t sequence, const std::optional<std::string>& text)> body;
    /// Of the explanation that it waits for.
    std::optional<std::uint64_t> ticket;
    config::Clock::TimePoint until{};
    std::string camera;
    std::optional<std::string> text;
  };

  /// An event of an episode.
  struct Told {
    WindowAnswersPtr window;
    std::size_t place = 0;
    Emission emission;
    std::string episode;
    Evidence evidence;
    bool only_evidence = false;
  };
  /// An episode whose evidence is being made.
  struct Promise {
    std::string camera;
    /// Its end, if it has ended.
    std::optional<Told> end;
  };

  void follow(Watched& watched, const CameraPtr& camera);
  void close(Rule& rule, EndReason reason);
  /// `ticket`: of the explanation that it waits for.
  void tell(Rule& rule, const Emission& emission, std::optional<std::uint64_t> ticket,
            bool only_evidence = false);
  void publish(const Told& told, std::optional<std::uint64_t> ticket);
  void promise_evidence(Rule& rule);
  Rule* find_rule(const std::string& episode);
  void enqueue(Waiting event);
  void recover();
  /// `patient`: leaves an outbox alone that failed a moment ago.
  void flush(bool patient = true);
  void write_and_publish();
  void forget_old();

  Options options_;
  Outbox& outbox_;
  Publisher& publisher_;
  Metrics& metrics_;
  const config::Clock& clock_;
  std::map<std::string, Watched> watched_;
  std::uint64_t episodes_ = 0;
  std::deque<Waiting> backlog_;
  /// Events in the outbox that are not published yet, as far as it was looked at.
  std::size_t written_ = 0;
  std::vector<ExplainRequest> requests_;
  std::uint64_t tickets_ = 0;
  std::vector<EvidenceRequest> evidence_requests_;
  /// By episode.
  std::map<std::string, Promise> promises_;
  bool recovered_ = false;
  std::string failure_;
  config::Clock::TimePoint retry_at_{};
  config::Clock::TimePoint prune_at_{};
};

}  // namespace vigil::actors
