// The shell around `Fleet`, `RecorderFleet`, `Dialer`, `Routes` and `Drain`: spawns the pipeline, cameras and
// recorders, sends what these decide, and tells them what comes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include "actors/messages/messages.h"
#include "actors/supervisor/camera_log.h"
#include "actors/supervisor/dialer.h"
#include "actors/supervisor/drain.h"
#include "actors/supervisor/fleet.h"
#include "actors/supervisor/pipeline_deps.h"
#include "actors/supervisor/recorder_fleet.h"
#include "actors/supervisor/routes.h"
#include "actors/supervisor/turn_timer.h"

namespace vigil::actors {

/// An actor that the supervisor has spawned and that has not ended.
struct Member {
  enum class Kind : std::uint8_t { camera, recorder, stage };
  Kind kind = Kind::stage;
  /// Of the camera, or of the stage.
  std::string name;
};

struct supervisor_state {
  explicit supervisor_state(supervisor_actor::pointer self_pointer) : self(self_pointer) {}

  void start_pipeline();
  void add_stage(const caf::actor_addr& address, const std::string& stage);
  void tell(const std::optional<Fleet::Change>& change);
  void report(const CameraReport& report);
  void lost(const caf::down_msg& message);
  void stage_lost(const std::string& stage, const caf::error& reason);
  void tick();
  void end_stranded();
  void reload(const CameraList& list);
  /// Starts and forgets what a reload let go, once it has drained.
  void settle();
  void ended(const std::string& camera);
  void stop_camera(const std::string& name);
  void stop();
  /// Ends the streams of cameras that cannot do so themselves.
  void end(const std::vector<WatchPtr>& watches);
  /// Once every camera's stream has ended, the pipeline is asked to quit from front to back.
  void finish_if_ended();
  void finish_pipeline();
  /// The run cannot go on.
  void fail(const std::string& why);
  void give_up();
  void answer_waiting();
  void force();
  /// This actor itself has failed: whoever waits hears of it, and the others end.
  void abandon(const std::string& why);

  // supervisor_sources.cpp: cameras and recorders, and when each is started.

  /// Its source is to be opened in its turn.
  void want_camera(const std::string& name);
  void want_source(const SourceId& id, const config::CameraSettings& camera);
  void drop_sources(const std::string& camera);
  void forget(const std::optional<std::uint64_t>& question);
  /// Opens the sources whose turn it is, and sees to it that it is called when it is the next one's.
  void dial();
  void take_turn(const Dialer::Turn& turn);
  void start_camera(const std::string& name);
  /// Sees to it that the packets of a camera that is about to start are kept, and tells evidence where. Where
  /// the camera is to keep those that it reads itself; null: nowhere.
  std::shared_ptr<media::PacketHistory> record(const CameraPtr& camera);
  void start_recorder(const std::string& camera);
  void stop_recorder(const std::optional<RecorderFleet::RecorderId>& recorder);
  void tell(const std::optional<RecorderReport>& news);
  void report(const RecorderReport& report, const caf::actor_addr& sender);
  void report(const ReachReport& report);
  void rest(const SourceRest& rest, const caf::actor_addr& sender);
  void camera_lost(const std::string& camera, bool failed);
  void recorder_lost(RecorderFleet::RecorderId recorder, bool failed);

  // supervisor_devices.cpp: devices, and which camera is watched where.

  void report(const DeviceReport& report);
  void route(const Routes::Decision& decision);

  supervisor_actor::pointer self;
  std::optional<PipelineDeps> deps;
  /// By the last list of cameras: those that nobody goes on with.
  std::set<std::string> removed;
  std::optional<Fleet> fleet;
  /// Without evidence there are none.
  std::optional<RecorderFleet> recordings;
  std::optional<Dialer> dialer;
  std::optional<Routes> routes;
  std::optional<CameraLog> log;
  Drain drain;
  /// Calls `dial`.
  TurnTimer turn_timer;
  std::unique_ptr<media::Reach> reach;

  std::map<caf::actor_addr, Member> members;
  evidence_actor evidence;
  alerts_actor alerts;
  router_actor router;
  std::vector<device_actor> devices;
  /// Who takes patches, of each device that is up.
  std::map<std::string, vision_actor> visions;
  std::map<std::string, camera_actor> cameras;
  std::map<RecorderFleet::RecorderId, recorder_actor> recorders;
  std::vector<caf::typed_response_promise<DrainReport>> waiting;
  static inline const char* name = "supervisor";
};

supervisor_actor::behavior_type supervisor(supervisor_actor::stateful_pointer<supervisor_state> self,
                                           PipelineDeps deps);

}  // namespace vigil::actors
