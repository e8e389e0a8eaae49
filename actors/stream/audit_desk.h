// Windows that are computed whole beside what pruning and reuse leave, to tell what these cost.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/sliding_window.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// An audited window has a stream of its own at the desk, of all groups of its patches and computed anew,
/// which is asked what the camera's stream was. It comes after all other work, into room that is free; what
/// is missing of it, or late, gives it up. Not thread-safe.
class AuditDesk {
 public:
  /// The desk has to outlive it.
  explicit AuditDesk(stream::StreamDesk& desk) : desk_(desk) {}

  /// Of every patch of a camera, before its windows are asked.
  void push(const VisualPatch& patch);

  struct Asked {
    stream::WindowId id;
    stream::SlidingWindow::Due due;
    /// When the first patch of `due` begins, in seconds.
    double first = 0;
    /// By when its answers are due, for which there is time until the next windows are.
    base::Clock::TimePoint by;
  };
  /// A window of the camera was asked these questions. Asks the same of the audit's stream, if it is audited.
  void asked(const WatchPtr& watch, const Asked& window,
             const std::vector<stream::CompiledQuestionPtr>& questions);

  /// What the desk tells of a window. True: it was an audit's, and nobody else's business.
  bool answered(const stream::DeskNews::Answered& news);
  bool failed(const stream::WindowId& id);

  /// The camera has ended.
  void forget(const std::string& camera);

  /// Both answers of a window, how likely "Yes" is: answer i is of rule i.
  struct Both {
    WatchPtr watch;
    std::vector<double> pruned, whole;
  };
  struct News {
    std::vector<Both> both;
    /// Audits that came to nothing.
    std::size_t given_up = 0;
  };
  News take_news();

  /// The desk's name for a camera's audit, which is no camera's.
  static std::string stream_of(const std::string& camera) { return camera + "#audit"; }

 private:
  struct Audit {
    double ends = 0;
    /// When it is given up, a window's length later.
    double until = 0;
    /// Given up: the rest of its patches are ignored.
    bool over = false;
    std::optional<stream::WindowId> pruned_id, whole_id;
    WatchPtr watch;
    std::vector<double> pruned, whole;
  };
  Audit* find(const stream::WindowId& id, bool of_audit);
  void give_up(const std::string& camera, Audit& audit);
  void close(const std::string& camera);
  void complete(const std::string& camera, Audit& audit);

  stream::StreamDesk& desk_;
  std::map<std::string, Audit> audits_;
  News news_;
};

}  // namespace vigil::actors
