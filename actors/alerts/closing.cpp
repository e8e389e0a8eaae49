#include "actors/alerts/closing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/alerts/alert_policy.h"
#include "actors/messages/data.h"
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

std::string text_of(const json& event) {
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
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
  return text_of(event);
}

std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         base::Clock::WallTime now, const std::string& mark) {
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
    (*data)["end_reason"] = "restart";
    data->erase("cause");
  } else {
    (*data)["cause"] = "evidence";
  }
  if (promised) {
    (*data)["evidence"]["clip_state"] = name_of(EvidenceState::failed);
    (*data)["evidence"]["reason"] = "Vigil was started again before it was made";
  }
  (*data)["seq"] = sequence;
  event["id"] = name->episode + '-' + std::to_string(name->number + 1) + (mark.empty() ? "" : '-' + mark);
  event["time"] = base::format_rfc3339(now);
  return text_of(event);
}

}  // namespace vigil::actors
