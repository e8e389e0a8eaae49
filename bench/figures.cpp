#include "bench/figures.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <ostream>

namespace vigil::bench {

double Figure::mean() const {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Figure::deviation() const {
  if (values.size() < 2) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean()) * (value - mean());
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double Figure::median() const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

void Figures::add(const std::string& name, const std::string& unit, double value) {
  auto found = std::find_if(figures_.begin(), figures_.end(),
                            [&](const Figure& figure) { return figure.name == name; });
  if (found == figures_.end()) found = figures_.insert(figures_.end(), Figure{name, unit, {}});
  found->values.push_back(value);
}

void Figures::print(const nlohmann::json& about, std::ostream& out) const {
  for (const Figure& figure : figures_) {
    nlohmann::json line = about;
    line.update({{"figure", figure.name},
                 {"unit", figure.unit},
                 {"mean", figure.mean()},
                 {"deviation", figure.deviation()},
                 {"median", figure.median()},
                 {"runs", figure.values.size()}});
    out << line.dump() << '\n';
  }
  out.flush();
}

}  // namespace vigil::bench
