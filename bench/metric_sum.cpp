#include "bench/metric_sum.h"

#include <cstddef>
#include <cstdlib>
#include <sstream>

namespace vigil::bench {
namespace {

/// The value of a label in `camera="gate",reason="late"`; a quote in a value comes as \".
std::string label_value(const std::string& labels, const std::string& label) {
  for (std::size_t at = 0; (at = labels.find(label + "=\"", at)) != std::string::npos; ++at) {
    if (at != 0 && labels[at - 1] != ',') continue;
    std::string value;
    for (std::size_t i = at + label.size() + 2; i < labels.size() && labels[i] != '"'; ++i) {
      if (labels[i] == '\\' && i + 1 < labels.size()) ++i;
      value += labels[i];
    }
    return value;
  }
  return {};
}

}  // namespace

std::map<std::string, double> metric_by(const std::string& page, const std::string& name,
                                        const std::string& label) {
  std::map<std::string, double> sums;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    const std::string rest = line.substr(name.size());
    const std::size_t close = rest.rfind('}');
    const bool labelled = rest.starts_with('{') && close != std::string::npos;
    if (!labelled && !rest.starts_with(' ')) continue;
    const std::string value = labelled ? rest.substr(close + 1) : rest;
    sums[labelled ? label_value(rest.substr(1, close - 1), label) : ""] +=
        std::strtod(value.c_str(), nullptr);
  }
  return sums;
}

}  // namespace vigil::bench
