#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "services/build_info.h"
#include "services/command.h"
#include "services/signals.h"
#include "services/slow_path_warnings.h"
#include "services/video_option.h"

namespace {

/// OpenMP's threads spin at barriers by default, which stalls every matrix product while another process or a
/// decoder wants the core (docs/performance.md has figures). The runtime reads its environment before main,
/// and other libraries (OpenBLAS) start threads by then, which have to have a service's signals blocked, too:
/// hence the second start, which inherits both.
void start_again(bool has_signals_blocked, char** argv) {
  // Nobody else changes the environment.
  const bool waits_passively = std::getenv("OMP_WAIT_POLICY") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  if (waits_passively && has_signals_blocked) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 0);  // NOLINT(concurrency-mt-unsafe)
  std::error_code unknown;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) ::execv(self.c_str(), argv);
}

/// So that no file or socket gets the number of an output that was closed, and what is said there.
void occupy_outputs() {
  int descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::dup(descriptor);
  if (descriptor >= 0) ::close(descriptor);
}

/// Of a command that did what it was to, what it said has to have been said.
int written(int status) {
  using namespace vigil::services;
  std::cout.flush();
  const bool good = std::cout.good() && std::fflush(stdout) == 0;
  if (good || (status != kDone && status != kUnknown)) return status;
  std::cerr << "vigil: not all could be written to the output: its disk is full, or nobody reads it\n";
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vigil::services;
  occupy_outputs();
  // Of those that end in order, a signal that comes early is not to end them otherwise than one that comes
  // late.
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool ends_in_order = command == "run" || command == "node" || command == "inspect";
  start_again(!ends_in_order || Signals::block(), argv);
  CLI::App root{
      "Vigil watches cameras with a vision-language model: describe in words what matters, and be told on a "
      "topic when it happens."};
  root.name("vigil");
  root.set_version_flag("--version", std::string("vigil ") + kVersion + " (" + kCommit + ")");
  root.require_subcommand(1);
  root.get_formatter()->column_width(38);

  Invocation chosen;
  add_ask(root, chosen);
  add_inspect(root, chosen);
  add_model(root, chosen);
  add_bench(root, chosen);
  add_run(root, chosen);
  add_node(root, chosen);
  add_watch(root, chosen);
  add_status(root, chosen);
  add_keygen(root, chosen);
  add_snooze(root, chosen);
  add_memory(root, chosen);
  add_config(root, chosen);
  add_check_config(root, chosen);

  const std::vector<std::string> words{argv + std::min(argc, 1), argv + argc};
  if (const auto complaint = unknown_command(root, words)) {
    std::cerr << mask_words(*complaint, words) << '\n';
    return kUsage;
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return written(root.exit(help));
  } catch (const CLI::ParseError& error) {
    // A word too many may be a camera's address.
    std::cerr << mask_words(parse_complaint(root, error), words);
    return kUsage;
  }
  // Commands that have a log, or draw, say it their own way.
  const SlowPathWarnings slow_paths([](const std::string& line) { std::cerr << "vigil: " + line + '\n'; });
  try {
    return written(chosen());
  } catch (const UsageError& error) {
    std::cerr << "vigil: " << error.what() << '\n';
    return kUsage;
  } catch (const std::exception& error) {
    std::cerr << "vigil: " << error.what() << '\n';
    return kFailed;
  }
}
