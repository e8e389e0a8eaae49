// Whether the windows of a camera can fit the KV cache at all.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// How many tokens a window has is known with the camera's first patch, long before the stream is as long as
/// a window: until then windows are short, and are answered. Not thread-safe.
class WindowFit {
 public:
  /// The desk has to outlive it.
  WindowFit(const stream::StreamDesk& desk, int frames_per_patch)
      : desk_(desk), frames_per_patch_(frames_per_patch) {}

  /// For a camera's first patch with its settings, and for one with another size or other settings than the
  /// last: why windows of full length cannot be answered, empty if they can. Nothing for all other patches.
  std::optional<std::string> check(const VisualPatch& patch, const WatchPtr& watch,
                                   const std::vector<stream::CompiledQuestionPtr>& questions);

  void forget(const std::string& camera) { seen_.erase(camera); }

 private:
  struct Seen {
    WatchPtr watch;
    std::int64_t height = 0;
    std::int64_t width = 0;
    bool operator==(const Seen&) const = default;
  };

  const stream::StreamDesk& desk_;
  int frames_per_patch_;
  std::map<std::string, Seen> seen_;
};

}  // namespace vigil::actors
