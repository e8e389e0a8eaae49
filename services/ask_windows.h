// `vigil ask --window`: questions about every window of a file, as a camera would be asked them.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "config/settings.h"
#include "services/ask_options.h"

namespace vigil::services {

struct AskWindowsOptions {
  /// Empty: the video is one window.
  std::string window;
  std::string stride = "8s";
  config::PruningSettings pruning;
};

/// Those but `--window` need it.
void add_ask_windows_options(CLI::App& command, AskWindowsOptions& options);

/// Prints a line a window. `output`: text or json.
int run_ask_windows(const AskOptions& ask, const AskWindowsOptions& options, const std::string& output);

}  // namespace vigil::services
