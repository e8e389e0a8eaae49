#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "services/command.h"

namespace vigil::services {
namespace {

/// Whether the text is a number that `accepted` takes; NaN is none.
template <typename Accepted>
CLI::Validator number(const std::string& name, const std::string& demand, const Accepted& accepted) {
  return {[demand, accepted](const std::string& text) {
            double value = 0;
            const auto end = text.data() + text.size();
            const auto read = std::from_chars(text.data(), end, value);
            const bool whole = read.ec == std::errc() && read.ptr == end;
            return whole && accepted(value) ? std::string() : "expected " + demand + ", not '" + text + "'";
          },
          name};
}

}  // namespace

CLI::Validator above_zero() {
  return number("ABOVE 0", "a number above 0", [](double value) { return value > 0; });
}

CLI::Validator zero_or_more() {
  return number("0 OR MORE", "a number that is 0 or more", [](double value) { return value >= 0; });
}

CLI::Validator from_to(int low, int high) {
  const std::string range = std::to_string(low) + " to " + std::to_string(high);
  return number(std::to_string(low) + " TO " + std::to_string(high), "a number from " + range,
                [low, high](double value) { return value >= low && value <= high; });
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  std::string listed;
  std::string demand;
  for (const std::string& word : words) {
    listed += (listed.empty() ? "" : ",") + word;
    demand += (demand.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
  }
  return {[words, demand](const std::string& text) {
            return std::find(words.begin(), words.end(), text) != words.end()
                       ? std::string()
                       : "expected " + demand + ", not '" + text + "'";
          },
          '{' + listed + '}'};
}

base::Duration duration_of(const char* option, const std::string& text) {
  const auto duration = base::parse_duration(text);
  if (!duration || duration->count() == 0)
    throw UsageError(std::string(option) + ": expected a duration above 0, such as 40s, not '" + text + "'");
  return *duration;
}

}  // namespace vigil::services
