#include "fleet/status/node_answer.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/json_line.h"

namespace vigil::fleet {
namespace {

using nlohmann::json;

base::Duration milliseconds(const json& value) {
  return base::Duration(value.get<base::Duration::rep>());
}

}  // namespace

std::string print(const NodeQuestion& question) {
  return base::json_line({{"cameras", question.cameras}, {"plan", question.plan}});
}

NodeQuestion parse_question(std::string_view text) {
  try {
    const json read = json::parse(text);
    NodeQuestion question{read.at("cameras"), read.at("plan")};
    if (question.cameras.size() > NodeQuestion::kMost) throw std::runtime_error("too many cameras at once");
    return question;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no question about a node: ") + error.what());
  }
}

std::string print(const NodeAnswer& answer) {
  json cameras = json::object();
  for (const auto& [name, camera] : answer.cameras)
    cameras[name] = {{"state", camera.state}, {"reason", camera.reason}, {"age_ms", camera.age.count()}};
  json told = {{"membership", answer.membership},
               {"registry_answers", answer.registry_answers},
               {"registry_remark", answer.registry_remark},
               {"ready", answer.is_ready},
               {"gateway", answer.gateway},
               {"states", answer.states},
               {"cameras", std::move(cameras)},
               {"why_unplaced", answer.why_unplaced}};
  if (answer.lease_left) told["lease_ms"] = answer.lease_left->count();
  if (answer.unplaced) told["unplaced"] = *answer.unplaced;
  if (answer.plan) told["plan"] = cluster::print(*answer.plan);
  return base::json_line(told);
}

NodeAnswer parse_node_answer(std::string_view text) {
  try {
    const json read = json::parse(text);
    NodeAnswer answer;
    answer.membership = read.at("membership");
    if (read.contains("lease_ms")) answer.lease_left = milliseconds(read.at("lease_ms"));
    answer.registry_answers = read.at("registry_answers");
    answer.registry_remark = read.at("registry_remark");
    answer.is_ready = read.at("ready");
    // Builds before this one do not tell.
    answer.gateway = read.value("gateway", "");
    answer.states = read.at("states");
    for (const auto& [name, camera] : read.at("cameras").items())
      answer.cameras[name] = {camera.at("state"), camera.at("reason"), milliseconds(camera.at("age_ms"))};
    if (read.contains("unplaced")) answer.unplaced = read.at("unplaced").get<std::size_t>();
    answer.why_unplaced = read.at("why_unplaced");
    if (read.contains("plan")) answer.plan = cluster::parse_plan(read.at("plan").get<std::string>());
    return answer;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no answer of a node: ") + error.what());
  }
}

NodeAnswer answer_of(const cluster::FleetMember& member, const cluster::PlanKeeper& plan,
                     const actors::StatusBoard& board, const NodeQuestion& question) {
  NodeAnswer answer{.membership = std::string(cluster::name_of(member.state())),
                    .lease_left = member.lease_left(),
                    .registry_answers = member.registry_answers(),
                    .registry_remark = member.registry_remark(),
                    .is_ready = board.ready(),
                    .gateway = board.gateway()};
  const std::map<std::string, actors::CameraState> states = board.cameras();
  for (const auto& [name, entry] : plan.own().cameras) {
    if (!entry.hand_to.empty()) continue;
    const auto state = states.find(name);
    ++answer.states[state == states.end() ? "unknown" : std::string(actors::name_of(state->second))];
  }
  for (const auto& [name, camera] : board.cameras(question.cameras))
    answer.cameras[name] = {std::string(actors::name_of(camera.state)), camera.reason, camera.age};
  if (member.is_planner()) {
    answer.unplaced = plan.unplaced().size();
    for (const std::string& name : question.cameras)
      if (const auto why = plan.unplaced().find(name); why != plan.unplaced().end())
        answer.why_unplaced.insert(*why);
  }
  if (question.plan) answer.plan = plan.own();
  return answer;
}

}  // namespace vigil::fleet
