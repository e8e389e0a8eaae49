#include "services/service_parts.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>

#include <caf/scoped_actor.hpp>
#include <sys/resource.h>

#include "actors/camera/source_options.h"
#include "actors/supervisor/sources.h"
#include "cluster/process/memory_limit.h"
#include "cluster/process/process.h"
#include "engine/run/device_check.h"
#include "services/memory_parts.h"

namespace vigil::services {
namespace {

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

void check_devices(const char* key, const std::vector<run::Device>& devices) {
  for (const run::Device& device : devices)
    if (const std::string fault = run::fault_of(device); !fault.empty())
      throw std::runtime_error(std::string(key) + ": " + run::name_of(device) + ": " + fault);
}

cluster::GateOptions observed(cluster::GateOptions gate, ConnectionMetrics& metrics) {
  gate.observer = &metrics;
  return gate;
}

}  // namespace

std::size_t threads_for(const config::EngineSettings& engine) {
  const std::vector<run::Device> devices = run::parse_devices(engine.device);
  const bool on_cpu = std::any_of(devices.begin(), devices.end(), [](const run::Device& device) {
    return device.kind == kernels::DeviceKind::cpu;
  });
  return kThreads + (on_cpu ? 3 * std::max(4U, std::thread::hardware_concurrency()) : 0);
}

void check_threads(std::size_t wanted) {
  const std::size_t most = cluster::startable_threads(wanted);
  if (most < wanted)
    throw std::runtime_error("no more than " + std::to_string(most) + " threads could be started, and " +
                             std::to_string(wanted) +
                             " are needed beside those of cameras: raise ulimit -u (or -v), TasksMax= of the "
                             "service or the container's pids limit");
}

std::vector<actors::CameraPtr> cameras_of(const config::Settings& settings) {
  std::vector<actors::CameraPtr> cameras;
  for (const config::CameraSettings& camera : settings.cameras) {
    if (camera.enabled) cameras.push_back(std::make_shared<const actors::OwnCamera>(camera));
  }
  return cameras;
}

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

std::unique_ptr<media::Reach> make_reach(media::Reach::Told told) {
  return media::Reach::make(std::move(told), {.time = actors::kOpenTimeout});
}

std::vector<actors::DeviceSlot> devices_of(const config::EngineSettings& settings,
                                           const std::shared_ptr<const model::ModelFolder>& folder,
                                           Announcer& announcer, engine::Halves halves) {
  std::vector<actors::DeviceSlot> slots;
  // Engines are made again on the threads of their devices.
  const auto epochs = std::make_shared<std::atomic<std::uint32_t>>(0);
  const std::vector<run::Device> devices = run::parse_devices(settings.device);
  const std::vector<run::Device> decode_devices =
      settings.decode_device.empty() ? devices : run::parse_devices(settings.decode_device);
  check_devices("engine.device", devices);
  check_devices("engine.decode_device", decode_devices);
  const auto window_memory = window_memory_of(settings, devices.size(), cluster::memory_limit());
  if (!window_memory)
    announcer.warn(
        "how much memory there is cannot be told: what windows remember (window.memory) has no bound, until "
        "engine.window_memory names one");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    engine::EngineOptions options{.device = devices[i],
                                  .halves = halves,
                                  .decode_device = decode_devices[i],
                                  .compute = {},
                                  .quantization = settings.quantization,
                                  .kv_tokens = settings.kv_tokens};
    if (window_memory) options.window_memory = *window_memory;
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

actors::DrainReport wait_for_end(caf::actor_system& system, const actors::supervisor_actor& supervisor) {
  actors::DrainReport report;
  caf::scoped_actor self{system};
  // Without a limit: cameras have no end, and once it is told to stop it bounds the drain itself.
  self->request(supervisor, caf::infinite, actors::wait_atom_v)
      .receive([&](const actors::DrainReport& outcome) { report = outcome; },
               [&](const caf::error& error) {
                 // It was gone before it could be asked: its own words are in the log.
                 report.failures.push_back("the supervisor failed at its start: " + system.render(error));
               });
  return report;
}

EvidenceKeeping::EvidenceKeeping(const config::EvidenceSettings& settings, bool clips_are_named,
                                 config::RetentionClock& ages, spdlog::logger& logger) {
  if (!settings.enabled) return;
  if (clips_are_named) clips_.emplace();
  store_.emplace(actors::EvidenceStore::Options{.dir = settings.dir,
                                                .budget = settings.budget.bytes,
                                                .max_age = settings.max_age,
                                                .clips = clips_ ? &*clips_ : nullptr},
                 ages);
  if (!store_->failure().empty()) logger.warn("evidence: {}", store_->failure());
  parts_.emplace(
      actors::EvidenceParts{*store_, settings.pre_roll, settings.post_roll, settings.memory.bytes});
}

Topics::Topics(actors::Metrics& metrics) : events_("events", metrics), replay_("replay", metrics) {}

std::unique_ptr<TopicPublisher> Topics::open(const config::AlertSettings& settings,
                                             const actors::Outbox& outbox, spdlog::logger& logger) {
  const auto curve = curve_of(settings.curve);
  const cluster::GateOptions gate = gate_of(settings, logger);
  return std::make_unique<TopicPublisher>(
      cluster::TopicPublisher::Options{.endpoint = settings.bind,
                                       .high_water_mark = settings.high_water_mark,
                                       .curve = curve,
                                       .gate = observed(gate, events_)},
      cluster::ReplayServer::Options{
          .endpoint = settings.replay_endpoint(), .curve = curve, .gate = observed(gate, replay_)},
      outbox);
}

EventParts::EventParts(const config::Settings& settings, const base::Clock& clock, actors::Metrics& metrics,
                       spdlog::logger& logger)
    : ages_(clock),
      outbox_(actors::make_fallback_outbox(
          {.open = [this, &settings] { return actors::open_rocksdb_outbox(settings.alerts.outbox, ages_); }},
          ages_, clock, metrics, logger)),
      topics_(metrics),
      publisher_(topics_.open(settings.alerts, *outbox_, logger)),
      evidence_(settings.evidence, settings.memory.enabled, ages_, logger) {}

}  // namespace vigil::services
