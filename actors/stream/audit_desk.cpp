#include "actors/stream/audit_desk.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/stream/refresh.h"

namespace vigil::actors {
namespace {

constexpr std::string_view kSuffix = "#audit";
/// Times of patches and windows are the same but for rounding.
constexpr double kRounding = 1e-6;

bool is_audit(const stream::WindowId& id) {
  return id.camera.ends_with(kSuffix);
}

std::vector<double> probabilities(const std::vector<stream::Answer>& answers) {
  std::vector<double> values;
  values.reserve(answers.size());
  for (const stream::Answer& answer : answers) values.push_back(answer.probability_yes);
  return values;
}

}  // namespace

void AuditDesk::push(const VisualPatch& patch) {
  const std::string& camera = patch.watch.camera;
  auto entry = audits_.find(camera);
  if (entry != audits_.end()) {
    Audit& audit = entry->second;
    const bool is_another = patch.audit && std::abs(*patch.audit - audit.ends) > kRounding;
    if (is_another || patch.tokens->seconds >= audit.until) {
      give_up(camera, audit);
      audits_.erase(entry);
      entry = audits_.end();
    }
  }
  if (!patch.audit) return;
  if (entry == audits_.end()) {
    Audit audit;
    audit.ends = *patch.audit;
    audit.until = 2 * audit.ends - patch.tokens->seconds;
    entry = audits_.emplace(camera, std::move(audit)).first;
    desk_.open(stream_of(camera), stream::make_refresh("all", {}));
  }
  Audit& audit = entry->second;
  if (audit.over || audit.pruned_id) return;
  if (!patch.whole) return give_up(camera, audit);
  desk_.append(stream_of(camera), patch.whole);
}

void AuditDesk::asked(const WatchPtr& watch, const Asked& window,
                      const std::vector<stream::CompiledQuestionPtr>& questions) {
  const auto entry = audits_.find(watch->name);
  if (entry == audits_.end()) return;
  Audit& audit = entry->second;
  // Of patches that are longer than a stride the window that was meant may end a little later.
  if (audit.over || audit.pruned_id || window.due.end < audit.ends - kRounding) return;
  const std::string name = stream_of(watch->name);
  const stream::CameraStream& stream = desk_.stream(name);
  stream::PatchRange range = stream.patches();
  // The camera cannot tell exactly with which patch its window begins.
  while (range.first < range.last && stream.patch(range.first).seconds < window.first - kRounding)
    ++range.first;
  // Nor with which it ends: the next one may have closed it.
  range.last = std::min(range.last, range.first + window.due.patches.count());
  if (range.count() != window.due.patches.count()) return give_up(watch->name, audit);
  // Beside the camera's own window, which has no room yet.
  const std::int64_t pages =
      desk_.pages_for(stream.visual_tokens(range), questions) +
      desk_.pages_for(desk_.stream(watch->name).visual_tokens(window.due.patches), questions);
  const double room = (1 - desk_.usage()) * static_cast<double>(desk_.pages());
  if (static_cast<double>(pages) > room) return give_up(watch->name, audit);
  stream::Asking asking;
  asking.patches = range;
  for (const auto& question : questions) asking.questions.push_back({question, {}});
  asking.due = window.by;
  try {
    audit.whole_id = desk_.ask(name, std::move(asking));
  } catch (const std::invalid_argument&) {  // larger than the cache
    return give_up(watch->name, audit);
  }
  audit.pruned_id = window.id;
  audit.watch = watch;
}

AuditDesk::Audit* AuditDesk::find(const stream::WindowId& id, bool of_audit) {
  std::string camera = id.camera;
  if (of_audit) camera.resize(camera.size() - kSuffix.size());
  const auto entry = audits_.find(camera);
  if (entry == audits_.end()) return nullptr;
  const auto& known = of_audit ? entry->second.whole_id : entry->second.pruned_id;
  return known == id ? &entry->second : nullptr;
}

bool AuditDesk::answered(const stream::DeskNews::Answered& news) {
  const bool mine = is_audit(news.window);
  if (mine) desk_.done(news.window);
  Audit* audit = find(news.window, mine);
  if (audit == nullptr || audit->over) return mine;
  (mine ? audit->whole : audit->pruned) = probabilities(news.answers);
  complete(audit->watch->name, *audit);
  return mine;
}

bool AuditDesk::failed(const stream::WindowId& id) {
  const bool mine = is_audit(id);
  Audit* audit = find(id, mine);
  if (audit != nullptr && !audit->over) give_up(audit->watch->name, *audit);
  return mine;
}

void AuditDesk::complete(const std::string& camera, Audit& audit) {
  if (audit.pruned.empty() || audit.whole.empty()) return;
  news_.both.push_back({audit.watch, std::move(audit.pruned), std::move(audit.whole)});
  close(camera);
  audits_.erase(camera);
}

void AuditDesk::give_up(const std::string& camera, Audit& audit) {
  if (std::exchange(audit.over, true)) return;
  ++news_.given_up;
  close(camera);
}

void AuditDesk::close(const std::string& camera) {
  if (desk_.is_open(stream_of(camera))) desk_.close(stream_of(camera));
}

void AuditDesk::forget(const std::string& camera) {
  const auto entry = audits_.find(camera);
  if (entry == audits_.end()) return;
  give_up(camera, entry->second);
  audits_.erase(entry);
}

AuditDesk::News AuditDesk::take_news() {
  return std::exchange(news_, {});
}

}  // namespace vigil::actors
