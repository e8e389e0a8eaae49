#include "bench/city.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

using ::testing::IsEmpty;

CityOptions small() {
  return {.cameras = 500,
          .nodes = 20,
          .gateways = 2,
          .upgrades_at_once = 2,
          .upgrades = 6,
          .steady = std::chrono::minutes(2)};
}

TEST(City, Runs) {
  City city(small());
  std::map<std::string, CityPhase> phases;
  city.run([&](const CityPhase& phase) {
    phases[phase.name] = phase;
    for (const auto& figure : phase.figures)
      std::cout << phase.name << ' ' << figure.name << ' ' << figure.value << ' ' << figure.unit << '\n';
  });
  EXPECT_THAT(city.faults(), IsEmpty());
}

}  // namespace
}  // namespace vigil::bench

#include <cstdlib>
#include <ctime>
#include <iostream>
namespace vigil::bench {
TEST(City, DISABLED_Driver) {
  const auto number = [](const char* name, double other) {
    const char* value = std::getenv(name);
    return value == nullptr ? other : std::stod(value);
  };
  CityOptions options;
  options.nodes = static_cast<std::size_t>(number("NODES", 100));
  options.cameras = static_cast<std::size_t>(number("CAMERAS", 100.0 * static_cast<double>(options.nodes)));
  options.upgrades = static_cast<std::size_t>(number("UPGRADES", 20));
  options.steady = std::chrono::minutes(static_cast<int>(number("STEADY", 5)));
  options.costs.etcd_servers = static_cast<std::size_t>(number("SERVERS", 3));
  City city(options);
  double before = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  city.run([&](const CityPhase& phase) {
    const double now = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    std::cout << "== " << phase.name << " cpu " << now - before << '\n';
    before = now;
    for (const auto& figure : phase.figures)
      std::cout << phase.name << ' ' << figure.name << ' ' << figure.value << ' ' << figure.unit
                << (figure.capacity > 0 ? " of " + std::to_string(figure.value / figure.capacity) : "")
                << std::endl;
  });
  for (const auto& fault : city.faults()) std::cout << "FAULT " << fault << '\n';
}
}  // namespace vigil::bench
