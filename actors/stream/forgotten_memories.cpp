#include "actors/stream/forgotten_memories.h"

#include <chrono>
#include <utility>

#include "config/values/byte_size.h"

namespace vigil::actors {
namespace {

std::string mebibytes(std::int64_t bytes) {
  const auto all = static_cast<std::uint64_t>(bytes);
  return config::format_byte_size(all < config::mebibytes(1).bytes ? config::ByteSize{all}
                                                                   : config::mebibytes(all >> 20U));
}

}  // namespace

std::optional<std::string> ForgottenMemories::told(Cameras& cameras, const std::string& camera,
                                                   std::string line, base::Clock::TimePoint now) {
  const auto [entry, is_first] = cameras.try_emplace(camera);
  Camera& known = entry->second;
  if (!is_first && now - known.told < kSpan) {
    ++known.missed;
    return std::nullopt;
  }
  known.told = now;
  if (const std::uint64_t missed = std::exchange(known.missed, 0); missed > 0)
    line +=
        " (and " + std::to_string(missed) + (missed == 1 ? " time" : " times") + " since this was last said)";
  return line;
}

std::optional<std::string> ForgottenMemories::hear(const std::string& camera, std::string_view reason,
                                                   base::Clock::TimePoint now) {
  std::string line = "what its windows remembered is gone, and is gathered anew: ";
  line += reason;
  return told(gone_, camera, std::move(line), now);
}

std::optional<std::string> ForgottenMemories::shortened(const stream::DeskNews::Shortened& news,
                                                        base::Clock::TimePoint now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(news.remembered);
  return told(shortened_, news.camera,
              "its windows remember " + base::format_duration(seconds) + " instead of " +
                  base::format_duration(news.wanted) + ": of this machine's memory it may take " +
                  mebibytes(news.room) + ", and " + mebibytes(news.need) +
                  " if nothing were pruned; raise engine.window_memory, or shorten window.memory",
              now);
}

}  // namespace vigil::actors
