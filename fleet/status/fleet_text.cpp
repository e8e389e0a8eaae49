#include "fleet/status/fleet_text.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/status/text_parts.h"
#include "cluster/membership/config_agreement.h"

namespace vigil::fleet {
namespace {

using actors::number;
using actors::plain;
using actors::Row;
using actors::span;
using nlohmann::json;

std::string time_of(const json& seconds) {
  return seconds.is_null() ? "-" : span(seconds.get<double>());
}

std::string joined(const json& words) {
  std::string text;
  for (const json& word : words) text.append(text.empty() ? "" : ",").append(plain(word));
  return text;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : plain(text);
}

/// "3" or "3/40".
std::string of_most(const json& has, const json& most) {
  return number(has) + (most.get<double>() > 0 ? '/' + number(most) : "");
}

std::string counts(const json& of) {
  std::string text;
  for (const auto& [name, count] : of.items())
    if (count.get<std::size_t>() > 0)
      text += (text.empty() ? "" : ", ") + number(count.get<double>()) + ' ' + plain(name);
  return text.empty() ? "none" : text;
}

/// "3 (1f2e3d4c5b6a)".
std::string configuration_of(const json& of) {
  const std::string runs = of.at("runs");
  return runs.empty() ? "-" : number(of.at("version")) + " (" + plain(cluster::shown_hash(runs)) + ')';
}

/// Why a node that is a member waits, as far as it tells; empty if it does not wait.
std::string waits_of(const json& node, const json& fleet) {
  if (node.at("state") != "joining") return {};
  const json& own = node.at("configuration");
  if (fleet.at("version") == 0) return "the fleet has no configuration yet";
  const std::string runs = fleet.at("runs"), seen = own.at("seen");
  if (runs == seen) return "it does not run by the fleet's configuration yet";
  return "it has read the configuration " + plain(cluster::shown_hash(seen)) + ", and the fleet runs by " +
         plain(cluster::shown_hash(runs)) + " (vigil config status)";
}

/// What of a node a person should look at; `fleet`: the configuration that it runs by.
std::string remark_of(const json& node, const json& fleet) {
  std::string remark = plain(node.at("fault"));
  const auto add = [&](const std::string& more) { remark += (remark.empty() ? "" : "; ") + more; };
  // Nodes of builds before this one do not say so.
  const bool is_idle_gateway = node.value("serves", json()) == false;
  if (node.at("answers").get<bool>()) {
    if (node.at("membership") != "member") add(plain(node.at("membership")));
    const std::string waits = waits_of(node, fleet);
    if (!node.at("ready").get<bool>()) add("not ready" + (waits.empty() ? "" : ": " + waits));
    if (is_idle_gateway) {
      const std::string why = node.at("gateway");
      add("its gateway does not serve" + (why.empty() ? "" : ": " + plain(why)));
    }
    if (!node.at("registry_answers").get<bool>()) add("the registry does not answer it");
  } else if (is_idle_gateway) {
    add("its gateway does not serve");
  }
  // Nodes of versions before say nothing of it.
  if (node.value("apart", false)) add("no way to or from any node with which it deals: given nothing");
  if (const json others = node.value("unreachable", json::array()); !others.empty())
    add("no way to " + joined(others));
  if (node.value("clock_off", false)) add("its clock is apart: given nothing more");
  const std::string fault = node.at("configuration").at("fault");
  if (!fault.empty()) add("cannot take the configuration: " + plain(fault));
  return remark;
}

std::string head(const json& fleet) {
  const json& registry = fleet.at("registry");
  const std::string planner = fleet.at("planner");
  std::string text = "fleet " + plain(fleet.at("fleet")) + ", as node " + plain(fleet.at("node")) +
                     " sees it; " + (planner.empty() ? "nobody plans" : "node " + plain(planner) + " plans") +
                     '\n';
  if (!registry.at("answers").get<bool>()) {
    text += "the registry does not answer, so that nothing moves: " + plain(registry.at("fault")) + '\n';
    text += registry.at("plan_seconds").is_null()
                ? "who has what is what those nodes say that answer\n"
                : "who has what is what nodes say, and of others what the registry told " +
                      time_of(registry.at("plan_seconds")) + " ago\n";
  }
  const std::string remark = registry.at("remark");
  if (!remark.empty()) text += "of the registry: " + plain(remark) + '\n';
  for (const json& line : fleet.at("configuration").at("waits")) text += plain(line) + '\n';
  return text;
}

std::string nodes_table(const json& fleet) {
  std::vector<Row> rows{
      {"NODE", "STATE", "ROLES", "CAMERAS", "STREAMS", "LEASE", "HEARD", "VERSION", "CONFIG", "REMARK"}};
  for (const json& node : fleet.at("nodes"))
    rows.push_back({plain(node.at("node")), plain(node.at("state")), joined(node.at("roles")),
                    of_most(node.at("cameras"), node.at("cameras_most")),
                    of_most(node.at("streams"), node.at("streams_most")), time_of(node.at("lease_seconds")),
                    time_of(node.at("heard_seconds")), plain(node.at("version")),
                    configuration_of(node.at("configuration")), remark_of(node, fleet.at("configuration"))});
  std::string text = actors::table(rows);
  if (const auto there = fleet.at("nodes_there").get<std::size_t>(); there > fleet.at("nodes").size())
    text += "and " + std::to_string(there - fleet.at("nodes").size()) + " other nodes\n";
  return text;
}

std::string cameras_summary(const json& cameras) {
  return "cameras   " + number(cameras.at("wanted")) + ": " + counts(cameras.at("states")) + "\nplan      " +
         number(cameras.at("planned")) + " with a node, " + number(cameras.at("unplaced")) + " without, " +
         number(cameras.at("without_stream")) + " that nobody computes, " +
         number(cameras.at("handing_over")) + " on their way\nof them    " + counts(cameras.at("rungs")) +
         '\n';
}

std::string cameras_table(const json& list) {
  std::vector<Row> rows{{"CAMERA", "NODE", "STREAM", "FENCE", "STATE", "SINCE", "RUNG", "WHY"}};
  for (const json& camera : list) {
    const std::string former = camera.at("former"), stream = camera.at("stream");
    // Each once; and why it had what it has no longer is of no use.
    std::set<std::string> told;
    std::string why;
    for (const char* part : {"reason", "why", "why_stream", "why_rung", "why_unplaced"}) {
      const bool is_of_stream = std::string_view(part) == "why_stream";
      const std::string text = plain(camera.at(part));
      if (text.empty() || (is_of_stream && stream.empty()) || !told.insert(text).second) continue;
      why += (why.empty() ? "" : "; ") + std::string(is_of_stream ? "stream: " : "") + text;
    }
    rows.push_back({plain(camera.at("camera")),
                    or_dash(camera.at("owner")) + (former.empty() ? "" : " from " + plain(former)),
                    or_dash(camera.at("stream")), number(camera.at("fence")), plain(camera.at("state")),
                    time_of(camera.at("since_seconds")), or_dash(camera.at("rung")), why});
  }
  return actors::table(rows);
}

}  // namespace

std::optional<std::string> fleet_text(const std::string& text) {
  try {
    const json fleet = json::parse(text);
    const json none = json::array();
    const json& list = fleet.contains("list") ? fleet.at("list") : none;
    if (list.size() == 1 && list[0].contains("explanation")) {
      std::string sentences;
      for (const json& sentence : list[0].at("explanation")) sentences += plain(sentence) + '\n';
      return sentences;
    }
    std::string result =
        head(fleet) + '\n' + nodes_table(fleet) + '\n' + cameras_summary(fleet.at("cameras"));
    if (!fleet.contains("list")) return result;
    result += '\n' + cameras_table(list);
    if (!fleet.at("next").is_null())
      result += "there are more: go on with --after " + plain(fleet.at("next")) + '\n';
    return result;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace vigil::fleet
