// Measured figures of a bench, as JSON lines that can be compared.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace vigil::bench {

/// One figure, measured once a run. Its statistics need at least one value.
struct Figure {
  std::string name;
  std::string unit;
  std::vector<double> values;

  double mean() const;
  /// Of the sample; 0 for a single run.
  double deviation() const;
  double median() const;
};

/// Figures in the order in which they first came. Not thread-safe.
class Figures {
 public:
  void add(const std::string& name, const std::string& unit, double value);

  const std::vector<Figure>& all() const { return figures_; }

  /// A line for each: its statistics, and `about`, which is the same for all.
  void print(const nlohmann::json& about, std::ostream& out) const;

 private:
  std::vector<Figure> figures_;
};

}  // namespace vigil::bench
