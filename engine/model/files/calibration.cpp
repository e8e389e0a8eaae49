#include "engine/model/files/calibration.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

constexpr std::size_t kMostBytes = 64 << 10;
constexpr std::size_t kLongestNote = 1000;

/// A key that is not read would be one that has no effect.
void require_only(const JsonObject& from, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : from.json().items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      from.fail(in_quotes(key), "no such key is known");
  }
}

}  // namespace

double Calibration::probability(double log_odds) const {
  return 1 / (1 + std::exp(-(slope * log_odds + bias)));
}

Calibration parse_calibration(std::string_view text, const std::string& name) {
  const Json root = parse_json(text, name, {.unique_keys = true});
  const JsonObject top(root, name);
  require_only(top, {"yes", "fitted_on"});
  const JsonObject yes = top.object("yes");
  require_only(yes, {"slope", "bias"});
  Calibration read;
  read.slope = yes.number("slope", 0.01, 100);
  read.bias = yes.number("bias", -100, 100);
  read.fitted_on = top.string("fitted_on", "");
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7f; };
  if (read.fitted_on.size() > kLongestNote ||
      std::any_of(read.fitted_on.begin(), read.fitted_on.end(), is_control))
    top.fail("fitted_on", "one line of at most " + std::to_string(kLongestNote) + " bytes was expected");
  return read;
}

std::optional<Calibration> read_calibration(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "calibration.json";
  // A link that leads nowhere is a fault, not a folder without the file.
  std::error_code unknown;
  if (std::filesystem::symlink_status(path, unknown).type() == std::filesystem::file_type::not_found)
    return std::nullopt;
  return parse_calibration(read_text_file(path, kMostBytes), path.string());
}

}  // namespace vigil::model
