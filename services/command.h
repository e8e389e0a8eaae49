// The tree of commands: each command parses into an invocation, which `main` runs after parsing succeeded.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/duration.h"

namespace vigil::services {

/// Runs a parsed command; returns the exit code. May throw: `main` prints what() as one line and returns 1.
using Invocation = std::function<int()>;

/// kUnknown: it was asked, and there was nothing by which anybody could answer.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kUnknown = 3 };

/// Arguments that parse alone but not together: one line on stderr, exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One line for the first word of a command line that is no command where one is expected; CLI11 would only
/// say that a subcommand is required.
std::optional<std::string> unknown_command(const CLI::App& root, const std::vector<std::string>& arguments);

/// The lines about a command line that does not parse: CLI11's, with the words in their order, and with what
/// usually is wrong.
std::string parse_complaint(const CLI::App& root, const CLI::ParseError& error);

/// Checks whose messages a person can read: of numbers, and of words of which one has to be given.
CLI::Validator above_zero();
CLI::Validator zero_or_more();
CLI::Validator from_to(int low, int high);
CLI::Validator one_of(const std::vector<std::string>& words);

/// What an option says of time. Throws UsageError, naming it, for what is no duration above 0.
base::Duration duration_of(const char* option, const std::string& text);

/// Each adds one command to `root`; when the command line names it, its invocation is stored in `chosen`.
void add_ask(CLI::App& root, Invocation& chosen);
void add_inspect(CLI::App& root, Invocation& chosen);
void add_model(CLI::App& root, Invocation& chosen);
/// A part of `vigil model`.
void add_model_check(CLI::App& model, Invocation& chosen);
void add_bench(CLI::App& root, Invocation& chosen);
/// Parts of `vigil bench`.
void add_bench_engine(CLI::App& bench, Invocation& chosen);
void add_bench_cameras(CLI::App& bench, Invocation& chosen);
void add_bench_memory(CLI::App& bench, Invocation& chosen);
void add_bench_placement(CLI::App& bench, Invocation& chosen);
void add_bench_city(CLI::App& bench, Invocation& chosen);
void add_node(CLI::App& root, Invocation& chosen);
void add_run(CLI::App& root, Invocation& chosen);
void add_keygen(CLI::App& root, Invocation& chosen);
void add_watch(CLI::App& root, Invocation& chosen);
void add_status(CLI::App& root, Invocation& chosen);
void add_snooze(CLI::App& root, Invocation& chosen);
void add_memory(CLI::App& root, Invocation& chosen);
void add_config(CLI::App& root, Invocation& chosen);
void add_check_config(CLI::App& root, Invocation& chosen);

}  // namespace vigil::services
