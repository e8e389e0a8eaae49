// Sums of metrics from their exposition text.
#pragma once

#include <map>
#include <string>

namespace vigil::bench {

/// The values of the metric `name` in a page of Prometheus' text format, added up by the value of one of its
/// labels; metrics without that label count under "".
std::map<std::string, double> metric_by(const std::string& page, const std::string& name,
                                        const std::string& label);

}  // namespace vigil::bench
