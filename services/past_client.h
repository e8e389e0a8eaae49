// Asking a running service about the past, as `vigil ask --camera` and `vigil memory` do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/clock.h"
#include "cluster/asks/request.h"
#include "config/settings.h"

namespace vigil::services {

struct PastConnection {
  std::string endpoint = config::AskSettings().bind;
  std::string server_key;
  std::string key_file;
  std::string timeout = "60s";
};

/// An option of text that knows whether it was given: what was given without any ("$TENANT" of a script that
/// does not set it) is not taken for what was left out.
CLI::Option* add_given(CLI::App& command, const char* name, std::optional<std::string>& text,
                       const char* help);

/// In a group of this name in the command's help, or among all others.
void add_past_connection(CLI::App& command, PastConnection& connection, const std::string& group = "Options");

/// What was given with `--timeout`. Throws UsageError.
base::Duration timeout_of(const PastConnection& connection);

/// The body of the answer. How far it has come is shown meanwhile, if stderr is a terminal. Throws
/// UsageError, and std::runtime_error: where nobody is, or with what the service says instead of an answer.
std::string ask_past(const PastConnection& connection, const cluster::AskRequest& request);

/// "2h" before `now`, at most back to 1970, or "2026-08-01T10:00:00Z"; in milliseconds since then. Throws
/// UsageError for what is no time.
std::int64_t time_of(const char* option, const std::string& text, base::Clock::WallTime now);
/// The same of what is to be over already: also for what has not come yet.
std::int64_t past_time_of(const char* option, const std::string& text, base::Clock::WallTime now);

/// The name of a camera or a tenant, if it was given. Throws UsageError for what cannot be one.
std::optional<std::string> past_name(const char* option, const std::optional<std::string>& name);
/// Throws UsageError for two times with nothing between them.
void check_past_span(const char* from_option, std::int64_t from, const char* to_option, std::int64_t to);

/// The body as it is asked for: indented JSON, or these lines. Throws std::runtime_error for what is no such
/// body, naming who sent it.
void print_past(const PastConnection& connection, const std::string& output, const std::string& body,
                const std::optional<std::string>& lines);

}  // namespace vigil::services
