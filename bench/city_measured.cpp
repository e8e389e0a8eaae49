#include "bench/city_measured.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cluster/planning/planner.h"
#include "fleet/status/fleet_picture.h"

namespace vigil::bench {
namespace {

constexpr int kRuns = 5;

/// Seconds, the median.
double timed(const base::Clock& clock, const std::function<void()>& work) {
  std::vector<double> times;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = clock.now();
    work();
    times.push_back(std::chrono::duration<double>(clock.now() - begin).count());
  }
  std::ranges::sort(times);
  return times[kRuns / 2];
}

}  // namespace

CityPhase measured_city_costs(const CityOptions& options, const base::Clock& clock) {
  CityPhase phase{.name = "measured", .figures = {}};
  const auto add = [&](const std::string& name, const std::string& unit, double value) {
    phase.figures.push_back({name, unit, value, 0});
  };
  cluster::PlanningInput input;
  for (const cluster::NodeRecord& record : city_records(options)) input.nodes.emplace(record.name, record);
  for (std::size_t i = 0; i < options.cameras; ++i) input.cameras.push_back({CityCameras::name_of(i)});
  input.wall = clock.wall();

  std::vector<std::string> records;
  records.reserve(input.nodes.size());
  for (const auto& [name, record] : input.nodes) records.push_back(print(record));
  const auto bytes_of = [](const std::vector<std::string>& texts) {
    std::size_t bytes = 0;
    for (const std::string& text : texts) bytes += text.size();
    return static_cast<double>(bytes);
  };
  const double record_time = timed(clock, [&] {
    for (const std::string& text : records) cluster::parse_node(text);
  });
  add("record_bytes", "B", bytes_of(records) / static_cast<double>(records.size()));
  add("parse_record", "us", record_time / static_cast<double>(records.size()) * 1e6);

  const auto adopt = [&](const cluster::Planning& planning) {
    for (const cluster::PlanChange& change : planning.changes)
      if (change.plan)
        input.plan[change.node] = *change.plan;
      else
        input.plan.erase(change.node);
  };
  cluster::Planning planning;
  add("plan_all", "s", timed(clock, [&] { planning = plan_fleet(input, {}); }));
  adopt(planning);
  add("plan_nothing_new", "s", timed(clock, [&] { planning = plan_fleet(input, {}); }));
  std::vector<std::string> plans;
  const double print_time = timed(clock, [&] {
    plans.clear();
    for (const auto& [name, plan] : input.plan) plans.push_back(print(plan));
  });
  const double parse_time = timed(clock, [&] {
    for (const std::string& text : plans) cluster::parse_plan(text);
  });
  const double bytes = bytes_of(plans);
  add("plans_bytes", "B", bytes);
  add("largest_plan_bytes", "B", static_cast<double>(std::ranges::max(plans, {}, &std::string::size).size()));
  add("print_plan_byte", "ns", print_time / bytes * 1e9);
  add("parse_plan_byte", "ns", parse_time / bytes * 1e9);

  // A page of the fleet, as a gateway makes it.
  const auto fleet_plan = std::make_shared<const cluster::FleetPlan>(input.plan);
  std::shared_ptr<const fleet::PlanIndex> index;
  const double index_time = timed(clock, [&] { index = std::make_shared<fleet::PlanIndex>(fleet_plan); });
  add("index_camera", "us", index_time / static_cast<double>(options.cameras) * 1e6);
  const fleet::NodeAnswer answer{.membership = "member",
                                 .lease_left = options.lease,
                                 .registry_answers = true,
                                 .is_ready = true,
                                 .states = {{"live", 250}, {"down", 1}}};
  const std::string answered = print(answer);
  constexpr int kAnswers = 1000;
  add("print_answer", "us",
      timed(clock,
            [&] {
              for (int i = 0; i < kAnswers; ++i) print(answer);
            }) /
          kAnswers * 1e6);
  add("parse_answer", "us",
      timed(clock,
            [&] {
              for (int i = 0; i < kAnswers; ++i) fleet::parse_node_answer(answered);
            }) /
          kAnswers * 1e6);
  auto standing = std::make_shared<fleet::NodeStanding>();
  standing->fleet = "city";
  standing->record = input.nodes.begin()->second;
  standing->membership = cluster::Membership::member;
  standing->registry_answers = true;
  standing->nodes = input.nodes;
  fleet::FleetPicture picture;
  picture.standing = standing;
  picture.plan = index;
  picture.plan_age = base::Duration(0);
  for (const auto& [name, record] : input.nodes) picture.nodes[name] = {answer, "", base::Duration(0)};
  std::string page;
  const double page_time = timed(clock, [&] {
    const fleet::FleetPage shown = page_of({}, *index, {});
    page = print(picture, {}, shown);
  });
  add("print_page", "ms", page_time * 1e3);
  add("page_bytes", "B", static_cast<double>(page.size()));

  input.nodes.erase(input.nodes.begin());
  add("plan_node_lost", "s", timed(clock, [&] { planning = plan_fleet(input, {}); }));
  return phase;
}

}  // namespace vigil::bench
