// `vigil ask --camera`: a question to a running service about what a camera saw.
#pragma once

#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "services/past_client.h"

namespace vigil::services {

struct AskCameraOptions {
  /// Nothing: it is a file that is asked about.
  std::optional<std::string> camera;
  std::optional<std::string> tenant;
  std::optional<std::string> since;
  /// Nothing: until now.
  std::optional<std::string> until;
  std::string about;
  std::string method;
  PastConnection connection;
};

void add_ask_camera_options(CLI::App& command, AskCameraOptions& options);

/// Prints the answer; where nobody knows it, why, to stderr, and ends with kUnknown. `output`: text or json.
/// Throws UsageError for what makes no sense together.
int run_ask_camera(const AskCameraOptions& options, const std::string& question, int max_tokens,
                   const std::string& output);

}  // namespace vigil::services
