// The part of `AlertDesk` that goes on where other makers of its series have ended, and ends where others go
// on.
#include <algorithm>
#include <limits>
#include <utility>

#include "actors/alerts/alert_desk.h"
#include "actors/alerts/process_news.h"
#include "actors/messages/topic.h"

namespace vigil::actors {
namespace {

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
/// How long a camera's state alone waits for its former owner to come to an end: by then a window has come of
/// most, and what was on its way when they moved has been told.
constexpr base::Duration kFormerFirst{2000};
constexpr const char* kMoved = "its camera moved to another node before it was made";
constexpr const char* kStartedAgain = "Vigil was started again before it was made";

}  // namespace

std::vector<SeriesClaims::Claim> AlertDesk::take_claims() {
  return claims_ ? claims_->take() : std::vector<SeriesClaims::Claim>();
}

void AlertDesk::take_over(SeriesBooks books) {
  if (!claims_ || !claims_->fits(books)) return;
  books_.push_back(std::move(books));
  taken_in();
}

/// Whether the series of this camera is held, so that what comes of it can be told at once.
bool AlertDesk::may_tell(const WatchPtr& watch) {
  const std::uint64_t fence = fence_of(watch->version);
  if (fence > claims_->fence(watch->name)) removed_.erase(watch->name);
  const SeriesClaims::Entry entry = claims_->enter(watch->name, fence);
  if (entry != SeriesClaims::Entry::gone) known_[watch->name] = watch;
  return entry == SeriesClaims::Entry::go;
}

void AlertDesk::hold(HeldNews::News news) {
  const std::string camera = news.camera;
  if (claims_->is_lost(camera)) {
    if (news.window) observed_.push_back(std::move(news.window));
    return;
  }
  // One that goes on may turn out to be as it was told to be, and what its former owner has answered last may
  // be on its way still: that is told first, since a claim ends it.
  if (news.window || news.state == CameraState::down || left_events_.contains(camera)) claims_->want(camera);
  auto oldest = held_.push(std::move(news));
  if (!oldest) return;
  metrics_.messages_dropped("outbox", "backlog_full", 1);
  if (oldest->window) observed_.push_back(std::move(oldest->window));
}

void AlertDesk::claim_held() {
  if (!claims_) return;
  for (const std::string& camera : held_.settled_since(clock_.now())) claims_->want(camera);
}

/// Whose state alone waits, of them no window may come.
void AlertDesk::claim_long_held() {
  for (const std::string& camera : held_.settled_since(clock_.now() - kFormerFirst)) claims_->want(camera);
}

/// Whether a state is another one than was told before this tenure. After the first that is, or that says
/// where the camera really is, all are.
bool AlertDesk::is_news(const std::string& camera, CameraState state) {
  if (!told_before_.contains(camera)) return true;
  if (state == CameraState::connecting) return false;
  told_before_.erase(camera);
  return told_.at(camera) != name_of(state);
}

void AlertDesk::recover_claims() {
  notes_ = outbox_.notes();
  noted_in_ = outbox_.identity();
  for (const auto& [camera, fence] : tenures_in(notes_)) claims_->remember(camera, fence);
  if (!options_.process.empty()) {
    enqueue(noted_news({options_.process, ProcessState::online, "start", ""}, clock_.wall(), outbox_));
    claims_->want("");
  }
  recovered_ = true;
}

// After it is known what the last append has kept.
void AlertDesk::settle_claims() {
  resolve_doubt();
  if (claimed_in_ != outbox_.identity()) {
    // What is there already, whoever wrote it, nobody publishes before it is known what it is worth.
    left_events_ = LeftEvents(outbox_);
    claims_->doubt();
    for (const std::string& series : left_events_.series()) claims_->want_former(series);
    claimed_in_ = outbox_.identity();
  }
  settle_losses();
  if (books_.empty()) return;
  // What one series does with its events changes nothing of another's.
  const std::vector<OutboxEvent> own = outbox_.unacknowledged_after(left_events_.end(), kAll);
  const std::vector<OutboxEvent> last = outbox_.last_events(1);
  for (; !books_.empty(); books_.erase(books_.begin())) {
    if (!claims_->fits(books_.front())) continue;
    std::vector<OutboxEvent> waiting = left_events_.read(books_.front().camera, outbox_);
    waiting.insert(waiting.end(), own.begin(), own.end());
    settle(books_.front(), waiting, last);
  }
}

// What the publisher has taken, it has to account for.
void AlertDesk::settle_losses() {
  if (losses_.empty()) return;
  const std::vector<OutboxEvent> own =
      outbox_.unacknowledged_after(std::max(left_events_.end(), publishing_.offered()), kAll);
  for (const Loss& loss : losses_) {
    std::vector<std::uint64_t> positions = left_events_.take(loss.camera);
    for (const OutboxEvent& event : own)
      if (series_of(event.topic) == loss.camera) positions.push_back(event.position);
    if (positions.empty()) continue;
    // It holds here even if it throws.
    give_up(loss.camera, positions.size() - std::min(positions.size(), loss.counted));
    outbox_.acknowledge(positions);
  }
  losses_.clear();
}

void AlertDesk::settle(const SeriesBooks& books, const std::vector<OutboxEvent>& waiting,
                       const std::vector<OutboxEvent>& last) {
  const Handover handover =
      hand_over(books, {.tenure = claims_->former(books.camera),
                        .lived = claims_->lived(books.camera),
                        .unacknowledged = waiting,
                        .left_behind = left_events_.end(),
                        .notes = notes_,
                        .last = last,
                        .last_sequence = [this](const std::string& t) { return outbox_.last_sequence(t); }});
  std::vector<OutboxNote> notes;
  if (noted_in_ != outbox_.identity())
    for (const auto& [key, value] : notes_) notes.push_back({key, value});
  notes.insert(notes.end(), handover.notes.begin(), handover.notes.end());
  outbox_.continue_from(handover.topics, handover.events, notes);
  noted_in_ = outbox_.identity();
  note(handover.notes);
  claims_->hold(books.camera, books.fence);
  left_events_.take(books.camera);
  give_up(books.camera, handover.dropped);
  begin_tenure(books.camera, handover);
  // Told again at worst.
  if (!handover.committed.empty()) outbox_.acknowledge(handover.committed);
}

void AlertDesk::begin_tenure(const std::string& camera, const Handover& handover) {
  // What waits was made in a tenure before; but what this process tells of its start.
  if (!handover.goes_on && (!camera.empty() || told_online_)) drop_all(camera);
  if (camera.empty()) return begin_own(handover);
  const auto known = known_.find(camera);
  if (known == known_.end()) return;
  const WatchPtr watch = known->second;
  if (const auto last = handover.last.find(status_topic(*watch)); last != handover.last.end())
    if (auto state = state_in(last->second)) {
      told_[camera] = std::move(*state);
      told_before_.insert(camera);
    }
  Watched& watched = watched_[camera];
  if (watched.watch != watch) follow(watched, watch);
  for (const OpenEpisode& open : handover.open) resume(watched, open, handover.goes_on);
  for (const HeldNews::News& news : held_.take(camera)) {
    if (news.window) {
      // Whoever comes next waits for what is told here, and not for its explanations.
      run(news.window, !left_.contains(camera) && clock_.now() - news.since < options_.explanation);
    } else {
      tell_state(news.watch, news.state, news.reason, news.time);
    }
  }
  tell_removed(camera);
  end_for_good(camera);
}

// What the process before this one could not say comes before anything of this one.
void AlertDesk::begin_own(const Handover& handover) {
  if (std::exchange(told_online_, true)) return;
  const auto last = handover.last.find(process_topic(options_.process));
  if (last == handover.last.end() || state_in(last->second) != name_of(ProcessState::online)) return;
  queue_.push_front(
      {noted_news({options_.process, ProcessState::offline, "restart", ""}, clock_.wall(), outbox_)});
}

void AlertDesk::resume(Watched& watched, const OpenEpisode& open, bool own) {
  const AlertRecord& record = open.record;
  const std::string& episode = record.name.episode;
  // It was never out of hand.
  if (promises_.knows(episode)) return;
  for (const Rule& rule : watched.rules)
    if (rule.episode == episode && rule.policy.active()) return;
  const auto same = std::find_if(watched.rules.begin(), watched.rules.end(), [&](const Rule& rule) {
    return rule.topic == open.topics.front() && rule.version == record.rule_version && !rule.policy.active();
  });
  const std::string no_evidence = own ? kStartedAgain : kMoved;
  OutboxEvent last{0, open.topics.front(), 0, record.time, open.body};
  if (record.told.phase == Phase::end || same == watched.rules.end())
    return end_resumed(open.topics, last, {name_of(EndReason::rule_changed), no_evidence});
  same->policy.resume(record.told, record.time);
  same->episode = episode;
  same->topics = open.topics;
  same->evidence = record.evidence;
  same->resumed = last;
  if (record.evidence.state != EvidenceState::pending) return;
  const auto failed = [last, no_evidence](std::uint64_t sequence) {
    return failed_evidence_event(last.body, sequence, no_evidence).value();
  };
  same->policy.amend();
  same->evidence = {.state = EvidenceState::failed, .reason = no_evidence};
  same->resumed.body = failed(0);
  tell_text(open.topics, record.time, [failed](const EventDraft& draft) { return failed(draft.sequence); });
}

void AlertDesk::end_resumed(const std::vector<std::string>& topics, const OutboxEvent& last,
                            const Closing& why) {
  const base::Clock::WallTime now = clock_.wall();
  tell_text(topics, now, [last, why, now](const EventDraft& draft) {
    return closing_event(last, draft.sequence, now, {}, why).value();
  });
}

/// What is made of what others have told, without a window.
void AlertDesk::tell_text(const std::vector<std::string>& topics, base::Clock::WallTime time,
                          std::function<std::string(const EventDraft&)> body) {
  WaitingEvent event;
  event.topics = topics;
  event.time = time;
  event.body = std::move(body);
  event.note = [topics](const std::string& text) { return episode_note(topics, text); };
  event.camera = series_of(topics.front()).value_or("");
  enqueue(std::move(event));
}

void AlertDesk::lost(const std::string& camera, std::uint64_t fence) {
  if (!claims_ || !claims_->lose(camera, fence)) return;
  drop_all(camera);
  std::size_t held = 0;
  for (HeldNews::News& news : held_.take(camera)) {
    ++held;
    if (news.window) observed_.push_back(std::move(news.window));
  }
  give_up(camera, held);
  known_.erase(camera);
  losses_.push_back({camera});
  taken_in();
}

/// Forgets what was not written, and what is open.
void AlertDesk::drop_all(const std::string& camera) {
  give_up(camera, queue_.drop(camera));
  watched_.erase(camera);
  promises_.forget(camera);
  told_.erase(camera);
  told_before_.erase(camera);
}

void AlertDesk::removed(const std::string& camera) {
  if (!claims_) return;
  removed_.insert(camera);
  tell_removed(camera);
  end_for_good(camera);
  taken_in();
}

/// It was taken for one that goes on elsewhere, so that nothing was said of its end.
void AlertDesk::tell_removed(const std::string& camera) {
  const auto told = told_.find(camera);
  const auto known = known_.find(camera);
  if (!left_.contains(camera) || !removed_.contains(camera) || !claims_->holds(camera) ||
      told == told_.end() || known == known_.end() || told->second == name_of(CameraState::down))
    return;
  told_before_.erase(camera);
  tell_state(known->second, CameraState::down, "removed", clock_.wall());
}

/// Ends the episodes of a camera that has ended and is removed, if that is known.
void AlertDesk::end_for_good(const std::string& camera) {
  if (!left_.contains(camera) || !removed_.contains(camera)) return;
  if (!claims_->is_lost(camera) && !claims_->holds(camera)) {
    // Somebody before may have left some open.
    if (known_.contains(camera)) claims_->want(camera);
    return;
  }
  if (const auto entry = watched_.find(camera); entry != watched_.end())
    for (Rule& rule : entry->second.rules) close(rule, EndReason::camera_ended);
  watched_.erase(camera);
  known_.erase(camera);
  told_.erase(camera);
  told_before_.erase(camera);
  left_.erase(camera);
  removed_.erase(camera);
}

void AlertDesk::give_up(const std::string& camera, std::size_t events) {
  if (events == 0) return;
  metrics_.messages_dropped("outbox", "fence", events);
  given_up_.events += events;
  if (!camera.empty()) given_up_.cameras.insert(camera);
}

// What nobody has asked for as long as events are kept, nobody will.
void AlertDesk::forget_left_behind() {
  const LeftEvents::Old old = left_events_.take_before(clock_.wall() - options_.retention);
  for (const auto& [series, events] : old.by_series) give_up(series, events);
  // It holds here even if it throws.
  if (!old.positions.empty()) outbox_.acknowledge(old.positions);
}

}  // namespace vigil::actors
