// From a configuration file to settings, with every problem reported at once.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

/// One thing wrong in a configuration file. Line and column count from 1; 0 where there is no place to point
/// at.
struct Problem {
  int line = 0;
  int column = 0;
  std::string message;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// A file that cannot be used. `what()` has one line `file:line:column: message` for each problem.
class ConfigError : public std::runtime_error {
 public:
  ConfigError(const std::filesystem::path& file, std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// The value of an environment variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
Environment process_environment();

/// Reads and validates a file. `{NAME}` in URLs, paths, endpoints and labels stands for an environment
/// variable; relative paths are relative to the file's folder. Throws ConfigError with all problems, in the
/// order of the file.
Settings load(const std::filesystem::path& file, const Environment& environment = process_environment());

/// As `load`, from text; `file` stands in messages, and its folder is what relative paths are relative to.
Settings parse(const std::string& text, const std::filesystem::path& file, const Environment& environment);

/// The settings as YAML that `parse` reads back, every key written out, secrets masked.
std::string effective(const Settings& settings);

/// Every key that a file may have, as a path: "cameras.*.rules[].prompt". Sorted.
std::vector<std::string> known_keys();

}  // namespace vigil::config
