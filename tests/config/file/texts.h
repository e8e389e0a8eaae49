// Reads configurations that stand in a test.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "config/file/load.h"
#include "config/file/substitute.h"

namespace vigil::config {

inline void PrintTo(const Problem& problem, std::ostream* out) {
  *out << problem.line << ':' << problem.column << ": " << problem.message;
}

namespace testing {

inline const Environment kNothing = [](const std::string&) { return std::nullopt; };
inline const Environment kSecret = [](const std::string& name) -> std::optional<std::string> {
  if (name == "GATE_PASSWORD") return "hunter2";
  if (name == "SITE") return "north";
  return std::nullopt;
};

inline Settings read(const std::string& text, const Environment& environment = kNothing) {
  return parse(text, "/etc/vigil/site.yaml", environment);
}

inline std::vector<Problem> problems_of(const std::string& text, const Environment& environment = kNothing) {
  try {
    read(text, environment);
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

/// The smallest legal file; `camera` adds lines to its camera.
inline std::string minimal(const std::string& camera = "") {
  return "model: m\n"
         "cameras:\n"
         "  gate:\n"
         "    url: gate.mp4\n"
         "    rules: [{name: car, prompt: 'Is there a car?'}]\n" +
         camera;
}

}  // namespace testing
}  // namespace vigil::config
