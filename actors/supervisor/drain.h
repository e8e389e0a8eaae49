// The end of a run: who is still there, and when it is told how it ended. Without actors.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages/reports.h"

namespace vigil::actors {

/// A run stops when it is asked to, or fails: no camera is started any more. It finishes when the pipeline is
/// asked to quit, which it is once all of its cameras' streams have come out of it, or when it cannot go on.
/// It is over when nobody is there any more, or when it was given up. Not thread-safe.
class Drain {
 public:
  /// The stage that writes down what was found.
  static constexpr std::string_view kAlerts = "alerts";

  /// A stage of the pipeline, or a camera's actor, runs.
  void stage_runs(const std::string& stage) { stages_.insert(stage); }
  void camera_runs(const std::string& camera) { cameras_.insert(camera); }
  void camera_ended(const std::string& camera) { cameras_.erase(camera); }
  /// Whether nobody had asked the stage to: then the run cannot go on. `well`: all of its work is done.
  bool stage_ended(const std::string& stage, bool well) {
    const bool was_there = stages_.erase(stage) > 0;
    if (was_there && stage == kAlerts) alerts_kept_ = finishing_ && well;
    return was_there && !finishing_;
  }

  /// False if it stops already.
  bool stop() { return !std::exchange(stopping_, true); }
  bool stopping() const { return stopping_; }

  /// The pipeline is to quit. False if it was asked to before.
  bool finish() { return !std::exchange(finishing_, true); }
  bool finishing() const { return finishing_; }

  /// Whatever was captured has gone all the way through.
  void completed() { complete_ = true; }

  /// Whoever is still there is not waited for any more, but alerts; the second time, nor is alerts.
  void give_up() { ++given_up_; }

  /// How the run ended, as it was when it did; nothing while it goes on. `failures`: of the run so far.
  const std::optional<DrainReport>& outcome(const std::vector<std::string>& failures) {
    const bool over = finishing_ && stages_.empty() && cameras_.empty();
    const int patience = stages_.contains(std::string(kAlerts)) ? 2 : 1;
    if (!outcome_ && (over || given_up_ >= patience))
      outcome_ = DrainReport{complete_ && over, alerts_kept_, failures};
    return outcome_;
  }

 private:
  std::set<std::string> stages_;
  std::set<std::string> cameras_;
  bool stopping_ = false;
  bool finishing_ = false;
  bool complete_ = false;
  bool alerts_kept_ = false;
  int given_up_ = 0;
  std::optional<DrainReport> outcome_;
};

}  // namespace vigil::actors
