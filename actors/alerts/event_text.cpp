#include "actors/alerts/event_text.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/one_line.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

std::string text_member(const json& object, const char* key) {
  const auto entry = object.find(key);
  if (entry == object.end() || !entry->is_string()) return "";
  return base::one_line(entry->get<std::string>());
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

/// The clip, or why there is none, of an event that is about it.
std::string evidence_text(const json& data) {
  const auto evidence = data.find("evidence");
  if (text_member(data, "cause") != "evidence" || evidence == data.end() || !evidence->is_object()) return "";
  const std::string state = text_member(*evidence, "clip_state");
  if (state == "ready") return "  clip " + text_member(*evidence, "clip");
  return state == "failed" ? "  no clip: " + text_member(*evidence, "reason") : "";
}

}  // namespace

std::optional<std::string> event_text(const std::string& body) {
  const json event = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object() || !event.contains("data") || !event.at("data").is_object()) return std::nullopt;
  const json& data = event.at("data");
  const std::string type = text_member(event, "type");
  // "2026-08-01T10:00:12.480Z", without the punctuation.
  std::string time = text_member(event, "time");
  if (time.size() == 24) time = time.substr(0, 10) + ' ' + time.substr(11, 8);
  const bool of_process = type == "dev.vigil.process.v1";
  std::string line =
      padded(time, 19) + "  " + padded(text_member(data, of_process ? "process" : "camera"), 14) + "  ";
  if (of_process) {
    line += text_member(data, "state") + "  " + text_member(data, "reason");
    const std::string text = text_member(data, "text");
    return text.empty() ? line : line + "  " + text;
  }
  if (type == "dev.vigil.status.v1") {
    line += text_member(data, "state");
    const std::string reason = text_member(data, "reason");
    return reason.empty() ? line : line + "  " + reason;
  }
  if (type != "dev.vigil.alert.v1") return std::nullopt;
  char score[16] = "    ";
  if (data.contains("score") && data.at("score").is_number()) {
    std::snprintf(score, sizeof score, "%4.2f", std::clamp(data.at("score").get<double>(), -9.0, 9.0));
  }
  line += padded(text_member(data, "rule"), 12) + "  " + padded(text_member(data, "phase"), 6) + "  " +
          score + "  " + text_member(data, "title");
  const std::string description = text_member(data, "description");
  if (!description.empty()) line += "  " + description;
  return line + evidence_text(data);
}

std::string event_line(const std::string& body) {
  const auto is_control = [](unsigned char c) { return c < 32; };
  if (std::none_of(body.begin(), body.end(), is_control)) return body;
  const auto event = nlohmann::ordered_json::parse(body, nullptr, /*allow_exceptions=*/false);
  return event.is_discarded() ? base::one_line(body) : event.dump();
}

}  // namespace vigil::actors
