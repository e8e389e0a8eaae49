// The shell around `Recorder`. Blocks in its source, so it wants a thread of its own.
#pragma once

#include <memory>
#include <optional>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/camera/recorder.h"
#include "actors/messages/messages.h"

namespace vigil::actors {

struct RecorderDeps {
  PacketReaderFactory open;
  const base::Clock& clock;
  spdlog::logger& logger;
  std::shared_ptr<const Pulse> pulse;
};

struct recorder_state : RecorderListener {
  explicit recorder_state(recorder_actor::pointer self_pointer) : self(self_pointer) {}

  void on_recording(bool recording, const std::string& reason) override;
  void advance();

  recorder_actor::pointer self;
  std::optional<RecorderDeps> deps;
  supervisor_actor supervisor;
  std::string camera;
  std::optional<Recorder> recorder;
  static inline const char* name = "recorder";
};

recorder_actor::behavior_type recorder(recorder_actor::stateful_pointer<recorder_state> self,
                                       RecorderOptions options, RecorderDeps deps,
                                       supervisor_actor supervisor);

}  // namespace vigil::actors
