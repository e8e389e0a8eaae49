#include "actors/cache/cache_desk.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "engine/memory/hours.h"

namespace vigil::actors {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

/// How often what is too old is let go of.
constexpr auto kAging = 10s;
/// Windows of the past come after all that is due by then.
constexpr auto kGivesWay = 1h;
/// Readings of the readers' that verify have numbers of their own.
constexpr std::uint64_t kVerification = std::uint64_t{1} << 63U;

}  // namespace

CacheDesk::CacheDesk(history::HistoryStore* store, const base::Clock& clock, Options options)
    : store_(store),
      clock_(clock),
      clips_(options.clips),
      memory_(store, std::move(options.memory)),
      questions_(memory_, clock, options.questions),
      present_(clock) {
  for (const memory::Memory::Summary& each : memory_.list(wall_now())) known_.insert(each.camera);
  tell_wanted();
}

std::int64_t CacheDesk::wall_now() const {
  return memory::nanoseconds(clock_.wall());
}

void CacheDesk::tell_wanted() {
  std::vector<kv::Form> wanted = memory_.wanted();
  if (wanted == wanted_) return;
  wanted_ = wanted;
  news_.wanted = WantedForms{std::move(wanted)};
}

void CacheDesk::watch(const WatchPtr& watch) {
  const history::CameraId id{watch->tenant, watch->name};
  const auto [known, is_new] = watched_.try_emplace(watch->name, id);
  if (!is_new && known->second != id) leave(std::exchange(known->second, id));
  const std::int64_t now = wall_now();
  const std::int64_t before = memory_.kept_from(id, now);
  if (watch->keep > base::Duration::zero()) {
    known_.insert(id);
    memory_.watch(id, watch->keep, watch->window.stride);
  } else {
    leave(id);
    watched_.erase(watch->name);
    memory_.keep(id, watch->keep);
  }
  if (let_go(id, before, now)) age();
}

void CacheDesk::keep(const Keeps& keeps) {
  const std::int64_t now = wall_now();
  bool has_changed = false;
  // A configuration has many more cameras than one node ever has.
  for (const history::CameraId& id : known_) {
    const auto keep = keeps.cameras.find(id);
    if (keep == keeps.cameras.end()) continue;
    const std::int64_t before = memory_.kept_from(id, now);
    memory_.keep(id, keep->second);
    has_changed = let_go(id, before, now) || has_changed;
  }
  if (has_changed) age();
}

bool CacheDesk::let_go(const history::CameraId& camera, std::int64_t kept_from, std::int64_t wall_now) {
  const std::int64_t from = memory_.kept_from(camera, wall_now);
  if (from == kept_from) return false;
  if (from < kept_from) return true;
  questions_.erased(camera, {kept_from, from - 1});
  hear_questions("what it was about is not kept any more");
  return true;
}

void CacheDesk::end(const std::string& camera) {
  const auto known = watched_.extract(camera);
  if (!known) return;
  leave(known.mapped());
  news_.wakes_writer = true;
}

void CacheDesk::leave(const history::CameraId& camera) {
  memory_.leave(camera);
  lost_windows_.forget(camera);
}

void CacheDesk::note_come(const LeftPages& pages) {
  std::map<history::CameraId, std::int64_t> come;
  const auto note = [&](const history::CameraId& camera, std::int64_t to) {
    const auto [last, is_new] = come.emplace(camera, to);
    last->second = std::max(last->second, to);
  };
  for (const memory::FreshPage& page : pages.news.pages) note(page.camera, history::wall_of(page.info).to);
  for (const memory::PageMaker::News::Lost& lost : pages.news.lost)
    if (lost.why != memory::Forgotten::untimed) note(lost.camera, lost.wall.to);
  for (const auto& [camera, to] : come) present_.has_come(camera, to);
}

void CacheDesk::take(LeftPages& pages) {
  note_come(pages);
  const auto now = clock_.now();
  for (memory::FreshPage& page : pages.news.pages) {
    const std::string camera = page.camera.camera;
    memory::Memory::Taken taken;
    try {
      taken = memory_.take(std::move(page), now);
    } catch (const std::invalid_argument& error) {
      // Of a camera whose clock was never set, say: the others' pages are none of its business.
      taken.lost = memory::Gap::late;
      news_.warnings.push_back("what camera " + camera + " saw is not remembered: " + error.what());
    }
    if (taken.lost) {
      ++news_.counts.lost[*taken.lost];
    } else {
      ++news_.counts.pages;
      if (taken.is_unwritten) ++news_.counts.unwritten;
    }
    news_.counts.lost[memory::Gap::evicted] += taken.evicted;
    news_.wakes_writer = news_.wakes_writer || !taken.written.empty();
  }
  for (const memory::PageMaker::News::Lost& lost : pages.news.lost) {
    memory_.lose(lost);
    ++news_.counts.lost[lost.why == memory::Forgotten::keyless ? memory::Gap::keyless : memory::Gap::late];
  }
  tell_wanted();
}

