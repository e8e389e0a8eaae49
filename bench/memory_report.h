// What `vigil bench memory` prints: figures beside their floors, and whether they reach what they are to.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace vigil::bench {

/// One figure of a part.
struct MemoryFigure {
  /// "store", and what was done: "write 4 MiB".
  std::string part, work;
  double value = 0;
  std::string unit;
  /// What it stands beside, in the same unit.
  std::vector<std::pair<std::string, double>> beside = {};
  /// Beside which of these, as value over it; empty: the value itself. What that is to be at least, or at
  /// most.
  std::string floor = {};
  /// Where both were measured in turns: the median of each round's ratio, in place of that of the medians.
  std::optional<double> paired = std::nullopt;
  std::optional<double> least = std::nullopt, most = std::nullopt;
  /// What else was seen, for the JSON; and a remark for people.
  nlohmann::json about = nlohmann::json::object();
  std::string remark = {};

  /// Of its value to the floor. Nothing without one.
  std::optional<double> ratio() const;
  /// Nothing where nothing is to be reached.
  std::optional<bool> is_reached() const;
};

/// Not thread-safe.
class MemoryReport {
 public:
  /// `common`: of all JSON lines. `is_json`: an object a line at once; otherwise a table, a section a part.
  MemoryReport(nlohmann::json common, bool is_json, std::ostream& out);

  void add(const MemoryFigure& figure);
  /// A line for people only: what could not be measured, and why; of the JSON an object with `missing`.
  void missing(const std::string& part, const std::string& what);

 private:
  void begin(const std::string& part);

  nlohmann::json common_;
  bool is_json_;
  std::ostream& out_;
  std::string part_;
};

}  // namespace vigil::bench
