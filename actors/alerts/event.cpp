#include "actors/alerts/event.h"

#include <array>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

#include "config/fields.h"

namespace vigil::actors {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

// FNV-1a: the same on every machine, which std::hash does not promise.
std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string source_of(const config::CameraSettings& camera) {
  return "/site/" + camera.tenant() + "/camera/" + camera.name;
}

double epoch_seconds(config::Clock::WallTime time) {
  return static_cast<double>(duration_cast<milliseconds>(time.time_since_epoch()).count()) / 1000.0;
}

// What a model or an operator wrote need not be UTF-8; the event still has to be JSON.
std::string text_of(const json& event) {
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

json envelope(const config::CameraSettings& camera, std::string id, const char* type, std::string subject,
              config::Clock::WallTime time) {
  return {{"specversion", "1.0"},
          {"id", std::move(id)},
          {"source", source_of(camera)},
          {"type", type},
          {"subject", std::move(subject)},
          {"time", rfc3339(time)},
          {"datacontenttype", "application/json"}};
}

}  // namespace

std::string rfc3339(config::Clock::WallTime time) {
  const auto instant = std::chrono::floor<milliseconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(instant - day);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

std::string episode_id(const std::string& topic, config::Clock::WallTime start, std::uint64_t episode) {
  constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const auto time = static_cast<std::uint64_t>(duration_cast<milliseconds>(start.time_since_epoch()).count());
  const std::string what = topic + '#' + std::to_string(episode);
  const std::uint64_t high = fnv1a(what);
  const std::uint64_t low = fnv1a(what, high);
  std::string id(26, '0');
  // 48 bits of time in 10 characters, then 80 bits of identity in 16: 64 of the first hash, 16 of the second.
  for (std::size_t i = 0; i < 10; ++i) id[9 - i] = kAlphabet[(time >> (5 * i)) & 31U];
  for (std::size_t i = 0; i < 12; ++i) id[10 + i] = kAlphabet[(high >> (59 - 5 * i)) & 31U];
  const std::uint64_t rest = (high & 15U) << 16U | (low & 0xffffU);
  for (std::size_t i = 0; i < 4; ++i) id[22 + i] = kAlphabet[(rest >> (15 - 5 * i)) & 31U];
  return id;
}

std::string alert_event(const WindowAnswers& window, std::size_t rule_index, const Emission& emission,
                        const std::optional<std::string>& text, const ModelIdentity& model,
                        std::uint64_t sequence, config::Clock::TimePoint now) {
  const config::CameraSettings& camera = *window.camera;
  const config::RuleSettings& rule = camera.rules.at(rule_index);
  const std::string episode = episode_id(alert_topic(camera, rule), emission.start, emission.episode);
  json event = envelope(camera, episode + '-' + std::to_string(emission.ordinal), "dev.vigil.alert.v1",
                        "rule/" + rule.name, window.end_wall);
  event["data"] = {
      {"phase", name_of(emission.phase)},
      {"seq", sequence},
      {"episode", episode},
      {"camera", camera.name},
      {"tenant", camera.tenant()},
      {"labels", camera.labels},
      {"rule", rule.name},
      {"rule_version", 1},
      {"severity", config::name_of(rule.severity)},
      {"score", emission.score},
      {"confirmations", emission.confirmations},
      {"start_time", epoch_seconds(emission.start)},
      {"end_time", emission.end ? json(epoch_seconds(*emission.end)) : json(nullptr)},
      {"title", rule.prompt},
      {"description", text ? json(*text) : json(nullptr)},
      {"window",
       {{"start", rfc3339(window.start_wall)}, {"end", rfc3339(window.end_wall)}, {"frames", window.frames}}},
      {"evidence", nullptr},
      {"model", {{"id", model.id}, {"prompt_hash", hex(fnv1a(rule.prompt))}}},
      {"latency_ms",
       {{"capture_to_alert", duration_cast<milliseconds>(now - window.captured.steady).count()}}},
  };
  return text_of(event);
}

std::string status_event(const config::CameraSettings& camera, CameraState state, std::string_view reason,
                         std::uint64_t sequence, config::Clock::WallTime time) {
  // The sequence outlives the process, so that no two changes of a camera share an id.
  json event = envelope(camera, "status-" + std::to_string(sequence), "dev.vigil.status.v1", "camera", time);
  event["data"] = {{"seq", sequence},
                   {"camera", camera.name},
                   {"tenant", camera.tenant()},
                   {"labels", camera.labels},
                   {"state", std::string(name_of(state))},
                   {"reason", std::string(reason)}};
  return text_of(event);
}

}  // namespace vigil::actors