void CacheDesk::say(std::uint64_t ticket, PastOutcome outcome, std::string text) {
  news_.replies.push_back({ticket, outcome, std::move(text), {}});
}

std::vector<history::CameraId> CacheDesk::named(const PastRights& rights, const PastCamera& camera) const {
  std::vector<history::CameraId> named;
  for (const history::CameraId& each : known_) {
    const bool is_there = !rights.tenants || rights.tenants->contains(each.tenant);
    if (is_there && each.camera == camera.name && (!camera.tenant || *camera.tenant == each.tenant))
      named.push_back(each);
  }
  return named;
}

std::optional<history::CameraId> CacheDesk::resolve(const PastRequest& request, const PastCamera& camera) {
  const std::vector<history::CameraId> named = this->named(request.rights, camera);
  if (named.size() == 1) return named.front();
  // Of what is hidden nothing is told, not even that it is there.
  if (named.empty()) {
    std::string line = "nothing is remembered of a camera " + camera.name;
    // Nor, of a tenant that is not his, that it was not so: whose there are is none of his business.
    const std::string tenant = camera.tenant.value_or("");
    if (!tenant.empty() && (!request.rights.tenants || request.rights.tenants->contains(tenant)))
      line += " of a tenant " + tenant;
    say(request.ticket, PastOutcome::bad_request, std::move(line));
    news_.replies.back().is_unknown = true;
  } else {
    std::string line = "several tenants have or had a camera " + camera.name + ": name one of";
    for (const history::CameraId& each : named) line += (&each == &named.front() ? " " : ", ") + each.tenant;
    say(request.ticket, PastOutcome::bad_request, std::move(line));
  }
  return std::nullopt;
}

std::vector<history::CameraId> CacheDesk::resolve(const PastRequest& request,
                                                  const std::optional<PastCamera>& camera) {
  if (camera) {
    const auto one = resolve(request, *camera);
    return one ? std::vector{*one} : std::vector<history::CameraId>();
  }
  std::vector<history::CameraId> all;
  for (const history::CameraId& each : known_)
    if (!request.rights.tenants || request.rights.tenants->contains(each.tenant)) all.push_back(each);
  return all;
}

void CacheDesk::take(const PastRequest& request) {
  std::visit([&](const auto& what) { take(request, what); }, request.what);
}

void CacheDesk::take(const PastRequest& request, const PastQuestion& question) {
  const auto camera = resolve(request, question.camera);
  if (!camera) return;
  asked_.emplace(request.ticket, Asked{*camera, question, clock_.now()});
  const bool waits = is_watched(*camera) && present_.waits(request.ticket, *camera, question.wall);
  for (Show& each : present_.take_shows()) news_.shows.push_back(std::move(each));
  if (!waits) begin(request.ticket);
}

bool CacheDesk::is_watched(const history::CameraId& camera) const {
  const auto known = watched_.find(camera.camera);
  return known != watched_.end() && known->second == camera;
}

void CacheDesk::cut_off(Asked& asked) {
  history::WallRange& wall = asked.question.wall;
  const auto waited = std::chrono::nanoseconds(clock_.now() - asked.since).count();
  std::int64_t come = wall_now() - waited;
  if (wall.to <= come) return;
  for (const memory::Memory::Found& page :
       memory_.find(asked.camera, {std::max(come, wall.from), wall.to}, wall_now()))
    come = std::max(come, history::wall_of(page.info).to);
  if (wall.from <= come) wall.to = std::min(wall.to, come);
}

void CacheDesk::begin(std::uint64_t ticket) {
  Asked& asked = asked_.at(ticket);
  cut_off(asked);
  const PastQuestion& question = asked.question;
  questions_.ask(ticket, {asked.camera, question.wall, question.question, question.about, question.method,
                          question.max_tokens, asked.since});
  hear_questions();
}

void CacheDesk::shown(std::uint64_t show) {
  for (const std::uint64_t ticket : present_.shown(show)) begin(ticket);
}

void CacheDesk::take(const PastRequest& request, const PastList& list) {
  const std::vector<history::CameraId> cameras = resolve(request, list.camera);
  if (list.camera && cameras.empty()) return;
  std::vector<memory::Memory::Summary> shown;
  for (memory::Memory::Summary& each : memory_.list(wall_now()))
    if (std::find(cameras.begin(), cameras.end(), each.camera) != cameras.end())
      shown.push_back(std::move(each));
  say(request.ticket, PastOutcome::answer, list_text(shown));
}

