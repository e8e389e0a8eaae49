// vigil run: the cameras of a configuration, watched until they end or a signal comes.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <system_error>

#include <CLI/CLI.hpp>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "actors/supervisor/supervisor_actor.h"
#include "cluster/clock.h"
#include "cluster/file_watch.h"
#include "cluster/http.h"
#include "cluster/system.h"
#include "config/fields.h"
#include "config/load.h"
#include "config/reload.h"
#include "engine/window/engine.h"
#include "services/command.h"
#include "services/frame_shape.h"
#include "services/reload_loop.h"
#include "services/signals.h"
#include "services/topic_publisher.h"

namespace vigil::services {
namespace {

struct RunArguments {
  std::string config;
  std::string model;
  std::string pace;
  bool once = false;
};

/// The message as a JSON string, quotes included.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const nlohmann::json text = std::string(message.payload.data(), message.payload.size());
    const std::string quoted = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

spdlog::level::level_enum log_level(const config::LogSettings& settings) {
  return spdlog::level::from_str(std::string(config::name_of(settings.level)));
}

std::shared_ptr<spdlog::logger> make_logger(const config::LogSettings& settings) {
  auto logger = std::make_shared<spdlog::logger>("vigil", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(log_level(settings));
  logger->flush_on(spdlog::level::info);
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JsonMessage>('*').set_pattern(
      settings.format == config::LogFormat::json
          ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%*})"
          : "%Y-%m-%d %H:%M:%S.%e %l %v");
  logger->set_formatter(std::move(formatter));
  return logger;
}

std::vector<actors::CameraPtr> cameras_of(const config::Settings& settings) {
  std::vector<actors::CameraPtr> cameras;
  for (const config::CameraSettings& camera : settings.cameras) {
    if (camera.enabled) cameras.push_back(std::make_shared<const config::CameraSettings>(camera));
  }
  return cameras;
}

std::optional<cluster::CurveServer> curve_of(const config::CurveSettings& settings) {
  if (settings.secret_key_file.empty()) return std::nullopt;
  return cluster::CurveServer{cluster::read_secret_key(settings.secret_key_file), settings.allow};
}

/// What probes, scrapers and `vigil status` read.
std::unique_ptr<cluster::HttpServer> serve_state(const std::string& listen, const actors::Metrics& metrics,
                                                 const actors::StatusBoard& board) {
  if (listen.empty()) return nullptr;
  const auto probe = [](bool good) {
    return good ? cluster::HttpResponse{.body = "ok\n"}
                : cluster::HttpResponse{.status = 503, .body = "no\n"};
  };
  return std::make_unique<cluster::HttpServer>(
      listen, std::map<std::string, cluster::HttpServer::Handler>{
                  {"/metrics",
                   [&metrics] {
                     return cluster::HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                                                  .body = metrics.text()};
                   }},
                  {"/status",
                   [&metrics, &board] {
                     return cluster::HttpResponse{.content_type = "application/json",
                                                  .body = board.json(metrics)};
                   }},
                  {"/healthz", [&board, probe] { return probe(board.live()); }},
                  {"/readyz", [&board, probe] { return probe(board.ready()); }},
                  {"/startupz", [&board, probe] { return probe(board.started()); }}});
}

/// An engine on each device.
std::vector<actors::DeviceSlot> devices_of(const config::EngineSettings& settings,
                                           const std::shared_ptr<const model::ModelFolder>& folder) {
  std::vector<actors::DeviceSlot> slots;
  const std::vector<window::Device> devices = window::parse_devices(settings.device);
  const std::vector<window::Device> decode_devices =
      settings.decode_device.empty() ? devices : window::parse_devices(settings.decode_device);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const window::EngineOptions options{.device = devices[i],
                                        .decode_device = decode_devices[i],
                                        .compute = {},
                                        .quantization = settings.quantization,
                                        .kv_tokens = settings.kv_tokens};
    window::Engine engine = window::make_engine(folder, options);
    if (slots.empty())
      for (const std::string& warning : engine.warnings) std::cerr << "vigil: " << warning << '\n';
    slots.push_back({window::name_of(devices[i]), actors::parts_of(std::move(engine)),
                     [folder, options] { return actors::parts_of(window::make_engine(folder, options)); }});
  }
  return slots;
}

/// The configuration with what the command line says otherwise. Throws ConfigError.
config::Settings load_settings(const RunArguments& arguments) {
  // A pipe could not be read again when it is time to reload.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(arguments.config, error);
  if (!arguments.once && std::filesystem::is_other(status)) {
    throw config::ConfigError(arguments.config,
                              {{0, 0, "is not a regular file, which could be read again when it changes"}});
  }
  config::Settings settings = config::load(arguments.config);
  if (!arguments.model.empty()) settings.model = arguments.model;
  for (config::CameraSettings& camera : settings.cameras) {
    if (arguments.pace == "fast") camera.stream.pace = config::Pace::fast;
    if (arguments.pace == "realtime") camera.stream.pace = config::Pace::realtime;
  }
  return settings;
}

