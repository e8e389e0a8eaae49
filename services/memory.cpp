// vigil memory: what a running service remembers of what its cameras saw.
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "cluster/asks/request.h"
#include "cluster/process/clock.h"
#include "fleet/asks/past_lines.h"
#include "services/command.h"
#include "services/past_client.h"

namespace vigil::services {
namespace {

struct MemoryArguments {
  std::optional<std::string> camera;
  std::optional<std::string> tenant;
  PastConnection connection;
  std::string output = "text";
  /// Of an erasure.
  std::optional<std::string> from;
  std::optional<std::string> to;
  bool all = false;
};

/// Of a list or a check.
template <class Request>
Request of_cameras(const MemoryArguments& arguments) {
  return Request{past_name("--camera", arguments.camera), past_name("--tenant", arguments.tenant),
                 timeout_of(arguments.connection)};
}

int list_memory(const MemoryArguments& arguments) {
  const std::string body = ask_past(arguments.connection, of_cameras<cluster::MemoryList>(arguments));
  print_past(arguments.connection, arguments.output, body, fleet::memory_table(body));
  return kDone;
}

int verify_memory(const MemoryArguments& arguments) {
  const std::string body = ask_past(arguments.connection, of_cameras<cluster::MemoryVerify>(arguments));
  const auto verified = fleet::verified_table(body);
  print_past(arguments.connection, arguments.output, body,
             verified ? std::optional(verified->text) : std::nullopt);
  return verified->is_damaged || verified->is_partial ? kFailed : kDone;
}

int erase_memory(const MemoryArguments& arguments) {
  const cluster::SystemClock clock;
  cluster::MemoryErase asked;
  asked.camera = past_name("--camera", arguments.camera).value();
  asked.tenant = past_name("--tenant", arguments.tenant);
  const bool has_span = arguments.from || arguments.to;
  if (has_span && arguments.all)
    throw UsageError("--all and " + std::string(arguments.from ? "--from" : "--to") +
                     " exclude each other: nothing was erased");
  if (!has_span && !arguments.all)
    throw UsageError("say what is to be erased: --from, --to or both, or --all that the camera saw");
  const auto now = clock.wall();
  if (arguments.from) asked.from_ms = past_time_of("--from", *arguments.from, now);
  const std::int64_t until = time_of("--to", "0s", now);
  if (arguments.to) asked.to_ms = time_of("--to", *arguments.to, now);
  // Until now is until the service's own now, which alone knows what was seen.
  if (asked.to_ms >= until) asked.to_ms.reset();
  if (asked.from_ms)
    check_past_span("--from", *asked.from_ms, asked.to_ms ? "--to" : "now", asked.to_ms.value_or(until));
  asked.timeout = timeout_of(arguments.connection);
  const std::string body = ask_past(arguments.connection, asked);
  print_past(arguments.connection, arguments.output, body, fleet::erasure_line(body));
  return kDone;
}

/// A part of the command, with what all of them take.
CLI::App* add_part(CLI::App& memory, Invocation& chosen, const char* name, const char* help,
                   const std::shared_ptr<MemoryArguments>& arguments,
                   int (*run)(const MemoryArguments& arguments)) {
  auto* command = memory.add_subcommand(name, help);
  add_given(*command, "--camera", arguments->camera, "Of this camera")->type_name("NAME");
  add_given(*command, "--tenant", arguments->tenant, "Of this tenant")->type_name("NAME");
  add_past_connection(*command, arguments->connection);
  command->add_option("--output", arguments->output, "A table for people, or JSON")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->callback([arguments, run, &chosen] { chosen = [arguments, run] { return run(*arguments); }; });
  return command;
}

}  // namespace

void add_memory(CLI::App& root, Invocation& chosen) {
  auto* memory = root.add_subcommand("memory", "Show, check or erase what cameras remember");
  memory->require_subcommand(1);
  auto* list =
      add_part(*memory, chosen, "list", "Show what is remembered of which camera, and from when to when",
               std::make_shared<MemoryArguments>(), list_memory);
  list->footer("Example: vigil memory list --camera gate-7");

  auto* verify = add_part(*memory, chosen, "verify", "Read all that is kept, and tell what is damaged",
                          std::make_shared<MemoryArguments>(), verify_memory);
  verify->footer(
      "Ends with status 1 if anything is damaged, or a node does not answer.\n"
      "Example: vigil memory verify --timeout 10m");

  const auto arguments = std::make_shared<MemoryArguments>();
  auto* erase =
      add_part(*memory, chosen, "erase", "Erase what a camera saw, for good", arguments, erase_memory);
  erase->get_option("--camera")->required();
  add_given(*erase, "--from", arguments->from, "From so long ago (2h), or from a time (2026-08-01T10:00:00Z)")
      ->type_name("WHEN");
  add_given(*erase, "--to", arguments->to, "Up to then; now if left out. What has not come yet is cut off")
      ->type_name("WHEN");
  erase->add_flag("--all", arguments->all, "All that it saw until now");
  erase->footer(
      "Of what is remembered alone: stills, clips and events stay until their own ages.\n"
      "Example: vigil memory erase --camera gate-7 --from 2h --to 90m");
}

}  // namespace vigil::services
