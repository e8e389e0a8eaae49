// The shell around `Fleet`, `Dialer` and `Placement`: spawns the pipeline, starts cameras in their turn,
// moves them when a device is lost, drains in the order of the pipeline.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "actors/camera/camera.h"
#include "actors/evidence/evidence_store.h"
#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "actors/supervisor/dialer.h"
#include "actors/supervisor/engine_parts.h"
#include "actors/supervisor/fleet.h"
#include "actors/supervisor/line_budget.h"
#include "actors/supervisor/placement.h"
#include "actors/supervisor/recordings.h"
#include "actors/supervisor/spawn.h"
#include "actors/supervisor/turn_timer.h"
#include "config/clock.h"
#include "media/reach.h"

namespace vigil::actors {

/// What stills and clips of alerts need.
struct EvidenceParts {
  EvidenceStore& store;
  /// How much longer than its window a clip is.
  config::Duration pre_roll = config::EvidenceSettings().pre_roll;
  config::Duration post_roll = config::EvidenceSettings().post_roll;
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
  config::Duration grace = config::Settings().shutdown_grace;
  /// What this process is called on its own topic; empty if it has none.
  std::string name = {};
  config::Duration retention = config::AlertSettings().retention;
  std::string model_id;
  ReaderFactory open;
  PacketReaderFactory open_packets = media::PacketReader::open;
  /// Empty: servers are not asked, and every attempt takes a thread.
  ReachFactory reach = {};
  Dialer::Limits dial = {};
  /// How the engines want their frames; the same for all.
  FrameShape shape;
  /// At least one, of different names. Cameras are spread over them.
  std::vector<DeviceSlot> devices;
  Outbox& outbox;
  Publisher& publisher;
  Metrics& metrics;
  StatusBoard& board;
  const config::Clock& clock;
  spdlog::logger& logger;
  /// Of all jitter.
  std::uint64_t seed = 0;
  Threads threads = Threads::own;
  /// Nothing: alerts have none.
  std::optional<EvidenceParts> evidence = {};
  /// Of the windows that are answered; may be empty.
  WindowObserver observer = {};
};

struct supervisor_state {
  explicit supervisor_state(supervisor_actor::pointer self_pointer) : self(self_pointer) {}

  void start_pipeline();
  /// Its source is to be opened in its turn.
  void want_camera(const std::string& name);
  void want_source(const SourceId& id, const config::CameraSettings& camera);
  void drop_source(const SourceId& id);
  void drop_sources(const std::string& camera);
  /// Opens the sources whose turn it is, and sees to it that it is called when it is the next one's.
  void dial();
  void take_turn(const Dialer::Turn& turn);
  void await_turn();
  void tell_exhaustion();
  void start_camera(const std::string& name);
  /// Sees to it that the packets of a camera that is about to start are kept, and tells evidence where. Where
  /// the camera is to keep those that it reads itself; null: nowhere.
  std::shared_ptr<media::PacketHistory> record(const CameraPtr& camera);
  void start_recorder(const std::string& camera);
  void stop_recorder(Recordings::RecorderId recorder);
  bool is_current_recorder(const caf::actor_addr& sender) const {
    return recordings && sender && recordings->is_current(sender.id());
  }
  void tell(const Fleet::Change& change);
  void tell_recording(const std::string& camera, bool recording, const std::string& reason);
  void report(const CameraReport& report);
  void report(const RecorderReport& report, const caf::actor_addr& sender);
  void report(const ReachReport& report);
  void rest(const SourceRest& rest, const caf::actor_addr& sender);
  /// A source could not be reached, without an actor that says so.
  void unreachable(const SourceId& id, const std::string& reason);
  void report(const DeviceReport& report);
  /// The cameras of a device that came up are watched there.
  void device_up(const DeviceReport& report);
  void device_restarting(const DeviceReport& report);
  /// Its cameras move; without a device that they can move to, the run ends.
  void device_lost(const DeviceReport& report);
  /// Sends a camera's patches to its device, if that is up.
  void route(const std::string& camera);
  void unwatched(const std::string& camera, const std::string& reason);
  void lost(const caf::down_msg& message);
  void camera_lost(const std::string& camera, bool failed);
  void recorder_lost(const caf::down_msg& message);
  void tick();
  void log(spdlog::level::level_enum level, const std::string& line);
  void reload(const CameraList& list);
  /// Starts and forgets what a reload let go, once it has drained.
  void settle();
  void stop_camera(const std::string& name);
  void stop();
  void end_orphans();
  /// Once every camera's stream has ended, the pipeline is asked to quit from front to back.
  void finish_if_ended();
  void finish_pipeline();
  void answer_waiting();

  supervisor_actor::pointer self;
  std::optional<PipelineDeps> deps;
  std::optional<Fleet> fleet;
  std::optional<Placement> placement;
  evidence_actor evidence;
  alerts_actor alerts;
  pruner_actor pruner;
  std::vector<device_actor> devices;
  /// Who takes patches, of each device that is up.
  std::map<std::string, vision_actor> visions;
  std::map<caf::actor_addr, std::string> cameras;
  std::map<caf::actor_addr, std::string> stages;
  std::map<std::string, camera_actor> handles;
  std::optional<Dialer> dialer;
  std::unique_ptr<media::Reach> reach;
  /// Of actors that have not ended yet.
  std::map<SourceId, SourceRest> resting;
  /// Calls `dial`.
  TurnTimer turn_timer;
  bool exhaustion_told = false;
  std::optional<LineBudget> lines;
  /// Without evidence there are none.
  std::optional<Recordings> recordings;
  /// Those that have not ended, by their actor's number.
  std::map<Recordings::RecorderId, recorder_actor> recorders;
  bool finishing = false;
  bool complete = false;
  std::vector<caf::typed_response_promise<DrainReport>> waiting;
  std::optional<DrainReport> outcome;
  static inline const char* name = "supervisor";
};

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_state> self,
                                           PipelineDeps deps);

}  // namespace vigil::actors
