#include "bench/city_measured.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "cluster/planning/planner.h"

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
  input.nodes.erase(input.nodes.begin());
  add("plan_node_lost", "s", timed(clock, [&] { planning = plan_fleet(input, {}); }));
  return phase;
}

}  // namespace vigil::bench
