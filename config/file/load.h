// From a configuration file to settings, with every problem reported at once.
#pragma once

#include <cstdint>
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
  /// Nothing of the text can be read for it; its message tells that, too.
  bool of_whole = false;
  friend bool operator==(const Problem& a, const Problem& b) {
    return a.line == b.line && a.column == b.column && a.message == b.message;
  }
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

/// Whether a variable that is not set is a problem. Where it is none, what stands in the file stays as it is,
/// and nothing is said of the setting that it is a part of.
enum class Unset : std::uint8_t { problem, accepted };

/// Whether what URLs, users and passwords of cameras refer to is put in (`{NAME}`, `password_file`); kept:
/// they stay as they stand in the file, for whoever opens the camera (file/references.h).
enum class Secrets : std::uint8_t { resolved, kept };

/// What a text has of a configuration: all of it, or what is a node's own, since the fleet's is in the
/// registry (file/fleet.h).
enum class Holds : std::uint8_t { all, own };

/// The environment of this process.
Environment process_environment();

/// What a configuration may name and somebody may look at: a model's folder, a file of video (with or
/// without file://), the file of a secret key, a folder that is made unless it is there, a file of
/// certificates, the file of the private key of the certificate before it, the folder of a node's
/// certificates and key, the file of the key that encrypts what is remembered, devices that compute, and
/// those that only generate.
enum class Named : std::uint8_t {
  model,
  video,
  secret_key,
  folder,
  certificate,
  private_key,
  node_certificates,
  memory_key,
  device,
  decode_device
};

/// Tells what is wrong with it: a sentence each, in which it is called as it is shown.
using LookAt = std::function<std::vector<std::string>(Named what, const MaskedText& name)>;

/// Reads and validates a file. `{NAME}` in URLs, paths and endpoints stands for an environment variable;
/// relative paths, and those of the defaults, are relative to the file's folder. What `look_at` says of what
/// is named counts as a problem; without it, nothing that is named need be there. Throws ConfigError with all
/// problems, in the order of the file.
Settings load(const std::filesystem::path& file, const Environment& environment = process_environment(),
              const LookAt& look_at = {}, Unset unset = Unset::problem, Secrets secrets = Secrets::resolved);

/// All of a file that may be a configuration. Throws ConfigError.
std::string read_text(const std::filesystem::path& file);

/// As `load`, from text; `file` stands in messages, and its folder is what relative paths are relative to.
Settings parse(const std::string& text, const std::filesystem::path& file, const Environment& environment,
               const LookAt& look_at = {}, Unset unset = Unset::problem, Secrets secrets = Secrets::resolved,
               Holds holds = Holds::all);

/// The section `cluster` of a text that need not have anything else.
ClusterSettings parse_cluster(const std::string& text, const std::filesystem::path& file,
                              const Environment& environment, Unset unset = Unset::problem);

/// The settings as YAML that `parse` reads back, every key written out, secrets masked.
std::string effective(const Settings& settings);

/// Every key that a file may have, as a path: "cameras.*.rules[].prompt". Sorted.
std::vector<std::string> known_keys();

}  // namespace vigil::config
