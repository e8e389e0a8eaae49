// What a pipeline stands on: the supervisor is spawned with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <spdlog/logger.h>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "actors/camera/camera.h"
#include "actors/camera/recorder.h"
#include "actors/device/engine_parts.h"
#include "actors/evidence/evidence_store.h"
#include "actors/messages/data.h"
#include "actors/messages/messages.h"
#include "actors/messages/spawn.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/supervisor/dialer.h"
#include "base/clock.h"
#include "media/reach.h"

namespace vigil::actors {

/// What stills and clips of alerts need.
struct EvidenceParts {
  EvidenceStore& store;
  /// How much longer than its window a clip is.
  base::Duration pre_roll = config::EvidenceSettings().pre_roll;
  base::Duration post_roll = config::EvidenceSettings().post_roll;
  /// Packets of each camera that are held, at most; those of clips that wait to be written are held apart,
  /// within the same bound and up to one clip more.
  std::size_t memory = config::EvidenceSettings().memory.bytes;
};

/// Makes what asks servers of cameras: `media::Reach::make`, or a scripted one in tests.
using ReachFactory = std::function<std::unique_ptr<media::Reach>(media::Reach::Told told)>;

/// What a pipeline stands on. Everything that is referred to has to outlive the actor system.
struct PipelineDeps {
  std::vector<CameraPtr> cameras;
  /// Play every file once, then drain.
  bool once = false;
  base::Duration grace = config::Settings().shutdown_grace;
  /// What this process is called on its own topic; empty if it has none.
  std::string name = {};
  base::Duration retention = config::AlertSettings().retention;
  std::string model_id;
  ReaderFactory open;
  PacketReaderFactory open_packets = media::PacketReader::open;
  /// Empty: servers are not asked, and every attempt takes a thread.
  ReachFactory reach = {};
  Dialer::Limits dial = {};
  /// How the engines want their frames; the same for all.
  FrameShape shape;
  /// Of different names. Cameras are spread over them.
  std::vector<DeviceSlot> devices;
  /// There are none here: others report theirs, and each camera's tenure names its own. The run goes on
  /// without cameras.
  bool devices_elsewhere = false;
  Outbox& outbox;
  Publisher& publisher;
  Metrics& metrics;
  StatusBoard& board;
  const base::Clock& clock;
  spdlog::logger& logger;
  /// Of all jitter.
  std::uint64_t seed = 0;
  Threads threads = Threads::own;
  /// Nothing: alerts have none.
  std::optional<EvidenceParts> evidence = {};
  /// Something remembers what cameras see.
  bool remembers = false;
  /// Of the windows that are answered; may be empty.
  PipelineObserver observer = {};
  /// Null: this process has all its series by itself, as one that is alone.
  claims_actor claims = {};
  CacheAccess cache = {};
};

}  // namespace vigil::actors
