#include "actors/alerts/event.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/fnv1a.h"
#include "base/json_line.h"
#include "base/timestamp.h"
#include "config/schema/fields.h"

namespace vigil::actors {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string source_of(const WatchSettings& watch) {
  return "/site/" + watch.tenant + "/camera/" + watch.name;
}

double epoch_seconds(base::Clock::WallTime time) {
  return static_cast<double>(duration_cast<milliseconds>(time.time_since_epoch()).count()) / 1000.0;
}

json envelope(std::string source, std::string id, const char* type, std::string subject,
              base::Clock::WallTime time) {
  return {{"specversion", "1.0"},
          {"id", std::move(id)},
          {"source", std::move(source)},
          {"type", type},
          {"subject", std::move(subject)},
          {"time", base::format_rfc3339(time)},
          {"datacontenttype", "application/json"}};
}

std::string id_of(const char* kind, const EventPlace& place) {
  return std::string(kind) + '-' + place.outbox + '-' + std::to_string(place.sequence);
}

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string title_of(const WatchSettings& watch, const config::RuleSettings& rule) {
  if (rule.title.empty()) return rule.name + " at " + watch.name;
  return replaced(replaced(rule.title, "{camera}", watch.name), "{rule}", rule.name);
}

json evidence_of(const Evidence& evidence) {
  const auto place = [](const std::string& where) { return where.empty() ? json(nullptr) : json(where); };
  json told = {{"thumb", place(evidence.thumb)},
               {"clip", place(evidence.clip)},
               {"clip_state", name_of(evidence.state)}};
  if (evidence.thumb_time) told["thumb_time"] = base::format_rfc3339(*evidence.thumb_time);
  if (!evidence.reason.empty()) told["reason"] = evidence.reason;
  if (evidence.state == EvidenceState::ready) {
    told["from"] = base::format_rfc3339(evidence.from);
    told["to"] = base::format_rfc3339(evidence.to);
    told["bytes"] = evidence.bytes;
    told["codec"] = evidence.codec;
  }
  return told;
}

}  // namespace

std::string episode_id(base::Clock::WallTime start, std::string_view what) {
  constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const auto time = static_cast<std::uint64_t>(duration_cast<milliseconds>(start.time_since_epoch()).count());
  const std::uint64_t high = base::fnv1a(what);
  const std::uint64_t low = base::fnv1a(what, high);
  std::string id(26, '0');
  // 48 bits of time in 10 characters, then 80 bits of identity in 16: 64 of the first hash, 16 of the second.
  for (std::size_t i = 0; i < 10; ++i) id[9 - i] = kAlphabet[(time >> (5 * i)) & 31U];
  for (std::size_t i = 0; i < 12; ++i) id[10 + i] = kAlphabet[(high >> (59 - 5 * i)) & 31U];
  const std::uint64_t rest = (high & 15U) << 16U | (low & 0xffffU);
  for (std::size_t i = 0; i < 4; ++i) id[22 + i] = kAlphabet[(rest >> (15 - 5 * i)) & 31U];
  return id;
}

std::string rule_version(const WatchSettings& watch, const config::RuleSettings& rule) {
  // The keys are sorted by their names, and numbers are written in the shortest form that is exact.
  json asked = {{"prompt", rule.prompt},
                {"threshold", rule.threshold},
                {"confirm", {rule.confirm.needed, rule.confirm.of}},
                {"cooldown_ms", rule.cooldown.count()},
                {"max_per_hour", rule.max_per_hour},
                {"explain", rule.explain},
                {"max_tokens", rule.max_tokens},
                {"length_ms", watch.window.length.count()},
                {"stride_ms", watch.window.stride.count()},
                {"fps", watch.fps}};
  // Without one, it is the version that it was before there were any.
  if (watch.window.memory > base::Duration{}) asked["memory_ms"] = watch.window.memory.count();
  return hex(base::fnv1a(base::json_line(asked)));
}

std::string alert_event(const Alert& alert, std::uint64_t sequence, base::Clock::TimePoint now) {
  const WindowAnswers& window = alert.window;
  const WatchSettings& watch = *window.watch;
  const config::RuleSettings& rule = watch.rules.at(alert.rule);
  const Emission& emission = alert.emission;
  json event = envelope(source_of(watch), alert.episode + '-' + std::to_string(emission.ordinal),
                        "dev.vigil.alert.v1", "rule/" + rule.name, window.end_wall);
  json& data = event["data"];
  data = {
      {"phase", name_of(emission.phase)},
      {"seq", sequence},
      {"episode", alert.episode},
      {"camera", watch.name},
      {"tenant", watch.tenant},
      {"labels", watch.labels},
      {"rule", rule.name},
      {"rule_version", rule_version(watch, rule)},
      {"severity", config::name_of(rule.severity)},
      {"score", emission.score},
      {"threshold", rule.threshold},
      {"confirmations", emission.confirmations},
      {"start_time", epoch_seconds(emission.start)},
      {"end_time", emission.end ? json(epoch_seconds(*emission.end)) : json(nullptr)},
      {"title", title_of(watch, rule)},
      {"prompt", rule.prompt},
      {"description", alert.text ? json(*alert.text) : json(nullptr)},
      {"window",
       {{"start", base::format_rfc3339(window.start_wall)},
        {"end", base::format_rfc3339(window.end_wall)},
        {"frames", window.frames}}},
      {"model", {{"id", alert.model.id}, {"prompt_hash", hex(base::fnv1a(rule.prompt))}}},
      {"latency_ms",
       {{"capture_to_alert", duration_cast<milliseconds>(now - window.captured.steady).count()}}},
  };
  if (const std::uint64_t fence = fence_of(watch.version); fence != 0) data["fence"] = fence;
  if (emission.phase == Phase::end) data["end_reason"] = name_of(emission.reason);
  if (alert.evidence.state != EvidenceState::none) data["evidence"] = evidence_of(alert.evidence);
  if (alert.only_evidence) data["cause"] = "evidence";
  return base::json_line(event);
}

std::string status_event(const WatchSettings& watch, CameraState state, std::string_view reason,
                         const EventPlace& place, base::Clock::WallTime time) {
  json event = envelope(source_of(watch), id_of("status", place), "dev.vigil.status.v1", "camera", time);
  event["data"] = {{"seq", place.sequence},
                   {"camera", watch.name},
                   {"tenant", watch.tenant},
                   {"labels", watch.labels},
                   {"state", std::string(name_of(state))},
                   {"reason", std::string(reason)}};
  if (const std::uint64_t fence = fence_of(watch.version); fence != 0) event["data"]["fence"] = fence;
  return base::json_line(event);
}

std::string process_event(const ProcessNews& news, const EventPlace& place, base::Clock::WallTime time) {
  json event =
      envelope("/process/" + news.process, id_of("process", place), "dev.vigil.process.v1", "process", time);
  event["data"] = {{"seq", place.sequence},
                   {"process", news.process},
                   {"state", name_of(news.state)},
                   {"reason", news.reason}};
  if (!news.text.empty()) event["data"]["text"] = news.text;
  return base::json_line(event);
}

}  // namespace vigil::actors
