// From answers to events: policy, outbox, topics.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/alert_policy.h"
#include "actors/alerts/closing.h"
#include "actors/alerts/event.h"
#include "actors/alerts/event_queue.h"
#include "actors/alerts/evidence_promises.h"
#include "actors/alerts/handover.h"
#include "actors/alerts/held_news.h"
#include "actors/alerts/left_events.h"
#include "actors/alerts/open_episodes.h"
#include "actors/alerts/outbox.h"
#include "actors/alerts/outbox_publishing.h"
#include "actors/alerts/publisher.h"
#include "actors/alerts/series_claims.h"
#include "actors/messages/data.h"
#include "actors/status/metrics.h"
#include "base/clock.h"

namespace vigil::actors {

/// Every event is written to the outbox before it is published, on all its topics at once, and published in
/// the order in which it was written. Events that the outbox cannot take, as on a full disk, wait in memory;
/// so do those that wait for their explanation, and those of the same rule behind them, but not for long. Not
/// thread-safe.
class AlertDesk {
 public:
  struct Options {
    ModelIdentity model;
    /// How long published events are kept.
    base::Duration retention = config::AlertSettings().retention;
    /// Events that wait in memory at most while the outbox fails; beyond, the oldest are lost, and counted.
    std::size_t backlog = 4096;
    /// How long an alert waits for its explanation; then it is told without.
    base::Duration explanation = kExplanationPatience;
    /// Whether each episode is to have a still and a clip, and how much longer than its window that is.
    struct ClipRoll {
      base::Duration before{0};
      base::Duration after{0};
    };
    std::optional<ClipRoll> evidence = {};
    /// Tells this process's episodes from those of every other, whatever their clocks say.
    std::uint64_t run = 0;
    /// The name that this process tells of itself under; empty if it does not.
    std::string process = {};
    /// Where alerts go, as far as that is known at the start: for the outbox of a program that wrote each
    /// copy of an event by itself.
    SharedTopics topics = {};
    /// What is taken in waits for `flush` or `tick`, unless there is too much of it, so that what comes
    /// together is written together. Otherwise each call writes what it takes in.
    bool gather = false;
    /// Series have one maker after the other: what is of one waits until `take_over`, and an episode that is
    /// open when its camera ends is its next owner's.
    bool claims = false;
  };

  /// What it is given has to outlive it. Call `tick` once to publish what the last process left, and to end
  /// the episodes that it left open.
  AlertDesk(Options options, Outbox& outbox, Publisher& publisher, Metrics& metrics,
            const base::Clock& clock);

  /// Tells what the answers are worth telling. A window that comes with other rules than the one before ends
  /// the episodes of those that are gone or ask something else now; the others go on.
  void observe(const WindowAnswersPtr& window);

  /// What has to be explained of what was observed since the last call. `explained` is to be called for each.
  struct Request {
    WatchPtr watch;
    Explain explain;
    WindowAnswersPtr window;
  };
  std::vector<Request> take_requests() { return std::exchange(requests_, {}); }

  /// The text of an answer; nothing if there is none. Of a request that waits no more, it is ignored.
  void explained(std::uint64_t ticket, const std::optional<std::string>& text);

  /// Whether an event of this camera waits for its explanation.
  bool explains(const std::string& camera) const { return queue_.explains(camera); }

  /// Nothing comes after this: tells what waits without the explanations that it waits for, then that this
  /// process is offline, and tries a failed outbox once more. What cannot be written now is lost with this
  /// object; `backlog` counts it.
  void finish();

  /// What was promised since the last call with events whose evidence is pending. `evidence` is to be called
  /// for each.
  std::vector<EvidenceRequest> take_evidence_requests() { return std::exchange(evidence_requests_, {}); }

  /// Tells it: as an `update` of its episode, or as another `end` of one that has ended.
  void evidence(const EvidenceReport& report);

  /// Whether evidence of this camera is promised.
  bool awaits_evidence(const std::string& camera) const { return promises_.has(camera); }

  /// Tells that what is promised will not be made.
  void give_up_evidence();

  void status(const WatchPtr& watch, CameraState state, const std::string& reason);

  /// The camera has ended: so have its episodes, unless somebody else goes on with it (`Options::claims`).
  void end(const std::string& camera);

  /// Windows that were done with since the last call, behind the requests for them: under `Options::claims`
  /// they wait for their series.
  std::vector<WindowAnswersPtr> take_observed() { return std::exchange(observed_, {}); }

  // What follows is of series that are claimed.

  /// What is wanted since the last call: there is something to tell of it. Without a name, the process's own,
  /// with fence 0.
  std::vector<SeriesClaims::Claim> take_claims();
  /// Of a series that is wanted, with its fence; others are ignored. With the next `flush`, what waits of it
  /// goes on where the books end.
  void take_over(SeriesBooks books);
  /// Whether news are held until their series' books are there, as far as the outbox works.
  bool waits_for_books() const { return held_.size() > 0 && failure_.empty(); }
  /// Nobody else is waited for any more: what is held is claimed now, but of cameras that connect alone.
  void claim_held();
  /// Whether that is still to be done.
  bool takes_over() const { return !books_.empty() || !losses_.empty(); }
  /// Somebody has the series with a higher fence: what waits of it is dropped, and nothing is told.
  void lost(const std::string& camera, std::uint64_t fence);
  /// Events that were dropped since the last call since others have their cameras, and of which cameras;
  /// answers and states that got no number yet are counted among them.
  struct GivenUp {
    std::size_t events = 0;
    std::set<std::string> cameras;
    /// "a, b, c and 3 more".
    std::string who() const;
  };
  GivenUp take_given_up() { return std::exchange(given_up_, {}); }
  /// Nobody goes on with this camera: its end, before or after this, is that of its episodes.
  void removed(const std::string& camera);

