// vigil watch: events as they come.
#include <chrono>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "actors/alerts/event_text.h"
#include "cluster/topics.h"
#include "config/settings.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct WatchArguments {
  std::string topic = "alert/";
  std::string endpoint = config::AlertSettings().bind;
  std::string output = "text";
  std::uint64_t count = 0;
  double timeout = 0;
};

int watch(const WatchArguments& arguments) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  cluster::TopicSubscriber subscriber(arguments.endpoint, arguments.topic);
  cluster::SequenceTracker tracker;
  const bool bounded = arguments.timeout > 0;
  const auto until = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                               std::chrono::duration<double>(arguments.timeout));
  std::uint64_t shown = 0;
  while (arguments.count == 0 || shown < arguments.count) {
    // An hour stands for ever: it only wakes up for nothing.
    auto wait = milliseconds(3'600'000);
    if (bounded) wait = std::min(wait, std::chrono::ceil<milliseconds>(until - steady_clock::now()));
    const auto message = wait.count() > 0 ? subscriber.receive(wait) : std::nullopt;
    if (!message) {
      if (bounded && steady_clock::now() >= until) break;
      continue;
    }
    const cluster::Arrival arrival = tracker.see(message->topic, message->sequence);
    if (arrival.kind == cluster::Arrival::Kind::duplicate) continue;
    if (arrival.kind == cluster::Arrival::Kind::gap) {
      std::cerr << "vigil: " << arrival.missing << " events of " << message->topic << " were missed\n";
    }
    const auto text = actors::event_text(message->body);
    if (!text) {
      std::cerr << "vigil: " << arguments.endpoint << ": something that is no event was passed over\n";
      continue;
    }
    std::cout << (arguments.output == "json" ? message->body : *text) << std::endl;
    ++shown;
  }
  return shown < arguments.count ? kFailed : kDone;
}

}  // namespace

void add_watch(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("watch", "Print events as they come");
  auto arguments = std::make_shared<WatchArguments>();
  command
      ->add_option("TOPIC", arguments->topic,
                   "the beginning of the topics, such as alert/north/ or alert/north/gate-7/; \"\" for all, "
                   "with the states of cameras")
      ->capture_default_str();
  command->add_option("--endpoint", arguments->endpoint, "where `vigil run` publishes")
      ->capture_default_str();
  command->add_option("--output", arguments->output, "lines for people, or one JSON object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("--count", arguments->count, "exit after so many events")
      ->type_name("N")
      ->check(above_zero());
  command
      ->add_option("--timeout", arguments->timeout,
                   "exit after so many seconds; status 1 if --count was not reached")
      ->type_name("S")
      ->check(above_zero());
  command->footer(
      "Topics: alert/<tenant>/<camera>/<rule>/ and status/<tenant>/<camera>/. The last event of each topic "
      "comes first. Events that\n"
      "were missed are told on stderr; events that are sent again are shown once.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return watch(*arguments); }; });
}

}  // namespace vigil::services
