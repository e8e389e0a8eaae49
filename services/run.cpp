// vigil run: the cameras of a configuration, watched until they end or a signal comes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/spawn_options.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "actors/alerts/fallback_outbox.h"
#include "actors/camera/source_options.h"
#include "actors/status/status_actor.h"
#include "actors/supervisor/sources.h"
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
#include "config/running/retention_clock.h"
#include "config/running/snoozes.h"
#include "engine/engine.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/ending.h"
#include "services/frame_shape.h"
#include "services/log.h"
#include "services/reload_loop.h"
#include "services/signals.h"
#include "services/slow_path_warnings.h"
#include "services/state_server.h"
#include "services/topic_publisher.h"

namespace vigil::services {
namespace {

struct RunArguments {
  std::string config;
  std::string model;
  std::string pace;
  bool once = false;
};

std::vector<actors::CameraPtr> cameras_of(const config::Settings& settings) {
  std::vector<actors::CameraPtr> cameras;
  for (const config::CameraSettings& camera : settings.cameras) {
    if (camera.enabled) cameras.push_back(std::make_shared<const config::CameraSettings>(camera));
  }
  return cameras;
}

/// What cameras may take of this process. Says so if they want more.
actors::Dialer::Limits dial_limits(const std::vector<actors::CameraPtr>& cameras, bool recorded,
                                   Announcer& announcer) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const actors::Dialer::Limits limits = actors::Dialer::limits_for(files.rlim_cur);
  const std::size_t held = actors::cameras_within(limits.descriptors, cameras, recorded);
  if (held < cameras.size()) {
    announcer.warn("a limit of " + std::to_string(files.rlim_cur) + " open files leaves " +
                   std::to_string(limits.descriptors) + " for cameras, which is enough for " +
                   std::to_string(held) + " of " + std::to_string(cameras.size()) +
                   " at a time; the others wait until one is lost (raise it with ulimit -n, LimitNOFILE= or "
                   "--ulimit nofile=)");
  }
  return limits;
}

std::optional<cluster::CurveServer> curve_of(const config::CurveSettings& settings) {
  if (settings.secret_key_file.empty()) return std::nullopt;
  return cluster::CurveServer{cluster::read_secret_key(settings.secret_key_file), settings.allow};
}

/// The connections of each topics' socket, of the descriptors that this process may have.
cluster::GateOptions gate_of(const config::AlertSettings& settings, spdlog::logger& logger) {
  const std::uint64_t descriptors = cluster::raise_descriptor_limit();
  cluster::GateOptions gate;
  gate.connections = cluster::fitting_connections(settings.max_connections, descriptors, 2);
  gate.connections_of_address = settings.max_connections_per_address;
  if (gate.connections < settings.max_connections)
    logger.warn("alerts.max_connections: {} instead of {}: this process may have {} descriptors",
                gate.connections, settings.max_connections, descriptors);
  return gate;
}

cluster::GateOptions observed(cluster::GateOptions gate, ConnectionMetrics& metrics) {
  gate.observer = &metrics;
  return gate;
}

std::unique_ptr<media::Reach> make_reach(media::Reach::Told told) {
  return media::Reach::make(std::move(told), {.time = actors::kOpenTimeout});
}

/// An engine on each device.
std::vector<actors::DeviceSlot> devices_of(const config::EngineSettings& settings,
                                           const std::shared_ptr<const model::ModelFolder>& folder,
                                           Announcer& announcer) {
  std::vector<actors::DeviceSlot> slots;
  // Engines are made again on the threads of their devices.
  const auto epochs = std::make_shared<std::atomic<std::uint32_t>>(0);
  const std::vector<run::Device> devices = run::parse_devices(settings.device);
  const std::vector<run::Device> decode_devices =
      settings.decode_device.empty() ? devices : run::parse_devices(settings.decode_device);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const engine::EngineOptions options{.device = devices[i],
                                        .decode_device = decode_devices[i],
                                        .compute = {},
                                        .quantization = settings.quantization,
                                        .kv_tokens = settings.kv_tokens};
    const auto make = [folder, options, epochs] {
      engine::EngineOptions own = options;
      own.epoch = (*epochs)++;
      return engine::make_engine(folder, own);
    };
    engine::Engine engine = make();
    if (slots.empty())
      for (const std::string& warning : engine.warnings) announcer.warn(warning);
    slots.push_back({run::name_of(devices[i]), actors::parts_of(std::move(engine)),
                     [make] { return actors::parts_of(make()); }});
  }
  return slots;
}

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

/// For an end that has a bound of its own: what it may take beside the grace.
constexpr std::chrono::seconds kBesidesGrace{5};

/// How the pipeline ended. It does when the cameras have, or by a signal: neither has a time, and the
/// supervisor bounds the drain itself.
actors::DrainReport wait_for_end(caf::actor_system& system, const actors::supervisor_actor& supervisor) {
  actors::DrainReport report;
  caf::scoped_actor self{system};
  self->request(supervisor, caf::infinite, actors::wait_atom_v)
      .receive([&](const actors::DrainReport& outcome) { report = outcome; },
               [&](const caf::error& error) {
                 // It was gone before it could be asked: its own words are in the log.
                 report.failures.push_back("the supervisor failed at its start: " + system.render(error));
               });
  return report;
}

