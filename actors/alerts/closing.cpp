#include "actors/alerts/closing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_line.h"
#include "base/timestamp.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

std::string text_at(const json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

bool is_alert(const json& event) {
  return event.is_object() && text_at(event, "type") == "dev.vigil.alert.v1" && event.contains("data") &&
         event.at("data").is_object();
}

/// "EPISODE-3" or "EPISODE-3-MARK" of an alert whose episode is that.
std::optional<EventName> name_of_alert(const json& alert) {
  const std::string id = text_at(alert, "id");
  const std::string episode = text_at(alert.at("data"), "episode");
  if (!id.starts_with(episode + '-')) return std::nullopt;
  std::string number = id.substr(episode.size() + 1);
  number.resize(std::min(number.find('-'), number.size()));
  if (number.empty() || number.size() > 18) return std::nullopt;
  if (number.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return EventName{episode, std::stoull(number)};
}

double number_at(const json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_number() ? entry->get<double>() : 0.0;
}

base::Clock::WallTime time_at(const json& object, const char* key) {
  return base::parse_rfc3339(text_at(object, key)).value_or(base::Clock::WallTime());
}

std::optional<Phase> phase_in(const json& data) {
  const std::string phase = text_at(data, "phase");
  for (const Phase each : {Phase::begin, Phase::update, Phase::end})
    if (phase == name_of(each)) return each;
  return std::nullopt;
}

Evidence evidence_in(const json& data) {
  Evidence evidence;
  const auto entry = data.find("evidence");
  if (entry == data.end() || !entry->is_object()) return evidence;
  const std::string state = text_at(*entry, "clip_state");
  for (const EvidenceState each : {EvidenceState::pending, EvidenceState::ready, EvidenceState::failed})
    if (state == name_of(each)) evidence.state = each;
  evidence.thumb = text_at(*entry, "thumb");
  evidence.clip = text_at(*entry, "clip");
  evidence.reason = text_at(*entry, "reason");
  evidence.thumb_time = base::parse_rfc3339(text_at(*entry, "thumb_time"));
  evidence.from = time_at(*entry, "from");
  evidence.to = time_at(*entry, "to");
  evidence.bytes = static_cast<std::uintmax_t>(std::max(0.0, number_at(*entry, "bytes")));
  evidence.codec = text_at(*entry, "codec");
  return evidence;
}

bool promises_evidence(const json& data) {
  const auto evidence = data.find("evidence");
  return evidence != data.end() && evidence->is_object() &&
         text_at(*evidence, "clip_state") == name_of(EvidenceState::pending);
}

}  // namespace

std::optional<EventName> event_name(const std::string& body) {
  const json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  return is_alert(event) ? name_of_alert(event) : std::nullopt;
}

std::optional<base::Clock::WallTime> time_of_event(const std::string& body) {
  const json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  return event.is_object() ? base::parse_rfc3339(text_at(event, "time")) : std::nullopt;
}

std::string with_sequence(const std::string& body, std::uint64_t sequence) {
  json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || !event.contains("data") || !event.at("data").is_object()) return body;
  event["data"]["seq"] = sequence;
  return base::json_line(event);
}

std::optional<AlertRecord> read_alert(const std::string& body) {
  // Seconds that are no time of this clock.
  constexpr double kTooLate = 9e9;
  const json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!is_alert(event)) return std::nullopt;
  const json& data = event.at("data");
  auto name = name_of_alert(event);
  const auto phase = phase_in(data);
  const auto time = base::parse_rfc3339(text_at(event, "time"));
  const double start = number_at(data, "start_time");
  if (!name || !phase || !time || !(start >= 0 && start < kTooLate)) return std::nullopt;
  Emission told;
  told.phase = *phase;
  told.ordinal = name->number;
  told.score = number_at(data, "score");
  told.confirmations = static_cast<int>(std::clamp(number_at(data, "confirmations"), 0.0, 1e9));
  told.start = base::Clock::WallTime(std::chrono::milliseconds(std::llround(start * 1000)));
  return AlertRecord{std::move(*name), text_at(data, "rule_version"), told, evidence_in(data), *time};
}

std::optional<std::string> state_in(const std::string& body) {
  const json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || !event.contains("data") || !event.at("data").is_object()) return std::nullopt;
  std::string state = text_at(event.at("data"), "state");
  return state.empty() ? std::nullopt : std::optional(std::move(state));
}

std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         base::Clock::WallTime now, const std::string& mark,
                                         const Closing& why) {
  json event = json::parse(last.body, nullptr, /*allow_exceptions=*/false);
  if (!is_alert(event)) return std::nullopt;
  const auto data = event.find("data");
  const std::string phase = text_at(*data, "phase");
  const bool open = phase == name_of(Phase::begin) || phase == name_of(Phase::update);
  const bool promised = promises_evidence(*data);
  if (!open && !(promised && phase == name_of(Phase::end))) return std::nullopt;
  const auto name = name_of_alert(event);
  if (!name) return std::nullopt;
  if (open) {
    const auto seconds = std::chrono::duration_cast<std::chrono::milliseconds>(last.time.time_since_epoch());
    (*data)["phase"] = name_of(Phase::end);
    (*data)["end_time"] = static_cast<double>(seconds.count()) / 1000.0;
    (*data)["end_reason"] = why.end_reason;
    data->erase("cause");
  } else {
    (*data)["cause"] = "evidence";
  }
  if (promised) {
    (*data)["evidence"]["clip_state"] = name_of(EvidenceState::failed);
    (*data)["evidence"]["reason"] = why.no_evidence;
  }
  (*data)["seq"] = sequence;
  event["id"] = name->episode + '-' + std::to_string(name->number + 1) + (mark.empty() ? "" : '-' + mark);
  event["time"] = base::format_rfc3339(now);
  return base::json_line(event);
}

std::optional<std::string> failed_evidence_event(const std::string& last, std::uint64_t sequence,
                                                 const std::string& why) {
  json event = json::parse(last, nullptr, /*allow_exceptions=*/false);
  if (!is_alert(event)) return std::nullopt;
  json& data = event["data"];
  const auto name = name_of_alert(event);
  const auto phase = phase_in(data);
  if (!name || !phase || *phase == Phase::end || !promises_evidence(data)) return std::nullopt;
  data["phase"] = name_of(Phase::update);
  data["cause"] = "evidence";
  data["evidence"]["clip_state"] = name_of(EvidenceState::failed);
  data["evidence"]["reason"] = why;
  data["seq"] = sequence;
  event["id"] = name->episode + '-' + std::to_string(name->number + 1);
  return base::json_line(event);
}

}  // namespace vigil::actors
