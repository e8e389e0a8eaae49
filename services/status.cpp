// vigil status: what a running process is doing.
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "actors/status/status_text.h"
#include "cluster/http/http_client.h"
#include "config/settings.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct StatusArguments {
  std::string endpoint = "http://" + config::MetricsSettings().listen;
  std::string output = "text";
  cluster::HttpTrust trust;
};

void check_endpoint(const std::string& endpoint) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (endpoint.starts_with(scheme) && endpoint.size() > scheme.size()) return;
  std::string fault = "--endpoint: expected an address such as http://127.0.0.1:9464, not '" + endpoint + "'";
  if (!endpoint.empty() && endpoint.find("://") == endpoint.npos)
    fault += "; did you mean http://" + endpoint + "?";
  throw UsageError(fault);
}

cluster::HttpResponse ask(const StatusArguments& arguments) {
  check_endpoint(arguments.endpoint);
  try {
    return cluster::http_get(cluster::url_of(arguments.endpoint, "/status"), std::chrono::seconds(5),
                             arguments.trust);
  } catch (const cluster::HttpUnreachable& error) {
    throw cluster::HttpError("no answer at " + std::string(error.what()) +
                             "; is `vigil run` running, and is --endpoint what its configuration says in "
                             "metrics.listen?");
  }
}

int status(const StatusArguments& arguments) {
  const cluster::HttpResponse answer = ask(arguments);
  if (answer.status == 503)
    throw cluster::HttpError(arguments.endpoint + ": `vigil run` has no status to tell now");
  const auto text = answer.status == 200 ? actors::status_text(answer.body) : std::optional<std::string>();
  if (!text) throw cluster::HttpError(arguments.endpoint + ": what answers there is no `vigil run`");
  std::cout << (arguments.output == "json" ? answer.body + '\n' : *text);
  return kDone;
}

}  // namespace

void add_status(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("status", "Show the state of a running `vigil run`");
  auto arguments = std::make_shared<StatusArguments>();
  command->add_option("--endpoint", arguments->endpoint, "where it serves its metrics")
      ->capture_default_str();
  command
      ->add_option("--ca-file", arguments->trust.ca_file,
                   "certificates to believe, for https://, instead of the system's")
      ->type_name("FILE");
  command->add_flag("--insecure", arguments->trust.insecure, "believe any certificate");
  command->add_option("--output", arguments->output, "a table for people, or JSON")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->footer("The same JSON is at /status; /healthz, /readyz and /startupz answer probes.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return status(*arguments); }; });
}

}  // namespace vigil::services