int run(const RunArguments& arguments) {
  // Before it is read, so that no change is missed while the model loads.
  cluster::FileWatch watch(arguments.config);
  config::Settings settings;
  try {
    settings = load_settings(arguments);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }

  // Before any thread is started, since threads inherit what is blocked. The first signal may come while the
  // model is still loading.
  std::mutex mutex;
  std::function<void()> drain = [] { std::_Exit(kDone); };
  const Signals handler(
      [&](int count) {
        if (count > 1) std::_Exit(kFailed);
        const std::lock_guard lock(mutex);
        drain();
      },
      [&watch] { watch.poke(); });

  const cluster::SystemClock clock;
  const auto logger = make_logger(settings.log);
  actors::Metrics metrics;
  actors::StatusBoard board(clock);
  const auto server = serve_state(settings.metrics.listen, metrics, board);
  const auto outbox = actors::open_rocksdb_outbox(settings.alerts.outbox);
  const auto curve = curve_of(settings.alerts.curve);
  TopicPublisher publisher(
      {.endpoint = settings.alerts.bind, .high_water_mark = settings.alerts.high_water_mark, .curve = curve},
      {.endpoint = settings.alerts.replay_endpoint(), .curve = curve}, *outbox);
  std::optional<actors::EvidenceStore> evidence;
  std::optional<actors::EvidenceParts> evidence_parts;
  if (settings.evidence.enabled) {
    evidence.emplace(actors::EvidenceStore::Options{settings.evidence.dir, settings.evidence.budget.bytes,
                                                    settings.evidence.max_age},
                     clock);
    if (!evidence->failure().empty()) logger->warn("evidence: {}", evidence->failure());
    evidence_parts.emplace(actors::EvidenceParts{
        *evidence, settings.evidence.pre_roll, settings.evidence.post_roll, settings.evidence.memory.bytes});
  }
  const auto folder = model::ModelFolder::open(settings.model);
  std::vector<actors::DeviceSlot> devices = devices_of(settings.engine, folder);

  cluster::SystemConfig system_config;
  system_config.add_message_types<caf::id_block::vigil>();
  caf::actor_system system(system_config);
  const std::vector<actors::CameraPtr> cameras = cameras_of(settings);
  const actors::supervisor_actor supervisor =
      system.spawn(actors::supervisor, actors::PipelineDeps{.cameras = cameras,
                                                            .once = arguments.once,
                                                            .grace = settings.shutdown_grace,
                                                            .retention = settings.alerts.retention,
                                                            .model_id = folder->name(),
                                                            .open = media::VideoReader::open,
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
                                                            .evidence = evidence_parts});
  {
    const std::lock_guard lock(mutex);
    drain = [&] { caf::anon_send(supervisor, actors::stop_atom_v); };
  }
  std::cerr << "vigil: watching " << cameras.size() << " cameras; events on " << publisher.endpoint()
            << ", replayed on " << publisher.replay_endpoint();
  if (server) std::cerr << ", metrics on http://" << settings.metrics.listen << "/metrics";
  std::cerr << '\n';

  std::optional<ReloadLoop> reload;
  if (!arguments.once) {
    reload.emplace(config::Reloader(settings, [&arguments] { return load_settings(arguments); }), watch,
                   metrics, *logger, [&](const config::Settings& changed) {
                     logger->set_level(log_level(changed.log));
                     caf::anon_send(supervisor, actors::reload_atom_v,
                                    actors::CameraList{cameras_of(changed)});
                   });
  }

  actors::DrainReport report;
  caf::scoped_actor self{system};
  // It ends when the cameras do, or by a signal: neither has a time, and the supervisor bounds the drain
  // itself.
  self->request(supervisor, caf::infinite, actors::wait_atom_v)
      .receive([&](const actors::DrainReport& outcome) { report = outcome; },
               [&](const caf::error& error) {
                 report.failures.push_back("the supervisor failed: " + system.render(error));
               });
  for (const std::string& failure : report.failures) std::cerr << "vigil: " << failure << '\n';
  if (!report.complete) {
    std::cerr
        << "vigil: not everything under way was finished; every alert that was found is in the outbox\n";
    // A source or a computation that does not come to an end must not keep the process.
    logger->flush();
    std::cerr.flush();
    std::_Exit(kFailed);
  }
  {
    const std::lock_guard lock(mutex);
    drain = [] {};
  }
  return report.failures.empty() ? kDone : kFailed;
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
      ->check(CLI::IsMember({"realtime", "fast"}));
  command->add_flag("--once", arguments->once, "play every file once, finish what is under way, and exit");
  command->footer(
      "The first SIGTERM or SIGINT finishes what is under way within the configuration's grace period; the "
      "second ends at once. A change of the configuration's file, or SIGHUP, adds, removes and changes "
      "cameras "
      "and rules; a file with a mistake changes nothing. With --once, neither does.\n"
      "Example: vigil run --config config/demo.yaml, and in another terminal: vigil watch");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
