// `vigil ask --camera`: a question to a running service about what a camera saw.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "services/past_client.h"

namespace vigil::services {

struct AskCameraOptions {
  /// Empty: it is a file that is asked about.
  std::string camera;
  std::string tenant;
  std::string since;
  /// Empty: until now.
  std::string until;
  std::string about;
  std::string method;
  PastConnection connection;
};

void add_ask_camera_options(CLI::App& command, AskCameraOptions& options);

/// Prints the answer. `output`: text or json. Throws UsageError for what makes no sense together.
int run_ask_camera(const AskCameraOptions& options, const std::string& question, int max_tokens,
                   const std::string& output);

}  // namespace vigil::services
