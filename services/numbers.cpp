#include <charconv>
#include <string>

#include "services/command.h"

namespace vigil::services {
namespace {

/// Whether the text is a number that `accepted` takes; NaN is none.
template <typename Accepted>
CLI::Validator number(const char* name, const char* demand, const Accepted& accepted) {
  return {[demand, accepted](const std::string& text) {
            double value = 0;
            const auto end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, value);
            const bool whole = read.ec == std::errc() && read.ptr == end;
            return whole && accepted(value) ? std::string() : demand + (", is " + text);
          },
          name};
}

}  // namespace

CLI::Validator above_zero() {
  return number("ABOVE 0", "must be above 0", [](double value) { return value > 0; });
}

CLI::Validator zero_or_more() {
  return number("0 OR MORE", "must be 0 or more", [](double value) { return value >= 0; });
}

}  // namespace vigil::services
