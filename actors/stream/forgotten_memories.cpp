#include "actors/stream/forgotten_memories.h"

#include <utility>

namespace vigil::actors {

std::optional<std::string> ForgottenMemories::hear(const std::string& camera, std::string_view reason,
                                                   base::Clock::TimePoint now) {
  const auto [entry, is_first] = cameras_.try_emplace(camera);
  Camera& known = entry->second;
  if (!is_first && now - known.told < kSpan) {
    ++known.missed;
    return std::nullopt;
  }
  known.told = now;
  std::string line = "what its windows remembered is gone, and is gathered anew: ";
  line += reason;
  if (const std::uint64_t missed = std::exchange(known.missed, 0); missed > 0)
    line +=
        " (and " + std::to_string(missed) + (missed == 1 ? " time" : " times") + " since this was last said)";
  return line;
}

}  // namespace vigil::actors
