// Measured figures of a bench, as JSON lines that can be compared.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace vigil::services {

/// One figure, measured once a run.
struct Figure {
  std::string name;
  std::string unit;
  std::vector<double> values;

  double mean() const;
  /// Of the sample; 0 for a single run.
  double deviation() const;
  double median() const;
};

/// Figures in the order in which they first came.
class Figures {
 public:
  void add(const std::string& name, const std::string& unit, double value);

  /// A line for each on stdout: its statistics, and `about`, which is the same for all.
  void print(const nlohmann::json& about) const;

 private:
  std::vector<Figure> figures_;
};

}  // namespace vigil::services
