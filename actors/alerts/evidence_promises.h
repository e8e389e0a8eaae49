// Evidence that was promised and is not settled yet.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/alerts/alert_policy.h"
#include "actors/messages/data.h"

namespace vigil::actors {

/// An event of an episode, as it was decided.
struct Told {
  WindowAnswersPtr window;
  /// The rule's place in the window's camera.
  std::size_t place = 0;
  Emission emission;
  std::string episode;
  /// Those that the episode began with, whatever the rule's are by now: who has heard of it hears its end.
  std::vector<std::string> topics;
  Evidence evidence;
  bool only_evidence = false;
};

/// Whether something has to follow this event: the end of its episode, or that its evidence is there.
inline bool is_open(const Told& told) {
  return told.emission.phase != Phase::end || told.evidence.state == EvidenceState::pending;
}

/// A promise is kept until it is settled, however many episodes follow. Not thread-safe.
class EvidencePromises {
 public:
  void make(const std::string& episode, const std::string& camera) { promises_[episode].camera = camera; }

  /// The episode is over; if its evidence was promised, that is told with this event once more.
  void ended(const Told& end) {
    const auto promise = promises_.find(end.episode);
    if (promise != promises_.end()) promise->second.end = end;
  }

  struct Settled {
    /// What was told last if the episode is over.
    std::optional<Told> end;
  };

  /// Nothing if there is no such promise, or not any more.
  std::optional<Settled> settle(const std::string& episode) {
    auto promise = promises_.extract(episode);
    if (promise.empty()) return std::nullopt;
    return Settled{std::move(promise.mapped().end)};
  }

  /// Somebody else tells what became of this camera's.
  void forget(const std::string& camera) {
    std::erase_if(promises_, [&](const auto& promise) { return promise.second.camera == camera; });
  }

  bool knows(const std::string& episode) const { return promises_.contains(episode); }

  /// Whether evidence of this camera is promised.
  bool has(const std::string& camera) const;

  /// The episodes whose evidence is promised, oldest first.
  std::vector<std::string> episodes() const;

 private:
  struct Promise {
    std::string camera;
    std::optional<Told> end;
  };
  std::map<std::string, Promise> promises_;
};

}  // namespace vigil::actors
