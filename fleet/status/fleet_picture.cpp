#include "fleet/status/fleet_picture.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json_line.h"
#include "fleet/status/camera_view.h"

namespace vigil::fleet {
namespace {

using nlohmann::json;

/// Nodes that are told of one by one.
constexpr std::size_t kMostNodes = 2000;

json seconds_of(const std::optional<base::Duration>& time) {
  return time ? json(base::seconds(*time)) : json();
}

json node_json(const FleetPicture& picture, const cluster::NodeRecord& record) {
  json roles = json::array();
  for (const cluster::NodeRole role : record.roles) roles.push_back(cluster::name_of(role));
  const auto found = picture.nodes.find(record.name);
  const FleetPicture::Node node =
      found == picture.nodes.end() ? FleetPicture::Node{{}, "it was not asked", {}} : found->second;
  const auto load = picture.plan->loads().find(record.name);
  const PlanIndex::Load has = load == picture.plan->loads().end() ? PlanIndex::Load() : load->second;
  const bool is_gateway = record.roles.contains(cluster::NodeRole::gateway);
  return {{"node", record.name},
          {"roles", roles},
          {"serves", is_gateway ? json(record.serves) : json()},
          {"gateway", node.answer ? json(node.answer->gateway) : json()},
          {"state", cluster::name_of(record.state)},
          {"answers", node.answer.has_value()},
          {"fault", node.fault},
          {"membership", node.answer ? json(node.answer->membership) : json()},
          {"ready", node.answer ? json(node.answer->is_ready) : json()},
          {"lease_seconds", node.answer ? seconds_of(node.answer->lease_left) : json()},
          {"heard_seconds", seconds_of(node.heard)},
          {"registry_answers", node.answer ? json(node.answer->registry_answers) : json()},
          {"address", cluster::text_of(record.control)},
          {"version", record.version},
          {"commit", record.commit},
          {"weight", record.weight},
          {"cameras", has.cameras},
          {"cameras_most", record.cameras},
          {"streams", has.streams},
          {"streams_most", record.streams},
          {"unreachable", record.unreachable},
          {"apart", record.apart},
          {"clock_off", record.clock_off},
          {"configuration",
           {{"runs", record.config},
            {"version", record.config_version},
            {"seen", record.config_seen},
            {"fault", record.config_fault}}}};
}

json camera_json(const CameraView& view) {
  const cluster::PlannedCamera none;
  const cluster::PlannedCamera& entry = view.place == nullptr ? none : *view.place->entry;
  return {{"camera", view.camera},
          {"owner", view.place == nullptr ? "" : std::string(view.place->owner)},
          {"former", view.place == nullptr ? "" : std::string(view.place->former)},
          {"fence", entry.fence},
          {"vision", entry.vision},
          {"stream", entry.stream},
          {"generate", entry.generate},
          {"rung", view.place != nullptr && entry.rung.empty() ? std::string(cluster::kFull) : entry.rung},
          {"state", view.state},
          {"reason", view.reason},
          {"since_seconds", seconds_of(view.age)},
          {"why", entry.why},
          {"why_stream", entry.why_stream},
          {"why_rung", entry.why_rung},
          {"why_unplaced", view.why_unplaced}};
}

/// By state, as their owners say; "unknown" are those whose owners do not answer, too.
json states_json(const FleetPicture& picture) {
  std::map<std::string, std::size_t> states{{"connecting", 0}, {"up", 0},      {"stalled", 0},
                                            {"down", 0},       {"unknown", 0}, {"unplaced", 0}};
  std::size_t told = 0;
  for (const auto& [name, node] : picture.nodes) {
    if (!node.answer) continue;
    for (const auto& [state, count] : node.answer->states) {
      states[states.contains(state) ? state : "unknown"] += count;
      told += count;
    }
  }
  const std::size_t placed = picture.plan->cameras().size();
  states["unknown"] += placed > told ? placed - told : 0;
  return states;
}

std::size_t without_node(const PlanIndex& plan, const std::vector<std::string>& wanted) {
  return static_cast<std::size_t>(
      std::ranges::count_if(wanted, [&](const std::string& name) { return plan.find(name) == nullptr; }));
}

}  // namespace

FleetPage page_of(const FleetQuery& query, const PlanIndex& plan, const std::vector<std::string>& wanted) {
  FleetPage page;
  if (!query.camera.empty()) page.cameras = {query.camera};
  if (!query.cameras) return page;
  auto planned =
      std::ranges::upper_bound(plan.cameras(), std::string_view(query.after), {}, &PlannedPlace::camera);
  auto other = std::ranges::upper_bound(wanted, query.after);
  while (planned != plan.cameras().end() || other != wanted.end()) {
    if (page.cameras.size() == query.limit) {
      page.more = true;
      return page;
    }
    const bool is_planned = other == wanted.end() ||
                            (planned != plan.cameras().end() && planned->camera <= std::string_view(*other));
    if (is_planned) {
      if (other != wanted.end() && planned->camera == *other) ++other;
      page.cameras.emplace_back((planned++)->camera);
    } else {
      page.cameras.push_back(*other++);
    }
  }
  return page;
}

std::map<std::string, NodeQuestion> questions_of(const NodeStanding& standing, const PlanIndex& plan,
                                                 const FleetPage& page, bool wants_plans) {
  std::map<std::string, NodeQuestion> questions;
  for (const auto& [name, record] : standing.nodes) questions[name].plan = wants_plans;
  const auto ask = [&](std::string_view node, const std::string& camera) {
    const auto question = questions.find(std::string(node));
    if (question == questions.end()) return;
    std::vector<std::string>& cameras = question->second.cameras;
    if (cameras.empty() || cameras.back() != camera) cameras.push_back(camera);
  };
  for (const std::string& camera : page.cameras) {
    const PlannedPlace* const place = plan.find(camera);
    if (place != nullptr) ask(place->owner, camera);
    // Where nodes tell their plans, any of them may be its owner.
    if (wants_plans)
      for (const auto& [name, question] : questions) ask(name, camera);
    if (place == nullptr || place->entry->stream.empty()) ask(standing.planner, camera);
  }
  return questions;
}

std::shared_ptr<const cluster::FleetPlan> plan_told(const cluster::FleetPlan& known,
                                                    const std::map<std::string, FleetPicture::Node>& nodes) {
  const auto told = std::make_shared<cluster::FleetPlan>(known);
  for (const auto& [name, node] : nodes)
    if (node.answer && node.answer->plan) (*told)[name] = *node.answer->plan;
  return told;
}

bool knows(const FleetPicture& picture, const std::string& camera) {
  return picture.plan->find(camera) != nullptr ||
         std::ranges::binary_search(picture.standing->wanted, camera);
}

CameraView view_of(const FleetPicture& picture, const std::string& camera) {
  CameraView view{.camera = camera, .place = picture.plan->find(camera)};
  const std::string& planner = picture.standing->planner;
  const auto is_stranger = [&](const std::string& node) {
    return picture.standing->strangers.contains(node);
  };
  if (view.place == nullptr || view.place->entry->stream.empty()) {
    const auto plans = picture.nodes.find(planner);
    const bool is_told = plans != picture.nodes.end() && plans->second.answer;
    const std::string* why = nullptr;
    if (is_told)
      if (const auto found = plans->second.answer->why_unplaced.find(camera);
          found != plans->second.answer->why_unplaced.end())
        why = &found->second;
    if (view.place == nullptr && why == nullptr && !knows(picture, camera)) {
      view.state = "unknown";
      return view;
    }
    view.why_unplaced = why != nullptr    ? *why
                        : planner.empty() ? "nobody plans"
                        : is_told         ? "node " + planner + ", which plans, has not come to it yet"
                        : is_stranger(planner)
                            ? "node " + planner + ", which plans, is not asked by this one: ask a gateway"
                            : "node " + planner + ", which plans, does not say";
  }
  if (view.place == nullptr) {
    view.state = "unplaced";
    view.reason = view.why_unplaced;
    return view;
  }
  view.state = "unknown";
  const std::string owner(view.place->owner);
  const auto node = picture.nodes.find(owner);
  if (!picture.standing->nodes.contains(owner)) {
    view.reason = "its node " + owner + " is gone";
  } else if (is_stranger(owner)) {
    view.reason = "its node " + owner + " is not asked by this one: ask a gateway";
  } else if (node == picture.nodes.end() || !node->second.answer) {
    view.reason = "its node " + owner + " does not answer";
  } else if (const auto told = node->second.answer->cameras.find(camera);
             told == node->second.answer->cameras.end()) {
    view.reason = "its node " + owner + " has not begun with it";
  } else {
    view.state = told->second.state;
    view.reason = told->second.reason;
    view.age = told->second.age;
  }
  return view;
}

std::string print(const FleetPicture& picture, const FleetQuery& query, const FleetPage& page) {
  const NodeStanding& standing = *picture.standing;
  json nodes = json::array();
  std::size_t silent = 0;
  for (const auto& [name, record] : standing.nodes) {
    const auto node = picture.nodes.find(name);
    if (!standing.strangers.contains(name) && (node == picture.nodes.end() || !node->second.answer)) ++silent;
    if (nodes.size() < kMostNodes) nodes.push_back(node_json(picture, record));
  }
  const std::size_t unplaced = without_node(*picture.plan, standing.wanted);
  json states = states_json(picture);
  states["unplaced"] = unplaced;
  json told = {{"fleet", standing.fleet},
               {"node", standing.record.name},
               {"registry",
                {{"answers", picture.registry_fault.empty()},
                 {"fault", picture.registry_fault},
                 {"remark", standing.registry_remark},
                 {"plan_seconds", seconds_of(picture.plan_age)}}},
               {"planner", standing.planner},
               {"configuration",
                {{"runs", standing.configuration.hash},
                 {"version", standing.configuration.version},
                 {"waits", standing.configuration_waits}}},
               {"nodes", std::move(nodes)},
               {"nodes_there", standing.nodes.size()},
               {"nodes_silent", silent},
               {"cameras",
                {{"wanted", standing.wanted.size()},
                 {"planned", picture.plan->cameras().size()},
                 {"unplaced", unplaced},
                 {"without_stream", picture.plan->without_stream()},
                 {"handing_over", picture.plan->handing_over()},
                 {"states", std::move(states)},
                 {"rungs", picture.plan->rungs()}}}};
  if (query.cameras || !query.camera.empty()) {
    json list = json::array();
    for (const std::string& camera : page.cameras) list.push_back(camera_json(view_of(picture, camera)));
    if (!query.camera.empty()) list[0]["explanation"] = explain(picture, query.camera);
    told["list"] = std::move(list);
    told["next"] = page.more ? json(page.cameras.back()) : json();
  }
  return base::json_line(told);
}

}  // namespace vigil::fleet
