#include "bench/memory_report.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace vigil::bench {
namespace {

std::string three_digits(double value) {
  std::ostringstream text;
  // Counts of millions stay readable.
  if (value >= 1000 && value < 1e9) {
    text << std::fixed << std::setprecision(0) << value;
  } else {
    text << std::setprecision(3) << value;
  }
  return text.str();
}

}  // namespace

std::optional<double> MemoryFigure::ratio() const {
  if (paired) return paired;
  const auto found =
      std::find_if(beside.begin(), beside.end(), [&](const auto& each) { return each.first == floor; });
  if (found == beside.end() || found->second == 0) return std::nullopt;
  return value / found->second;
}

std::optional<bool> MemoryFigure::is_reached() const {
  const std::optional<double> of = floor.empty() ? value : ratio();
  if (!of || (!least && !most)) return std::nullopt;
  return (!least || *of >= *least) && (!most || *of <= *most);
}

MemoryReport::MemoryReport(nlohmann::json common, bool is_json, std::ostream& out)
    : common_(std::move(common)), is_json_(is_json), out_(out) {}

void MemoryReport::begin(const std::string& part) {
  if (part == part_) return;
  out_ << (part_.empty() ? "" : "\n") << part << '\n';
  part_ = part;
}

void MemoryReport::add(const MemoryFigure& figure) {
  const std::optional<double> ratio = figure.ratio();
  const std::optional<bool> is_reached = figure.is_reached();
  if (is_json_) {
    nlohmann::json line = common_;
    line.update(figure.about);
    line.update(
        {{"part", figure.part}, {"figure", figure.work}, {"value", figure.value}, {"unit", figure.unit}});
    for (const auto& [name, value] : figure.beside) line["beside"][name] = value;
    if (!figure.floor.empty()) line["floor"] = figure.floor;
    if (ratio) line["ratio"] = *ratio;
    if (figure.least) line["to_reach_at_least"] = *figure.least;
    if (figure.most) line["to_reach_at_most"] = *figure.most;
    if (is_reached) line["reached"] = *is_reached;
    out_ << line.dump() << std::endl;
    return;
  }
  begin(figure.part);
  out_ << "  " << std::left << std::setw(44) << figure.work << std::setw(9) << three_digits(figure.value)
       << std::setw(6) << (figure.unit == "1" ? "" : figure.unit);
  for (const auto& [name, value] : figure.beside) out_ << "  " << name << ' ' << three_digits(value);
  if (ratio) out_ << "  " << three_digits(*ratio) << " of " << figure.floor;
  if (is_reached)
    out_ << "  (to reach: " << three_digits(figure.least ? *figure.least : *figure.most)
         << (*is_reached ? ", reached)" : ", not reached)");
  if (!figure.remark.empty()) out_ << "  " << figure.remark;
  out_ << std::endl;
}

void MemoryReport::missing(const std::string& part, const std::string& what) {
  if (is_json_) {
    nlohmann::json line = common_;
    line.update({{"part", part}, {"missing", what}});
    out_ << line.dump() << std::endl;
    return;
  }
  begin(part);
  out_ << "  " << what << std::endl;
}

}  // namespace vigil::bench