void CacheDesk::take(const PastRequest& request, const PastVerify& verify) {
  std::vector<history::CameraId> cameras = resolve(request, verify.camera);
  if (verify.camera && cameras.empty()) return;
  if (store_ == nullptr) {
    say(request.ticket, PastOutcome::unavailable, "nothing is kept on a disk (memory.dir)");
    news_.replies.back().is_unknown = true;
    return;
  }
  std::reverse(cameras.begin(), cameras.end());
  verifying_.emplace(request.ticket, Verifying{std::move(cameras), {}});
  verify_next(request.ticket);
}

void CacheDesk::verify_next(std::uint64_t ticket) {
  const auto verifying = verifying_.find(ticket);
  if (verifying->second.left.empty()) {
    say(ticket, PastOutcome::answer, verify_text(verifying->second.done));
    verifying_.erase(verifying);
    return;
  }
  const std::uint64_t id = kVerification + ++verification_ids_;
  verifications_.emplace(id, ticket);
  news_.to_read.push_back({id, verifying->second.left.back(), {}});
}

void CacheDesk::take(const PastRequest& request, const PastErasure& erasure) {
  const auto camera = resolve(request, erasure.camera);
  if (!camera) return hold_for_later(request, erasure);
  if (!request.rights.erase) return say(request.ticket, PastOutcome::forbidden, "this key may not erase");
  // What is not seen yet is not meant.
  const std::int64_t now = wall_now();
  const history::WallRange wall = memory::Memory::seen_of(erasure.wall, now);
  questions_.erased(*camera, wall);
  try {
    const std::size_t pages = memory_.erase(*camera, wall, now);
    ++news_.counts.erasures;
    Erasing erasing{request.ticket, *camera, wall, erasure_text(*camera, erasure.wall, pages, true)};
    // One that is given again may be done already.
    if (store_ == nullptr || wall.to < wall.from || is_finished(erasing)) {
      say(request.ticket, PastOutcome::answer, std::move(erasing.text));
    } else {
      erasing_.push_back(std::move(erasing));
      news_.wakes_writer = true;
    }
  } catch (const history::HistoryError& error) {
    say(request.ticket, PastOutcome::unavailable,
        "nothing of it is told any more until this process ends, and its bytes are still on the disk: " +
            std::string(error.what()));
  }
  hear_questions();
  end_page(request.ticket, *camera, wall);
}

void CacheDesk::end_page(std::uint64_t ticket, const history::CameraId& camera,
                         const history::WallRange& wall) {
  // Nobody waits for it.
  if (is_watched(camera) && present_.waits(ticket, camera, wall)) present_.forget(ticket);
  for (Show& each : present_.take_shows()) news_.shows.push_back(std::move(each));
}

void CacheDesk::hold_for_later(const PastRequest& request, const PastErasure& erasure) {
  // Of a camera that comes here with what it saw before: whoever orders it for a whole fleet, says so.
  const bool is_of_fleet = request.rights.erase && !request.rights.tenants && erasure.camera.tenant;
  if (!is_of_fleet) return;
  const std::int64_t now = wall_now();
  const history::CameraId camera{*erasure.camera.tenant, erasure.camera.name};
  if (known_.contains(camera)) return;
  try {
    memory_.erase(camera, memory::Memory::seen_of(erasure.wall, now), now);
    news_.wakes_writer = true;
  } catch (const history::HistoryError& error) {
    // Whoever gave it gives it again: what comes after a restart, it would not meet.
    news_.replies.pop_back();
    say(request.ticket, PastOutcome::unavailable,
        "the disk does not take that it is erased: " + std::string(error.what()));
  }
}

void CacheDesk::forget(std::uint64_t ticket) {
  questions_.give_up(ticket);
  present_.forget(ticket);
  asked_.erase(ticket);
  verifying_.erase(ticket);
  hear_questions();
}

void CacheDesk::read(ReadPages& pages) {
  const auto verification = verifications_.extract(pages.id);
  if (!verification) {
    questions_.read(pages.id, std::move(pages.values));
    return hear_questions();
  }
  const auto verifying = verifying_.find(verification.mapped());
  if (verifying == verifying_.end()) return;
  if (!pages.verified) {
    say(verification.mapped(), PastOutcome::unavailable, pages.failure);
    verifying_.erase(verifying);
    return;
  }
  verifying->second.done.push_back({verifying->second.left.back(), *pages.verified});
  verifying->second.left.pop_back();
  verify_next(verification.mapped());
}

