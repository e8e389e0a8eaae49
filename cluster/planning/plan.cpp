#include "cluster/planning/plan.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/json_line.h"

namespace vigil::cluster {

using nlohmann::json;

std::string print(const NodePlan& plan) {
  json cameras = json::object();
  for (const auto& [name, camera] : plan.cameras) {
    json each = {{"fence", camera.fence}, {"origin_ms", camera.origin_ms}};
    // Most are empty, and there are many cameras.
    for (const auto& [key, text] : {std::pair{"vision", &camera.vision},
                                    {"stream", &camera.stream},
                                    {"generate", &camera.generate},
                                    {"hand_to", &camera.hand_to},
                                    {"rung", &camera.rung},
                                    {"why", &camera.why},
                                    {"why_stream", &camera.why_stream},
                                    {"why_vision", &camera.why_vision},
                                    {"former_stream", &camera.former_stream},
                                    {"former_vision", &camera.former_vision},
                                    {"why_rung", &camera.why_rung}})
      if (!text->empty()) each[key] = *text;
    if (camera.stream_fence > 0) each["stream_fence"] = camera.stream_fence;
    cameras[name] = std::move(each);
  }
  json all = {{"fence", plan.fence}, {"cameras", std::move(cameras)}};
  if (!plan.incarnation.empty()) all["incarnation"] = plan.incarnation;
  return base::json_line(all);
}

NodePlan parse_plan(std::string_view text) {
  try {
    NodePlan plan;
    const json read = json::parse(text);
    plan.fence = read.at("fence");
    plan.incarnation = read.value("incarnation", "");
    for (const auto& [name, each] : read.at("cameras").items()) {
      PlannedCamera camera;
      camera.fence = each.at("fence");
      camera.origin_ms = each.at("origin_ms");
      camera.vision = each.value("vision", "");
      camera.stream = each.value("stream", "");
      camera.generate = each.value("generate", "");
      camera.hand_to = each.value("hand_to", "");
      camera.rung = each.value("rung", "");
      camera.why = each.value("why", "");
      camera.why_stream = each.value("why_stream", "");
      camera.why_vision = each.value("why_vision", "");
      camera.former_stream = each.value("former_stream", "");
      camera.former_vision = each.value("former_vision", "");
      camera.stream_fence = each.value("stream_fence", Fence{0});
      camera.why_rung = each.value("why_rung", "");
      plan.cameras.emplace(name, std::move(camera));
    }
    return plan;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no plan of a node: ") + error.what());
  }
}

Fence settled_up_to(const std::map<Fence, bool>& tried) {
  Fence settled = 0;
  for (const auto& [fence, is_tried] : tried) {
    if (!is_tried) break;
    settled = fence;
  }
  return settled;
}

const std::string& former_vision_of(const PlannedCamera& camera) {
  return camera.former_vision.empty() ? camera.former_stream : camera.former_vision;
}

std::string owner_of(const FleetPlan& plan, const std::string& camera) {
  std::string owner;
  Fence highest = 0;
  for (const auto& [node, own] : plan) {
    const auto entry = own.cameras.find(camera);
    if (entry == own.cameras.end() || (!owner.empty() && entry->second.fence <= highest)) continue;
    owner = node;
    highest = entry->second.fence;
  }
  return owner;
}

}  // namespace vigil::cluster
