#include "services/ask_camera.h"

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "cluster/asks/request.h"
#include "cluster/process/clock.h"
#include "config/schema/fields.h"
#include "fleet/asks/past_lines.h"
#include "services/command.h"

namespace vigil::services {
namespace {

constexpr const char* kCameraGroup = "About what a camera saw";

/// Throws UsageError for more than a service takes.
void check_length(const char* what, const std::string& question) {
  if (question.size() <= cluster::kAskQuestionBytes) return;
  throw UsageError(std::string(what) + ": expected a question of at most " +
                   std::to_string(cluster::kAskQuestionBytes) + " bytes, not of " +
                   std::to_string(question.size()));
}

cluster::AskQuestion past_question(const AskCameraOptions& options, const std::string& question,
                                   int max_tokens, base::Clock::WallTime now) {
  cluster::AskQuestion asked;
  asked.camera = past_name("--camera", options.camera).value();
  asked.tenant = past_name("--tenant", options.tenant);
  check_length("QUESTION", question);
  check_length("--about", options.about);
  asked.question = question;
  if (!options.about.empty()) asked.about = options.about;
  if (!options.since) throw UsageError("--since: how far back is to be looked, such as 2h, is needed");
  asked.from_ms = time_of("--since", *options.since, now);
  asked.to_ms = time_of("--until", options.until.value_or("0s"), now);
  check_past_span("--since", asked.from_ms, options.until ? "--until" : "now", asked.to_ms);
  for (const auto method : cluster::kAskMethods)
    if (options.method == cluster::name_of(method)) asked.method = method;
  asked.max_tokens = max_tokens;
  asked.timeout = timeout_of(options.connection);
  return asked;
}

}  // namespace

void add_ask_camera_options(CLI::App& command, AskCameraOptions& options) {
  add_given(command, "--camera", options.camera,
            "Ask a running service what this camera saw, instead of a VIDEO")
      ->group(kCameraGroup)
      ->type_name("NAME");
  add_given(command, "--tenant", options.tenant, "Whose camera, if several tenants have one of this name")
      ->group(kCameraGroup)
      ->type_name("NAME");
  add_given(command, "--since", options.since, "From so long ago (2h), or from a time (2026-08-01T10:00:00Z)")
      ->group(kCameraGroup)
      ->type_name("WHEN");
  add_given(command, "--until", options.until,
            "Up to then; now if left out. What has not come yet is cut off")
      ->group(kCameraGroup)
      ->type_name("WHEN");
  command
      .add_option_function<std::string>(
          "--about",
          [&options](const std::string& text) {
            if (!config::is_prompt(text))
              throw CLI::ValidationError("--about", "expected " + std::string(config::kPrompt.expected));
            options.about = text;
          },
          "The yes/no question by which windows are found; made of QUESTION if left out")
      ->group(kCameraGroup)
      ->type_name("QUESTION");
  std::vector<std::string> methods;
  methods.reserve(cluster::kAskMethods.size());
  for (const auto method : cluster::kAskMethods) methods.emplace_back(cluster::name_of(method));
  command
      .add_option("--method", options.method, "How the past is looked at; the service's choice if left out")
      ->check(one_of(methods))
      ->group(kCameraGroup);
  add_past_connection(command, options.connection, kCameraGroup);
}

int run_ask_camera(const AskCameraOptions& options, const std::string& question, int max_tokens,
                   const std::string& output) {
  const cluster::SystemClock clock;
  const std::string body =
      ask_past(options.connection, past_question(options, question, max_tokens, clock.wall()));
  const auto line = fleet::answer_line(body);
  const bool is_unknown = line && line->is_unknown;
  if (!is_unknown || output == "json")
    print_past(options.connection, output, body, line ? std::optional(line->text) : std::nullopt);
  if (is_unknown) std::cerr << "vigil: " << line->text << '\n';
  return is_unknown ? kUnknown : kDone;
}

}  // namespace vigil::services
