// vigil status: what a running process is doing.
#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "actors/status/status_text.h"
#include "cluster/http/http_client.h"
#include "config/schema/fields.h"
#include "config/settings.h"
#include "fleet/messages/fleet_query.h"
#include "fleet/status/fleet_text.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct StatusArguments {
  std::string endpoint = "http://" + config::MetricsSettings().listen;
  std::string output = "text";
  cluster::HttpTrust trust;
  bool of_fleet = false;
  /// Of the fleet.
  fleet::FleetQuery query;
};

void check_status_endpoint(const std::string& endpoint) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (endpoint.starts_with(scheme) && endpoint.size() > scheme.size()) return;
  std::string fault = "--endpoint: expected an address such as http://127.0.0.1:9464, not '" + endpoint + "'";
  if (!endpoint.empty() && endpoint.find("://") == endpoint.npos)
    fault += "; did you mean http://" + endpoint + "?";
  throw UsageError(fault);
}

/// `program`: what answers there.
cluster::HttpResponse ask(const StatusArguments& arguments, const std::string& path,
                          std::chrono::milliseconds patience, const std::string& program) {
  check_status_endpoint(arguments.endpoint);
  try {
    return cluster::http_get(cluster::url_of(arguments.endpoint, path), patience, arguments.trust);
  } catch (const cluster::HttpUrlError& error) {
    throw UsageError("--endpoint: " + std::string(error.what()));
  } catch (const cluster::HttpUnreachable& error) {
    throw cluster::HttpError("no answer at " + std::string(error.what()) + "; is `" + program +
                             "` running, and is --endpoint what its configuration says in "
                             "metrics.listen?");
  }
}

int fleet_status(const StatusArguments& arguments) {
  for (const std::string& name : {arguments.query.after, arguments.query.camera})
    if (!config::is_name_or_nothing(name))
      throw UsageError("'" + name + "' is no name of a camera: these have letters, digits, '.', '_' and '-'");
  const std::string query = print(arguments.query);
  // It asks the registry, and then the nodes.
  const cluster::HttpResponse answer =
      ask(arguments, "/fleet" + (query.empty() ? "" : '?' + query), std::chrono::seconds(10), "vigil node");
  if (answer.status == 503)
    throw cluster::HttpError(arguments.endpoint + ": the node there knows nothing of its fleet now");
  const bool is_known = answer.status == 200;
  const auto text =
      is_known || answer.status == 404 ? fleet::fleet_text(answer.body) : std::optional<std::string>();
  if (!text) throw cluster::HttpError(arguments.endpoint + ": what answers there is no `vigil node`");
  if (arguments.output == "json")
    std::cout << answer.body << '\n';
  else if (is_known)
    std::cout << *text;
  if (is_known) return kDone;
  std::string why = text->substr(0, text->find_last_not_of('\n') + 1);
  std::ranges::replace(why, '\n', ' ');
  throw std::runtime_error(why);
}

int status(const StatusArguments& arguments) {
  const cluster::HttpResponse answer = ask(arguments, "/status", std::chrono::seconds(5), "vigil run");
  if (answer.status == 503)
    throw cluster::HttpError(arguments.endpoint + ": `vigil run` has no status to tell now");
  const auto text = answer.status == 200 ? actors::status_text(answer.body) : std::optional<std::string>();
  if (!text) throw cluster::HttpError(arguments.endpoint + ": what answers there is no `vigil run`");
  std::cout << (arguments.output == "json" ? answer.body + '\n' : *text);
  return kDone;
}

}  // namespace

void add_status(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("status", "Show the state of a running process, or of a whole fleet");
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
  auto* of_fleet = command->add_flag("--fleet", arguments->of_fleet,
                                     "all nodes and cameras, as the node at the endpoint knows them");
  auto* cameras = command->add_flag("--cameras", arguments->query.cameras, "a list of the fleet's cameras")
                      ->needs(of_fleet);
  command->add_option("--after", arguments->query.after, "of the list, what comes behind this camera")
      ->needs(cameras)
      ->type_name("CAMERA");
  command->add_option("--limit", arguments->query.limit, "of the list, so many")
      ->needs(cameras)
      ->check(from_to(1, int{fleet::FleetQuery::kMost}))
      ->capture_default_str();
  command->add_option("--camera", arguments->query.camera, "where this camera is, and why")
      ->needs(of_fleet)
      ->excludes(cameras)
      ->type_name("CAMERA");
  command->footer(
      "The same JSON is at /status and /fleet; /healthz, /readyz and /startupz answer probes.\n"
      "Example: vigil status --fleet --camera gate-7 --endpoint http://node-3:9464");
  command->callback([arguments, &chosen] {
    chosen = [arguments] { return arguments->of_fleet ? fleet_status(*arguments) : status(*arguments); };
  });
}

}  // namespace vigil::services
