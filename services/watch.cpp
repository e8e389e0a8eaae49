// vigil watch: events as they come.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "actors/alerts/event_text.h"
#include "actors/messages/topic.h"
#include "cluster/process/clock.h"
#include "cluster/topics/follower.h"
#include "config/settings.h"
#include "config/values/address.h"
#include "services/command.h"
#include "services/connection_options.h"

namespace vigil::services {
namespace {

struct WatchArguments {
  std::vector<std::string> topics = {std::string(actors::root_of(actors::TopicKind::rule))};
  std::string since;
  std::vector<std::string> endpoints = {config::AlertSettings().bind};
  /// One for each of `endpoints`, or none.
  std::vector<std::string> replays;
  /// One for all, or one for each.
  std::vector<std::string> server_keys;
  std::string key_file;
  std::string output = "text";
  std::uint64_t count = 0;
  double timeout = 0;
};

/// Of an endpoint without a port, or with the last one.
std::string fault_of_replay(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const bool has_port = colon != endpoint.npos && endpoint.find('/', colon) == endpoint.npos;
  if (has_port)
    return "--endpoint: no port follows that of " + endpoint +
           ", where replay would be: then --replay is needed";
  return "--endpoint: expected one with a port, such as tcp://127.0.0.1:5556, not '" + endpoint + "'";
}

std::vector<cluster::Gateway> gateways_of(const WatchArguments& arguments) {
  const std::vector<std::string>& endpoints = arguments.endpoints;
  const std::size_t count = endpoints.size();
  if (!arguments.replays.empty() && arguments.replays.size() != count)
    throw UsageError("--replay: one is needed for each --endpoint, in their order, or none");
  if (arguments.server_keys.size() > 1 && arguments.server_keys.size() != count)
    throw UsageError("--server-key: one is needed for each --endpoint, in their order, or one for all");
  std::vector<cluster::Gateway> gateways;
  for (std::size_t i = 0; i < count; ++i) {
    cluster::Gateway gateway{endpoints[i], arguments.replays.empty() ? std::string() : arguments.replays[i]};
    check_endpoint("--endpoint", gateway.endpoint, config::AlertSettings().bind);
    if (!gateway.replay.empty()) check_endpoint("--replay", gateway.replay, config::AlertSettings().bind);
    if (gateway.replay.empty()) gateway.replay = config::endpoint_next_to(gateway.endpoint);
    if (gateway.replay.empty()) throw UsageError(fault_of_replay(gateway.endpoint));
    gateways.push_back(std::move(gateway));
  }
  return gateways;
}

cluster::Follower::Options options_of(const WatchArguments& arguments, const base::Clock& clock) {
  std::vector<cluster::Gateway> gateways = gateways_of(arguments);
  cluster::Follower::Options options;
  options.topics = arguments.topics;
  if (const auto fault = cluster::topics_fault(options.topics)) throw UsageError("TOPIC: " + *fault);
  for (const std::string& topic : options.topics)
    if (const auto fault = actors::beginning_fault(topic)) throw UsageError(*fault);
  if (!arguments.since.empty()) {
    options.since = cluster::parse_since(arguments.since, clock.wall());
    if (!options.since) {
      throw UsageError(
          "--since: expected a duration such as 10m, a time such as 2026-08-01T10:00:00Z, or a "
          "sequence number, not '" +
          arguments.since + "'");
    }
    const bool sequence = std::holds_alternative<std::uint64_t>(options.since->begin);
    if (sequence && (arguments.topics.size() != 1 || !actors::read_topic(arguments.topics.front()))) {
      throw UsageError(
          "--since: a sequence number counts one topic's events: one whole TOPIC is needed, such as "
          "alert/<tenant>/<camera>/<rule>/");
    }
  }
  for (std::size_t i = 0; i < gateways.size() && !arguments.server_keys.empty(); ++i) {
    const auto& keys = arguments.server_keys;
    gateways[i].curve = cluster::CurveClient{cluster::read_secret_key(arguments.key_file),
                                             server_key_of(keys.size() > 1 ? keys[i] : keys.front())};
  }
  options.endpoint = gateways.front().endpoint;
  options.replay = gateways.front().replay;
  options.curve = gateways.front().curve;
  options.others.assign(std::next(gateways.begin()), gateways.end());
  return options;
}

std::string endpoints_text(const std::vector<std::string>& endpoints) {
  std::string text;
  for (const std::string& endpoint : endpoints) text += (text.empty() ? "" : ", ") + endpoint;
  return text;
}

/// Nobody waits for so many seconds, and more do not fit into the clock's count.
constexpr double kForEver = 1e9;

int watch(const WatchArguments& arguments) {
  using std::chrono::milliseconds;
  const cluster::SystemClock clock;
  cluster::Follower follower(options_of(arguments, clock), clock);
  const bool bounded = arguments.timeout > 0 && arguments.timeout < kForEver;
  const auto until = clock.now() + std::chrono::duration_cast<base::Clock::TimePoint::duration>(
                                       std::chrono::duration<double>(bounded ? arguments.timeout : 0));
  std::uint64_t shown = 0;
  while (arguments.count == 0 || shown < arguments.count) {
    // An hour stands for ever: it only wakes up for nothing.
    auto wait = milliseconds(3'600'000);
    if (bounded) wait = std::min(wait, std::chrono::ceil<milliseconds>(until - clock.now()));
    const auto entry = wait.count() > 0 ? follower.next(wait) : std::nullopt;
    if (!entry) {
      if (bounded && clock.now() >= until) break;
      continue;
    }
    if (const auto* notice = std::get_if<cluster::Notice>(&*entry)) {
      std::cerr << "vigil: " << notice->text << '\n';
      continue;
    }
    const std::string& body = std::get<cluster::TopicMessage>(*entry).body;
    const auto text = actors::event_text(body);
    if (!text) {
      std::cerr << "vigil: " << endpoints_text(arguments.endpoints)
                << ": something that is no event was passed over\n";
      continue;
    }
    std::cout << (arguments.output == "json" ? actors::event_line(body) : *text) << std::endl;
    // Nobody reads it any more, or the disk is full: whoever called says so.
    if (!std::cout) return kDone;
    ++shown;
  }
  // What was replayed came in, too.
  if (shown == 0 && !follower.was_connected()) {
    std::ostringstream line;
    line << "no connection to " << endpoints_text(arguments.endpoints) << " within " << arguments.timeout
         << " s";
    throw std::runtime_error(line.str());
  }
  return shown < arguments.count ? kFailed : kDone;
}

}  // namespace

void add_watch(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("watch", "Print events as they come");
  auto arguments = std::make_shared<WatchArguments>();
  command
      ->add_option(
          "TOPIC", arguments->topics,
          "beginnings of topics, such as alert/north/ or alert/north/gate-7/; \"\" for all, with the "
          "states of cameras")
      ->capture_default_str();
  command
      ->add_option(
          "--since", arguments->since,
          "also the events of the past: from so long ago (10m), from a time (2026-08-01T10:00:00Z), or, "
          "of one whole TOPIC, from a sequence number")
      ->type_name("WHEN");
  command
      ->add_option(
          "--endpoint", arguments->endpoints,
          "where `vigil run` publishes, or a gateway of a fleet; given again, another gateway of the "
          "same fleet, which is followed when the one before is gone")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->default_str(arguments->endpoints.front());
  command
      ->add_option("--replay", arguments->replays,
                   "where it replays [the port after that of --endpoint]; one for each --endpoint")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  auto* server_key =
      command
          ->add_option("--server-key", arguments->server_keys,
                       "the server's public key, or its file, for encrypted events; one for all "
                       "endpoints, or one for each")
          ->type_name("TEXT")
          ->allow_extra_args(false);
  auto* key_file = command->add_option("--key-file", arguments->key_file, "your secret key (vigil keygen)");
  server_key->needs(key_file);
  key_file->needs(server_key);
  command->add_option("--output", arguments->output, "lines for people, or one JSON object a line")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command->add_option("--count", arguments->count, "exit after so many events")
      ->type_name("N")
      ->check(above_zero());
  command
      ->add_option(
          "--timeout", arguments->timeout,
          "exit after so many seconds; status 1 if there was no connection, or --count was not reached")
      ->type_name("S")
      ->check(above_zero());
  command->footer(
      "Topics: alert/<tenant>/<camera>/<rule>/, topic/<name>/<tenant>/<camera>/<rule>/,\n"
      "status/<tenant>/<camera>/ and process/<name>/. Without --since, the last event of each topic "
      "comes\nfirst. Each event is "
      "shown once, in the order of its topic; events that were missed are "
      "asked for "
      "again, over restarts of\n`vigil run` too, and those that nobody has any more are told on stderr.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return watch(*arguments); }; });
}

}  // namespace vigil::services
