// vigil run: the cameras of a configuration, watched until they end or a signal comes.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/spawn_options.hpp>
#include <unistd.h>

#include "actors/messages/types.h"
#include "actors/status/status_actor.h"
#include "actors/supervisor/supervisor_actor.h"
#include "cluster/process/clock.h"
#include "cluster/process/end_requests.h"
#include "cluster/process/file_watch.h"
#include "cluster/process/process.h"
#include "cluster/process/system.h"
#include "config/checks/idle_rules.h"
#include "config/checks/left_behind.h"
#include "config/file/load.h"
#include "config/running/reload.h"
#include "config/running/snoozes.h"
#include "services/ask_parts.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/ending.h"
#include "services/frame_shape.h"
#include "services/log.h"
#include "services/memory_parts.h"
#include "services/reload_loop.h"
#include "services/service_parts.h"
#include "services/signals.h"
#include "services/slow_path_warnings.h"
#include "services/state_server.h"

namespace vigil::services {
namespace {

struct RunArguments {
  std::string config;
  std::string model;
  std::string pace;
  bool once = false;
};

/// The configuration with what the command line says otherwise, and with what is snoozed. Throws ConfigError;
/// `remarks` gets lines about what does not keep it from being used.
config::Settings load_settings(const RunArguments& arguments, std::vector<std::string>& remarks) {
  // A pipe could not be read again when it is time to reload.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(arguments.config, error);
  if (!arguments.once && std::filesystem::is_other(status)) {
    throw config::ConfigError(arguments.config,
                              {{0, 0, "is not a regular file, which could be read again when it changes"}});
  }
  config::Settings settings = config::load(arguments.config);
  config::Snoozes snoozes = config::read_snoozes(config::snooze_file(arguments.config));
  config::apply_snoozes(settings, snoozes.entries);
  remarks = std::move(snoozes.faults);
  if (!arguments.model.empty()) settings.model = arguments.model;
  for (config::CameraSettings& camera : settings.cameras) {
    if (arguments.pace == "fast") camera.stream.pace = config::Pace::fast;
    if (arguments.pace == "realtime") camera.stream.pace = config::Pace::realtime;
  }
  return settings;
}

/// The pipeline, until it ends: watches and follows the configuration. `watching`: what is said when it does.
int run_pipeline(caf::actor_system& system, actors::PipelineDeps pipeline, const std::string& watching,
                 const MemoryParts::Running& remembering, const config::Settings& settings,
                 const RunArguments& arguments, cluster::FileWatch& watch, Ending& ending,
                 spdlog::logger& logger, Announcer& announcer) {
  actors::Metrics& metrics = pipeline.metrics;
  // Before the first line of a camera.
  announcer.info(watching);
  const actors::supervisor_actor supervisor = system.spawn(actors::supervisor, std::move(pipeline));
  const Ending::Stopping stopping(ending, [&supervisor] { caf::anon_send(supervisor, actors::stop_atom_v); });

  std::optional<ReloadLoop> reload;
  if (!arguments.once) {
    const auto load = [&arguments, &logger] {
      std::vector<std::string> remarks;
      config::Settings loaded = load_settings(arguments, remarks);
      for (const std::string& remark : remarks) logger.error("{}", remark);
      for (const std::string& line : config::idle_rules(loaded)) logger.warn("{}", line);
      return loaded;
    };
    reload.emplace(
        config::Reloader(settings, load), watch, metrics, logger, [&](const config::Settings& changed) {
          logger.set_level(log_level(changed.log));
          remembering.keep(changed);
          caf::anon_send(supervisor, actors::reload_atom_v, actors::CameraList{cameras_of(changed)});
        });
  }

  const actors::DrainReport report = wait_for_end(system, supervisor);
  for (const std::string& failure : report.failures) announcer.error(failure);
  if (!report.complete) {
    // One whose supervisor has failed ends without it.
    if (!report.alerts_kept) end_within(system, kBesidesGrace);
    announcer.error(
        report.alerts_kept
            ? "not everything under way was finished; every alert that was found is in the outbox"
            : "not everything under way was finished; what was found last may not be in the outbox");
    leave(logger);
  }
  if (arguments.once && ending.was_asked()) {
    announcer.error("ended by a signal, before every file was played to its end");
    return kFailed;
  }
  return report.failures.empty() ? kDone : kFailed;
}

/// Where questions about the past are taken, if they are.
std::string asked_at(const config::Settings& settings) {
  return settings.memory.enabled && !settings.asks.bind.empty() ? ", asked on " + settings.asks.bind : "";
}

int run_as(const config::Settings& settings, const RunArguments& arguments, cluster::FileWatch& watch,
           Ending& ending, const std::shared_ptr<spdlog::logger>& logger, Announcer& announcer) {
  const cluster::SystemClock clock;
  // Before anything is made: without a model, nothing is.
  const auto folder = model::ModelFolder::open(settings.model);
  std::error_code unknown;
  for (const std::string& line : config::left_behind(settings, std::filesystem::current_path(unknown)))
    announcer.warn(line);
  for (const std::string& line : config::idle_rules(settings)) announcer.warn(line);
  actors::Metrics metrics(actors::Metrics::Options{.cameras = settings.metrics.cameras});
  metrics.build(kVersion, kCommit);
  actors::StatusBoard board(clock);
  // Before whatever takes long: until the model is loaded, who asks is told that it is being.
  cluster::SystemConfig system_config;
  actors::know_messages(system_config);
  caf::actor_system system(system_config);
  const actors::status_actor status =
      system.spawn<caf::hidden>(actors::status, actors::StatusDeps{board, metrics, *logger});
  const StateServer server(settings.metrics, metrics, system, status, clock,
                           [&logger](const std::string& line) { logger->warn("{}", line); });
  EventParts events(settings, clock, metrics, *logger);
  const SlowPathWarnings slow_paths([&announcer](const std::string& line) { announcer.warn(line); });
  MemoryParts memory(settings.memory, *folder, clock, metrics, board, *logger);
  std::vector<actors::DeviceSlot> devices = devices_of(settings.engine, folder, announcer);

  std::optional<FollowToo> follow_snoozes;
  if (!arguments.once) follow_snoozes.emplace(config::snooze_file(arguments.config), watch);

  const std::vector<actors::CameraPtr> cameras = cameras_of(settings);
  const std::string name = settings.name.empty() ? cluster::host_name() : settings.name;
  const actors::Dialer::Limits dial = dial_limits(cameras, events.evidence().has_value(), announcer);
  const std::string watching = "watching " + std::to_string(cameras.size()) +
                               (cameras.size() == 1 ? " camera" : " cameras") + "; events on " +
                               events.publisher().endpoint() + ", replayed on " +
                               events.publisher().replay_endpoint() + asked_at(settings) +
                               (server.url().empty() ? "" : ", metrics on " + server.url());
  try {
    std::optional<MemoryParts::Running> remembering(std::in_place, memory, system, events.clips());
    // Before anybody asks.
    remembering->keep(settings);
    std::optional<TakingAsks> asks(std::in_place, settings.asks, remembering->access().cache, system, clock,
                                   *logger, metrics);
    const int code =
        run_pipeline(system,
                     actors::PipelineDeps{.cameras = cameras,
                                          .once = arguments.once,
                                          .grace = settings.shutdown_grace,
                                          .name = name,
                                          .retention = settings.alerts.retention,
                                          .model_id = folder->name(),
                                          .open = media::VideoReader::open,
                                          .reach = make_reach,
                                          .dial = dial,
                                          .shape = frame_shape(*folder),
                                          .devices = std::move(devices),
                                          .outbox = events.outbox(),
                                          .publisher = events.publisher(),
                                          .metrics = metrics,
                                          .board = board,
                                          .clock = clock,
                                          .logger = *logger,
                                          .seed = std::random_device{}(),
                                          .threads = actors::Threads::own,
                                          .evidence = events.evidence(),
                                          .remembers = remembering->access().cache != nullptr,
                                          .cache = remembering->access()},
                     watching, *remembering, settings, arguments, watch, ending, *logger, announcer);
    // What devices have given it last is written.
    asks.reset();
    remembering.reset();
    // They use what was made before them.
    if (end_within(system, kBesidesGrace)) return code;
    announcer.error("some of what computes did not come to an end and was left");
    leave(*logger);
  } catch (const std::exception& error) {
    announcer.error(error.what());
    // Some may have nobody left who ends them.
    if (!end_within(system, settings.shutdown_grace + kBesidesGrace)) leave(*logger);
    return kFailed;
  }
}

int run(const RunArguments& arguments) {
  check_threads(kThreads);
  // Before it is read, so that no change is missed while the model loads.
  cluster::FileWatch watch(arguments.config);
  // Before any thread is started, since threads inherit what is blocked, and before anything takes long: the
  // first signal may come while the model is still loading.
  // Who wanted all of the files has not got them.
  Ending ending(arguments.once ? kFailed : kDone);
  const cluster::SystemClock clock;
  cluster::EndRequests requests(clock);
  const Signals handler(
      [&] {
        const auto meaning = requests.take();
        if (meaning == cluster::EndRequests::Meaning::quit) quit();
        if (meaning == cluster::EndRequests::Meaning::nothing) return;
        ending.ask();
      },
      [&watch] { watch.poke(); });
  config::Settings settings;
  std::vector<std::string> remarks;
  try {
    settings = load_settings(arguments, remarks);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  const auto logger = make_logger(settings.log);
  Announcer announcer(*logger);
  for (const std::string& remark : remarks) announcer.error(remark);
  try {
    check_threads(threads_for(settings.engine));
    return run_as(settings, arguments, watch, ending, logger, announcer);
  } catch (const std::exception& error) {
    announcer.error(error.what());
    return kFailed;
  }
}

}  // namespace

void add_run(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("run", "Watch cameras and publish alerts");
  auto arguments = std::make_shared<RunArguments>();
  command
      ->add_option("--config", arguments->config,
                   "the configuration (config/demo.yaml is an annotated example)")
      ->required()
      ->type_name("FILE");
  command->add_option("--model", arguments->model, "the model's folder, instead of the configuration's")
      ->type_name("DIR");
  command->add_option("--pace", arguments->pace, "play all files so, instead of as configured")
      ->check(one_of({"realtime", "fast"}));
  command->add_flag("--once", arguments->once, "play every file once, finish what is under way, and exit");
  command->footer(
      "The first SIGTERM or SIGINT finishes what is under way within the configuration's grace period; "
      "another one, a second or more later, ends at once. A change of the configuration's file, or SIGHUP, "
      "adds, removes and changes cameras and rules; a file with a mistake changes nothing. With --once, "
      "neither a change nor SIGHUP does anything.\n"
      "Example: vigil run --config config/demo.yaml, and in another terminal: vigil watch");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
