// The shell around `AlertDesk`. Waits for disks, so it wants a thread of its own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/alert_desk.h"
#include "actors/messages/messages.h"
#include "actors/messages/watch_book.h"
#include "actors/status/status_board.h"

namespace vigil::actors {

struct AlertsDeps {
  AlertDesk::Options options;
  Outbox& outbox;
  Publisher& publisher;
  const base::Clock& clock;
  Metrics& metrics;
  StatusBoard& board;
  spdlog::logger& logger;
  /// Null: this process has all series by itself.
  claims_actor claims = {};
};

struct alerts_state {
  explicit alerts_state(alerts_actor::pointer self_pointer) : self(self_pointer) {}

  void observe(const WindowAnswersPtr& window, const stream_actor& source);
  /// Sends what comes of what was taken in: claims, and what windows are asked that are done with.
  void settle();
  void explained(const Explanation& explanation);
  void tell(const StatusChange& change);
  void tell_ended();
  void tick();
  void ask_for_evidence();
  /// Says once that the outbox fails, and once that it works again.
  void log_failure();
  /// How much was dropped since others have its cameras: what goes together in one line.
  void log_given_up();
  /// What was taken in is written once what has come meanwhile was taken in, too; an alert before all
  /// changes of state that wait here.
  void flush_later(caf::message_priority priority);
  void flush();
  /// Ends once nothing waits for its series' books, which are a moment's way off, and soon all the same.
  void stop();
  void end_if_settled();
  /// Tells what waits. An error that says how much is lost, if anything is.
  caf::error finish();

  alerts_actor::pointer self;
  std::optional<AlertDesk> desk;
  /// What the supervisor told of cameras.
  WatchBook book;
  spdlog::logger* logger = nullptr;
  StatusBoard* board = nullptr;
  const base::Clock* clock = nullptr;
  /// What was asked to be explained, by its ticket, and when.
  struct Asked {
    AlertDesk::Request request;
    base::Clock::TimePoint at;
  };
  std::map<std::uint64_t, Asked> requests;
  /// Null: this process has all series by itself.
  claims_actor claims;
  /// Whose windows those are that wait for their series.
  std::map<WindowAnswersPtr, stream_actor> sources;
  /// Null if there is to be none.
  evidence_actor evidence;
  supervisor_actor supervisor;
  /// Cameras that have ended, of which something may still wait for the target or for evidence.
  std::set<std::string> ending;
  std::string logged;
  base::Clock::TimePoint given_up_at{};
  /// When it ends at the latest, once it was asked to.
  std::optional<base::Clock::TimePoint> stop_by;
  /// Whether it was asked of itself to write, with either priority.
  bool flushing = false;
  bool flushing_soon = false;
  static inline const char* name = "alerts";
};

alerts_actor::behavior_type alerts(alerts_actor::stateful_pointer<alerts_state> self, AlertsDeps deps,
                                   evidence_actor evidence, supervisor_actor supervisor);

}  // namespace vigil::actors