void CacheDesk::recalled(const Recalled& recalled) {
  if (recalled.failure.empty()) {
    questions_.recalled(recalled.ticket, recalled.answer);
  } else {
    if (!recalled.is_busy) warn_of_lost_window(recalled);
    questions_.failed(recalled.ticket, recalled.is_busy);
  }
  hear_questions();
}

/// Nothing about one whose question was given up.
void CacheDesk::warn_of_lost_window(const Recalled& recalled) {
  const auto asker = questions_.asker_of(recalled.ticket);
  if (!asker) return;
  const std::string tenant = asker->camera.tenant.empty() ? "" : " of tenant " + asker->camera.tenant;
  const auto line =
      lost_windows_.hear(asker->camera,
                         "a window of the past was not answered: camera " + asker->camera.camera + tenant +
                             ", question " + std::to_string(asker->ticket) + ": " + recalled.failure,
                         clock_.now());
  if (line) news_.warnings.push_back(*line);
}

void CacheDesk::lost(const std::vector<std::uint64_t>& recalls) {
  for (const std::uint64_t id : recalls) questions_.failed(id, true);
  hear_questions();
}

void CacheDesk::hear(const DiskNews& news) {
  for (const memory::PartQueue::Written& written : news.written) {
    memory_.wrote(written);
    if (written.failure.empty()) {
      news_.counts.written_bytes += written.bytes;
    } else {
      ++news_.counts.failed_writes;
      news_.warnings.push_back("what camera " + written.camera.camera +
                               " saw was not written: " + written.failure);
    }
  }
  news_.counts.removed_bytes += news.retired.bytes;
  if (!news.failure.empty()) news_.warnings.push_back("what is over could not be removed: " + news.failure);
  if (news.has_erased || !news.failure.empty()) {
    for (Erasing& each : std::exchange(erasing_, {})) {
      if (is_finished(each)) {
        say(each.ticket, PastOutcome::answer, std::move(each.text));
      } else if (!news.failure.empty()) {
        say(each.ticket, PastOutcome::unavailable,
            "nothing of it is told any more, and its bytes are still on the disk: " + news.failure);
      } else {
        // It came after the writer had begun.
        erasing_.push_back(std::move(each));
        news_.wakes_writer = true;
      }
    }
  }
  tell_wanted();
}

bool CacheDesk::is_finished(const Erasing& erasing) const {
  const std::vector<history::Erasure> erasures = store_->erasures();
  return std::none_of(erasures.begin(), erasures.end(), [&](const history::Erasure& each) {
    return each.camera == erasing.camera && each.wall == erasing.wall && !each.finished;
  });
}

void CacheDesk::tick() {
  for (const std::uint64_t ticket : present_.late()) begin(ticket);
  questions_.tick();
  hear_questions();
  const auto now = clock_.now();
  if (has_aged_ && now - aged_ < kAging) return;
  has_aged_ = true;
  aged_ = now;
  age();
  tell_wanted();
}

void CacheDesk::age() {
  memory::Memory::Aged aged = memory_.age(wall_now());
  std::vector<history::Note>& notes = news_.aged.notes;
  aged.notes.insert(aged.notes.begin(), notes.begin(), notes.end());
  news_.aged = std::move(aged);
  news_.was_aged = true;
}

void CacheDesk::hear_questions(const char* gone) {
  memory::QuestionDesk::News news = questions_.take_news();
  for (memory::QuestionDesk::Reading& each : news.readings)
    news_.to_read.push_back({each.id, std::move(each.camera), std::move(each.names)});
  for (memory::QuestionDesk::Window& each : news.windows) {
    each.what.due = clock_.now() + kGivesWay;
    news_.recalls.push_back({each.id, std::move(each.what), std::move(each.text), each.max_tokens});
  }
  for (const std::uint64_t each : news.forgotten) news_.forgotten.push_back(each);
  for (const memory::QuestionDesk::Progress& each : news.progress)
    say(each.ticket, PastOutcome::progress, progress_text(each));
  for (const auto& [ticket, answer] : news.answered) {
    const auto asked = asked_.extract(ticket);
    news_.counts.host_bytes += answer.host_bytes;
    news_.counts.disk_bytes += answer.disk_bytes;
    if (asked)
      say(ticket, PastOutcome::answer,
          answer_text(asked.mapped().camera, asked.mapped().question, answer, clips_));
  }
  for (const std::uint64_t ticket : news.erased) {
    asked_.erase(ticket);
    say(ticket, PastOutcome::unavailable, gone);
  }
}

CacheDesk::News CacheDesk::take_news() {
  return std::exchange(news_, {});
}

}  // namespace vigil::actors
