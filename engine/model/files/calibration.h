// How sure a model's "Yes" is, made to agree with how often it is right.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::model {

/// Platt scaling: P(yes) = 1 / (1 + exp(-(slope * log_odds + bias))), with the log odds of "Yes" against "No"
/// as the model computes them. The default leaves them as they are.
struct Calibration {
  /// Above 0, so that the order of answers stays.
  double slope = 1;
  double bias = 0;
  /// On what it was fitted; a line for readers, may be empty.
  std::string fitted_on;

  double probability(double log_odds) const;
};

/// From the text of a `calibration.json`: {"yes": {"slope": 1.1, "bias": -0.2}, "fitted_on": "..."}, the last
/// one optional. `name` is the file in messages. Throws ModelError, which names the key, for anything else.
Calibration parse_calibration(std::string_view text, const std::string& name);

/// Reads `folder/calibration.json`; nothing if the folder has none, as published ones have not. Throws
/// ModelError.
std::optional<Calibration> read_calibration(const std::filesystem::path& folder);

}  // namespace vigil::model
