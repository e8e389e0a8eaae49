// Windows into the KV cache, and the first token of every rule's answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/prefill/window_assembler.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

/// Called with tokens of the KV cache that are free again, on any thread.
using Release = std::function<void(std::int64_t tokens)>;

struct AskedWindows {
  /// In the order of the windows, without those that failed. Each holds its lease.
  std::vector<WindowAnswersPtr> windows;
  struct Failure {
    WatchPtr watch;
    std::string reason;
    bool out_of_memory = false;
  };
  std::vector<Failure> failures;
  /// Why memory did not suffice, for all in one batch or for one of them alone; empty if it did.
  std::string too_many;
};

/// Tokens of the KV cache that a window takes with all its answers; 0 for one that cannot be asked, which
/// `ask` will tell.
std::int64_t room_for(const stream::WindowPrefiller& prefiller, const DueWindow& window);

/// Asks all rules of all windows, for which the caller has reserved room. If that fails, each window is tried
/// alone, so that one that cannot be asked takes no other with it. `release` is told of each window's room
/// when its last owner lets go of it; of a window that failed, at once. Throws window::DeviceLost alone,
/// after which no room is of any use.
AskedWindows ask(stream::WindowPrefiller& prefiller, const std::vector<DueWindow>& windows,
                 const Release& release);

}  // namespace vigil::actors