/// The pipeline, until it ends: watches and follows the configuration. `watching`: what is said when it does.
int run_pipeline(caf::actor_system& system, actors::PipelineDeps pipeline, const std::string& watching,
                 const config::Settings& settings, const RunArguments& arguments, cluster::FileWatch& watch,
                 Ending& ending, spdlog::logger& logger, Announcer& announcer) {
  actors::Metrics& metrics = pipeline.metrics;
  const actors::supervisor_actor supervisor = system.spawn(actors::supervisor, std::move(pipeline));
  const Ending::Stopping stopping(ending, [&supervisor] { caf::anon_send(supervisor, actors::stop_atom_v); });
  announcer.info(watching);

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
  system_config.add_message_types<caf::id_block::vigil>();
  caf::actor_system system(system_config);
  const actors::status_actor status =
      system.spawn<caf::hidden>(actors::status, actors::StatusDeps{board, metrics, *logger});
  const StateServer server(settings.metrics, metrics, system, status, clock,
                           [&logger](const std::string& line) { logger->warn("{}", line); });
  config::RetentionClock ages(clock);
  const auto outbox = actors::make_fallback_outbox(
      {.open = [&] { return actors::open_rocksdb_outbox(settings.alerts.outbox, ages); }}, ages, clock,
      metrics, *logger);
  const auto curve = curve_of(settings.alerts.curve);
  ConnectionMetrics events_connections("events", metrics);
  ConnectionMetrics replay_connections("replay", metrics);
  const cluster::GateOptions gate = gate_of(settings.alerts, *logger);
  TopicPublisher publisher({.endpoint = settings.alerts.bind,
                            .high_water_mark = settings.alerts.high_water_mark,
                            .curve = curve,
                            .gate = observed(gate, events_connections)},
                           {.endpoint = settings.alerts.replay_endpoint(),
                            .curve = curve,
                            .gate = observed(gate, replay_connections)},
                           *outbox);
  std::optional<actors::EvidenceStore> evidence;
  std::optional<actors::EvidenceParts> evidence_parts;
  if (settings.evidence.enabled) {
    evidence.emplace(actors::EvidenceStore::Options{settings.evidence.dir, settings.evidence.budget.bytes,
                                                    settings.evidence.max_age},
                     ages);
    if (!evidence->failure().empty()) logger->warn("evidence: {}", evidence->failure());
    evidence_parts.emplace(actors::EvidenceParts{
        *evidence, settings.evidence.pre_roll, settings.evidence.post_roll, settings.evidence.memory.bytes});
  }
  const SlowPathWarnings slow_paths([&announcer](const std::string& line) { announcer.warn(line); });
  std::vector<actors::DeviceSlot> devices = devices_of(settings.engine, folder, announcer);

  std::optional<FollowToo> follow_snoozes;
  if (!arguments.once) follow_snoozes.emplace(config::snooze_file(arguments.config), watch);

  const std::vector<actors::CameraPtr> cameras = cameras_of(settings);
  const std::string name = settings.name.empty() ? cluster::host_name() : settings.name;
  const actors::Dialer::Limits dial = dial_limits(cameras, evidence_parts.has_value(), announcer);
  const std::string watching = "watching " + std::to_string(cameras.size()) +
                               (cameras.size() == 1 ? " camera" : " cameras") + "; events on " +
                               publisher.endpoint() + ", replayed on " + publisher.replay_endpoint() +
                               (server.url().empty() ? "" : ", metrics on " + server.url());
  try {
    const int code = run_pipeline(system,
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
                                                       .outbox = *outbox,
                                                       .publisher = publisher,
                                                       .metrics = metrics,
                                                       .board = board,
                                                       .clock = clock,
                                                       .logger = *logger,
                                                       .seed = std::random_device{}(),
                                                       .threads = actors::Threads::own,
                                                       .evidence = evidence_parts},
                                  watching, settings, arguments, watch, ending, *logger, announcer);
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

/// Of sockets, outbox, actors and signals.
constexpr std::size_t kThreads = 24;

/// What computes on a CPU has a thread a processor: who makes the engine, the vision tower, the language
/// model.
std::size_t threads_for(const config::EngineSettings& engine) {
  const std::vector<run::Device> devices = run::parse_devices(engine.device);
  const bool on_cpu = std::any_of(devices.begin(), devices.end(), [](const run::Device& device) {
    return device.kind == kernels::DeviceKind::cpu;
  });
  return kThreads + (on_cpu ? 3 * std::max(4U, std::thread::hardware_concurrency()) : 0);
}

/// Where a thread is refused to them, libraries end the process or wait for ever. Before they are asked.
void check_threads(std::size_t wanted) {
  const std::size_t most = cluster::startable_threads(wanted);
  if (most < wanted)
    throw std::runtime_error("no more than " + std::to_string(most) + " threads could be started, and " +
                             std::to_string(wanted) +
                             " are needed beside those of cameras: raise ulimit -u (or -v), TasksMax= of the "
                             "service or the container's pids limit");
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