  /// Writes what waits and may be written, alerts first, and publishes it. What gathers, in one append: then
  /// this is true if there is more, so that the caller can take in what has come meanwhile.
  bool flush() { return flush(/*patient=*/true, /*all=*/!options_.gather); }

  /// What waits for its text waits no longer.
  void let_go() { queue_.let_go(); }

  /// After `finish`: events that will be gone with the process.
  const Outbox::Passing& lost() const { return lost_; }

  /// Retries what waits, serves new subscribers, forgets what is old. To be called regularly.
  void tick();

  /// Events that are not in the outbox yet, each copy counted.
  std::size_t backlog() const { return queue_.size(); }
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
    std::vector<std::string> topics;
    Evidence evidence;
    bool held = false;
    /// What was told last of an episode that somebody else has begun; counts while there is no window.
    OutboxEvent resumed;
  };
  struct Watched {
    WatchPtr watch;
    /// One for each of its rules.
    std::vector<Rule> rules;
  };
  EventQueue::Options queue_options() const;
  void run(const WindowAnswersPtr& window, bool explainable);
  /// Tries the outbox for the last time.
  void note_losses();
  void follow(Watched& watched, const WatchPtr& watch);
  void close(Rule& rule, EndReason reason);
  /// `ticket`: of the explanation that it waits for.
  void tell(Rule& rule, const Emission& emission, std::optional<std::uint64_t> ticket,
            bool only_evidence = false);
  void publish(const Told& told, std::optional<std::uint64_t> ticket);
  void promise_evidence(Rule& rule);
  Rule* find_rule(const std::string& episode);
  void enqueue(WaitingEvent event);
  void recover();
  void resolve_doubt();
  void tell_state(const WatchPtr& watch, CameraState state, const std::string& reason,
                  base::Clock::WallTime time);
  // In alert_handover.cpp.
  bool may_tell(const WatchPtr& watch);
  void hold(HeldNews::News news);
  void claim_long_held();
  bool is_news(const std::string& camera, CameraState state);
  void recover_claims();
  void settle_claims();
  void settle_losses();
  void settle(const SeriesBooks& books, const std::vector<OutboxEvent>& waiting,
              const std::vector<OutboxEvent>& last);
  void begin_tenure(const std::string& camera, const Handover& handover);
  void begin_own(const Handover& handover);
  void resume(Watched& watched, const OpenEpisode& open, bool own);
  void end_resumed(const std::vector<std::string>& topics, const OutboxEvent& last, const Closing& why);
  void tell_text(const std::vector<std::string>& topics, base::Clock::WallTime time,
                 std::function<std::string(const EventDraft&)> body);
  void tell_removed(const std::string& camera);
  void end_for_good(const std::string& camera);
  void drop_all(const std::string& camera);
  void give_up(const std::string& camera, std::size_t events);
  void forget_left_behind();
  /// Something was taken in.
  void taken_in();
  /// `patient`: leaves an outbox alone that failed a moment ago. Returns whether there is more.
  bool flush(bool patient, bool all);
  /// Both return whether there is more that may be written.
  bool write_and_publish(bool all);
  bool write_batch();
  void written(const EventQueue::Batch& batch);
  /// Notes that are in the outbox now.
  void note(const std::vector<OutboxNote>& notes);
  void forget_old();

  Options options_;
  Outbox& outbox_;
  Publisher& publisher_;
  Metrics& metrics_;
  const base::Clock& clock_;
  std::map<std::string, Watched> watched_;
  std::uint64_t episodes_ = 0;
  EventQueue queue_;
  /// What an append that failed may have kept or not.
  std::optional<EventQueue::Batch> doubtful_;
  /// What the outbox of this identity has: one that takes its place gets them again.
  std::map<std::string, std::string> notes_;
  std::string noted_in_;
  OutboxPublishing publishing_;
  std::vector<Request> requests_;
  std::uint64_t tickets_ = 0;
  std::vector<EvidenceRequest> evidence_requests_;
  EvidencePromises promises_;
  std::optional<SeriesClaims> claims_;
  HeldNews held_;
  std::vector<WindowAnswersPtr> observed_;
  std::vector<SeriesBooks> books_;
  struct Loss {
    std::string camera;
    /// Of its events in the outbox, so many are counted already.
    std::size_t counted = 0;
  };
  std::vector<Loss> losses_;
  GivenUp given_up_;
  /// By camera: the newest settings that are known, and the state that was told last, by whomever.
  std::map<std::string, WatchPtr> known_;
  std::map<std::string, std::string> told_;
  /// Cameras of which a former owner told the last state.
  std::set<std::string> told_before_;
  /// Cameras that have ended, and those that nobody goes on with.
  std::set<std::string> left_;
  std::set<std::string> removed_;
  /// Of this outbox: what was there before, and waits for its series' books.
  LeftEvents left_events_;
  std::string claimed_in_;
  bool told_online_ = false;
  bool recovered_ = false;
  bool finished_ = false;
  Outbox::Passing lost_;
  std::string failure_;
  base::Clock::TimePoint retry_at_{};
  base::Clock::TimePoint prune_at_{};
};

}  // namespace vigil::actors
