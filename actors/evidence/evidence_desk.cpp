#include "actors/evidence/evidence_desk.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include "media/jpeg.h"

namespace vigil::actors {
namespace {

/// What a clip's file has beside the packets, at most: its index.
constexpr std::uintmax_t kOverhead = 256 << 10;

base::Clock::WallTime::duration wall_duration(double seconds) {
  return std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::duration<double>(seconds));
}

std::int64_t nanoseconds(base::Clock::WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

EvidenceDesk::EvidenceDesk(Options options, EvidenceStore& store, Metrics& metrics, const base::Clock& clock)
    : options_(options), store_(store), metrics_(metrics), clock_(clock) {
  metrics_.evidence_bytes(store_.bytes());
}

void EvidenceDesk::record(Recording recording) {
  recordings_[recording.camera] = std::move(recording.history);
}

media::PacketHistory* EvidenceDesk::history_of(const std::string& camera) const {
  const auto entry = recordings_.find(camera);
  return entry == recordings_.end() ? nullptr : entry->second.get();
}

std::optional<EvidenceReport> EvidenceDesk::ask(EvidenceRequest request) {
  if (waiting_.size() >= options_.most_waiting) {
    Evidence evidence;
    evidence.state = EvidenceState::failed;
    evidence.reason = "too many clips are being made";
    return report(request, std::move(evidence));
  }
  const media::PacketHistory* history = history_of(request.camera);
  const auto newest = history ? history->newest() : std::nullopt;
  // Of a file that is played fast, time means little; it ends or comes soon.
  const double left = std::max(0.0, request.span.to - newest.value_or(request.span.moment));
  const auto until =
      clock_.now() + options_.patience +
      std::chrono::duration_cast<base::Clock::TimePoint::duration>(std::chrono::duration<double>(left));
  waiting_.push_back({std::move(request), until});
  cut_due();
  metrics_.queue_depth("evidence", waiting_.size());
  return std::nullopt;
}

void EvidenceDesk::end(const std::string& camera) {
  for (Waiting& waiting : waiting_) {
    if (waiting.request.camera == camera) waiting.ended = true;
  }
  cut_due();
  let_go(camera);
}

// Only when nobody waits for them.
void EvidenceDesk::let_go(const std::string& camera) {
  const bool wanted = std::any_of(waiting_.begin(), waiting_.end(),
                                  [&](const Waiting& waiting) { return waiting.request.camera == camera; });
  const auto entry = recordings_.find(camera);
  if (wanted || entry == recordings_.end()) return;
  if (entry->second) entry->second->clear();
  recordings_.erase(entry);
}

bool EvidenceDesk::is_due(const Waiting& waiting) const {
  if (waiting.settled() || waiting.ended || clock_.now() >= waiting.until) return true;
  const media::PacketHistory* history = history_of(waiting.request.camera);
  const auto newest = history ? history->newest() : std::nullopt;
  return !history || (newest && *newest >= waiting.request.span.to);
}

bool EvidenceDesk::due() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [this](const Waiting& each) { return is_due(each); });
}

// The histories forget while clips are written, each after the one before.
void EvidenceDesk::cut_due() {
  for (Waiting& each : waiting_) {
    if (each.settled() || !is_due(each)) continue;
    if (held_of(each.request.camera) < options_.memory) cut(each);
  }
}

void EvidenceDesk::cut(Waiting& waiting) const {
  try {
    const media::PacketHistory* history = history_of(waiting.request.camera);
    if (history == nullptr) throw EvidenceError("nothing is kept of this camera any more");
    waiting.cut = history->cut(waiting.request.span);
  } catch (const std::exception& error) {
    waiting.failure = error.what();
  }
}

// Rules that one event breaks share their packets.
std::size_t EvidenceDesk::held_of(const std::string& camera) const {
  std::set<std::pair<double, double>> counted;
  std::size_t bytes = 0;
  for (const Waiting& each : waiting_) {
    if (!each.cut || each.request.camera != camera) continue;
    if (counted.emplace(each.cut->from(), each.cut->to()).second) bytes += each.cut->bytes();
  }
  return bytes;
}

std::optional<EvidenceReport> EvidenceDesk::make_next() {
  cut_due();
  const auto next =
      std::find_if(waiting_.begin(), waiting_.end(), [this](const Waiting& each) { return is_due(each); });
  if (next == waiting_.end()) return std::nullopt;
  Waiting waiting = std::move(*next);
  waiting_.erase(next);
  if (!waiting.settled()) cut(waiting);
  EvidenceReport made = report(waiting.request, make(waiting));
  if (waiting.ended) let_go(waiting.request.camera);
  metrics_.evidence_bytes(store_.bytes());
  metrics_.queue_depth("evidence", waiting_.size());
  return made;
}

EvidenceReport EvidenceDesk::report(const EvidenceRequest& request, Evidence evidence) {
  metrics_.evidence_clip(name_of(evidence.state));
  return {request.episode, std::move(evidence)};
}

Evidence EvidenceDesk::make(const Waiting& waiting) {
  const EvidenceRequest& request = waiting.request;
  Evidence evidence;
  const auto wall = [&](double seconds) {
    return request.moment + wall_duration(seconds - request.span.moment);
  };
  // A file may have its name, and still not last: then nobody is told of it.
  const auto write = [&](const std::string& file, const auto& writer) {
    try {
      writer(store_.prepare(file));
      return store_.keep(file);
    } catch (const std::exception&) {
      store_.discard(file);
      throw;
    }
  };
  try {
    if (!waiting.cut) throw EvidenceError(waiting.failure);
    const media::Cut& cut = *waiting.cut;
    // Without a still there can be a clip.
    std::optional<media::Still> still;
    try {
      still = cut.still(request.span.moment);
    } catch (const media::Error& error) {
      evidence.reason = std::string("no still: ") + error.what();
    }
    const base::Clock::WallTime shown = still ? wall(still->seconds) : request.moment;
    const std::string place =
        EvidenceStore::place(request.camera, request.rule, request.episode, shown).string();
    // A JPEG has far less than half of its picture's bytes.
    store_.make_room(cut.bytes() + kOverhead + (still ? still->image.rgb.size() / 2 : 0));
    if (still) {
      write(place + ".jpg", [&](const auto& path) { media::write_jpeg(path, still->image); });
      evidence.thumb = place + ".jpg";
      evidence.thumb_time = shown;
    }
    const std::string clip = place + cut.extension();
    const ClipNote note{{request.tenant, request.camera},
                        {nanoseconds(wall(cut.from())), nanoseconds(wall(cut.to()))}};
    evidence.bytes = write(clip, [&](const auto& path) { cut.write_clip(path, print(note)); });
    store_.shows(clip, note);
    evidence.clip = clip;
    evidence.codec = cut.codec();
    evidence.from = wall(cut.from());
    evidence.to = wall(cut.to());
    evidence.state = EvidenceState::ready;
  } catch (const std::exception& error) {
    evidence.state = EvidenceState::failed;
    evidence.reason = store_.shown(error.what());
  }
  return evidence;
}

void EvidenceDesk::tick() {
  cut_due();
  store_.tidy();
  metrics_.evidence_bytes(store_.bytes());
}

}  // namespace vigil::actors
