#include "actors/alerts/closing.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

std::vector<OutboxEvent> last_of_each_episode(std::span<const OutboxEvent> events) {
  std::vector<std::pair<std::string, OutboxEvent>> last;
  for (const OutboxEvent& event : events) {
    const json body = json::parse(event.body, nullptr, /*allow_exceptions=*/false);
    if (!body.is_object()) continue;
    const auto data = body.find("data");
    if (data == body.end() || !data->is_object()) continue;
    const std::string episode = text_at(*data, "episode");
    if (episode.empty()) continue;
    const auto known =
        std::find_if(last.begin(), last.end(), [&](const auto& entry) { return entry.first == episode; });
    if (known == last.end()) {
      last.emplace_back(episode, event);
    } else {
      known->second = event;
    }
  }
  std::vector<OutboxEvent> result;
  result.reserve(last.size());
  for (auto& entry : last) result.push_back(std::move(entry.second));
  return result;
}

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
