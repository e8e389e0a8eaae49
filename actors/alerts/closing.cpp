#include "actors/alerts/closing.h"

#include <chrono>

#include <nlohmann/json.hpp>

#include "actors/alerts/alert_policy.h"
#include "actors/messages/data.h"
#include "config/timestamp.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

/// "EPISODE-3" becomes "EPISODE-4".
std::optional<std::string> next_id(const std::string& id, const std::string& episode) {
  if (!id.starts_with(episode + '-')) return std::nullopt;
  const std::string ordinal = id.substr(episode.size() + 1);
  if (ordinal.empty() || ordinal.size() > 18) return std::nullopt;
  if (ordinal.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return episode + '-' + std::to_string(std::stoull(ordinal) + 1);
}

std::string text_at(const json& object, const char* key) {
  const auto entry = object.find(key);
  return entry != object.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

bool promises_evidence(const json& data) {
  const auto evidence = data.find("evidence");
  return evidence != data.end() && evidence->is_object() &&
         text_at(*evidence, "clip_state") == name_of(EvidenceState::pending);
}

}  // namespace

std::optional<std::string> closing_event(const OutboxEvent& last, std::uint64_t sequence,
                                         config::Clock::WallTime now) {
  json event = json::parse(last.body, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || text_at(event, "type") != "dev.vigil.alert.v1") return std::nullopt;
  const auto data = event.find("data");
  if (data == event.end() || !data->is_object()) return std::nullopt;
  const std::string phase = text_at(*data, "phase");
  const bool open = phase == name_of(Phase::begin) || phase == name_of(Phase::update);
  const bool promised = promises_evidence(*data);
  if (!open && !(promised && phase == name_of(Phase::end))) return std::nullopt;
  const auto id = next_id(text_at(event, "id"), text_at(*data, "episode"));
  if (!id) return std::nullopt;
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
  event["id"] = *id;
  event["time"] = config::format_rfc3339(now);
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace vigil::actors
