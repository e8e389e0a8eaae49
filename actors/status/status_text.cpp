#include "actors/status/status_text.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "actors/status/text_parts.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

/// "name 3, other 4", without what is 0.
std::string pairs(const json& counts) {
  std::string text;
  for (const auto& [name, count] : counts.items())
    if (count.get<double>() != 0)
      text += (text.empty() ? "" : ", ") + plain(name) + ' ' + number(count.get<double>());
  return text.empty() ? "none" : text;
}

}  // namespace

std::optional<std::string> status_text(const std::string& text) {
  try {
    const json status = json::parse(text);
    std::string result = plain(status.at("phase")) + " for " +
                         span(status.at("uptime_seconds").get<double>()) +
                         (status.at("ready").get<bool>() ? ", ready" : ", not ready") + '\n';
    if (status.contains("fleet")) {
      const json& fleet = status.at("fleet");
      const std::string planner = fleet.at("planner");
      result += "node " + plain(fleet.at("node")) + " of fleet " + plain(fleet.at("name")) + ": " +
                plain(fleet.at("membership")) + ", " + plain(fleet.at("state")) + "; " +
                (planner.empty() ? "nobody plans" : "node " + plain(planner) + " plans") +
                (fleet.at("registry").at("answers").get<bool>() ? "" : "; the registry does not answer") +
                '\n';
      if (fleet.at("membership") == "member" && fleet.at("state") == "joining")
        result += "it waits: it does not run by the fleet's configuration (vigil config status)\n";
      if (const std::string remark = fleet.at("registry").at("remark"); !remark.empty())
        result += "of the registry: " + plain(remark) + '\n';
      if (const std::string why_not = fleet.value("gateway", ""); !why_not.empty())
        result += "its gateway does not serve: " + plain(why_not) + '\n';
      if (const std::string waits = fleet.value("events", ""); !waits.empty())
        result += "events wait: " + plain(waits) + '\n';
    }
    std::string late;
    for (const json& name : status.value("late", json::array()))
      late += (late.empty() ? "" : ", ") + plain(name);
    if (!late.empty()) result += "not heard of for too long: " + late + '\n';
    const std::string failure = status.at("outbox").at("failure");
    if (!failure.empty()) result += "the outbox fails: " + plain(failure) + '\n';
    if (status.at("outbox").at("in_memory").get<bool>())
      result += "events are kept in memory and not on the disk: the log says why\n";
    if (!status.at("configuration").at("current").get<bool>())
      result += "the configuration's file was refused, and an earlier one goes on: the log says why\n";
    for (const json& device : status.value("devices", json::array()))
      if (device.at("state") != "up")
        result += plain(device.at("device")) + " is " + plain(device.at("state")) + " for " +
                  span(device.at("since_seconds")) + ": " + plain(device.at("reason")) + '\n';
    result += '\n';
    std::vector<Row> rows{
        {"CAMERA", "TENANT", "STATE", "SINCE", "FPS", "FRAMES", "DROPPED", "RECONNECTS", "REASON"}};
    for (const json& camera : status.at("cameras"))
      rows.push_back({plain(camera.at("camera")), plain(camera.at("tenant")), plain(camera.at("state")),
                      span(camera.at("since_seconds")), number(camera.at("fps"), 1),
                      number(camera.at("frames")), number(camera.at("dropped")),
                      number(camera.at("reconnects")), plain(camera.at("reason"))});
    result += table(rows);
    const json& latency = status.at("window_latency_seconds");
    const auto time = [](const json& value) {
      return value.is_null() ? std::string("-") : number(value.get<double>(), 2) + " s";
    };
    result += "\nwaiting   " + pairs(status.at("queues")) + "\nwindows   " + pairs(status.at("windows"));
    if (!latency.is_null())
      result += "\nlatency   half within " + time(latency.at("p50")) + ", 95 % within " +
                time(latency.at("p95")) + ", from the last frame to the answers";
    result += "\nKV cache  " + number(100 * status.at("kv_usage").get<double>()) + " % in use\nalerts    " +
              number(status.at("alerts")) + ", " + number(status.at("outbox").at("pending")) +
              " events not published yet\n";
    return result;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace vigil::actors
