// What `vigil run` and `vigil node` are made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/fallback_outbox.h"
#include "actors/evidence/clip_index.h"
#include "actors/evidence/evidence_store.h"
#include "actors/messages/clips.h"
#include "actors/supervisor/pipeline_deps.h"
#include "actors/supervisor/supervisor_actor.h"
#include "config/running/retention_clock.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "media/reach.h"
#include "services/log.h"
#include "services/topic_publisher.h"

namespace vigil::services {

/// For an end that has a bound of its own: what it may take beside the grace.
constexpr std::chrono::seconds kBesidesGrace{5};

/// Threads of sockets, outbox, actors and signals.
constexpr std::size_t kThreads = 24;

/// What computes on a CPU has a thread a processor: who makes the engine, the vision tower, the language
/// model.
std::size_t threads_for(const config::EngineSettings& engine);

/// Where a thread is refused to them, libraries end the process or wait for ever. Before they are asked.
/// Throws std::runtime_error.
void check_threads(std::size_t wanted);

/// Those that are enabled.
std::vector<actors::CameraPtr> cameras_of(const config::Settings& settings);

/// What cameras may take of this process. Says so if they want more.
actors::Dialer::Limits dial_limits(const std::vector<actors::CameraPtr>& cameras, bool recorded,
                                   Announcer& announcer);

std::unique_ptr<media::Reach> make_reach(media::Reach::Told told);

/// An engine on each device, or this half of one.
std::vector<actors::DeviceSlot> devices_of(const config::EngineSettings& settings,
                                           const std::shared_ptr<const model::ModelFolder>& folder,
                                           Announcer& announcer,
                                           engine::Halves halves = engine::Halves::both);

/// How the pipeline ended. It does when the cameras have, or by a signal: neither has a time, and the
/// supervisor bounds the drain itself.
actors::DrainReport wait_for_end(caf::actor_system& system, const actors::supervisor_actor& supervisor);

/// Where stills and clips are kept, if the settings say so.
class EvidenceKeeping {
 public:
  /// Both have to outlive it. `clips_are_named`: answers about the past name clips.
  EvidenceKeeping(const config::EvidenceSettings& settings, bool clips_are_named,
                  config::RetentionClock& ages, spdlog::logger& logger);
  const std::optional<actors::EvidenceParts>& parts() const { return parts_; }
  /// Which there are; null: none is named.
  const actors::Clips* clips() const { return clips_ ? &*clips_ : nullptr; }

 private:
  std::optional<actors::ClipIndex> clips_;
  std::optional<actors::EvidenceStore> store_;
  std::optional<actors::EvidenceParts> parts_;
};

/// The topics' sockets, which publish and replay what is in an outbox.
class Topics {
 public:
  explicit Topics(actors::Metrics& metrics);
  /// All have to outlive what comes, this included, of which there is one at a time. Throws for sockets that
  /// cannot be had.
  std::unique_ptr<TopicPublisher> open(const config::AlertSettings& settings, const actors::Outbox& outbox,
                                       spdlog::logger& logger);

 private:
  ConnectionMetrics events_, replay_;
};

/// Where a process keeps and publishes its events, and what shows that they are true.
class EventParts {
 public:
  /// All have to outlive it. Throws for sockets and folders that cannot be had.
  EventParts(const config::Settings& settings, const base::Clock& clock, actors::Metrics& metrics,
             spdlog::logger& logger);

  actors::Outbox& outbox() { return *outbox_; }
  TopicPublisher& publisher() { return *publisher_; }
  const std::optional<actors::EvidenceParts>& evidence() const { return evidence_.parts(); }
  const actors::Clips* clips() const { return evidence_.clips(); }

 private:
  config::RetentionClock ages_;
  std::unique_ptr<actors::Outbox> outbox_;
  Topics topics_;
  std::unique_ptr<TopicPublisher> publisher_;
  EvidenceKeeping evidence_;
};

}  // namespace vigil::services
