#include "actors/stream/forgotten_memories.h"

#include <chrono>
#include <cstdint>
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

std::optional<std::string> ForgottenMemories::hear(const std::string& camera, std::string_view reason,
                                                   base::Clock::TimePoint now) {
  std::string line = "what its windows remembered is gone, and is gathered anew: ";
  line += reason;
  return gone_.hear(camera, std::move(line), now);
}

std::optional<std::string> ForgottenMemories::shortened(const stream::DeskNews::Shortened& news,
                                                        base::Clock::TimePoint now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(news.remembered);
  const std::string remembered = seconds.count() > 0 ? base::format_duration(seconds) : "less than 1s";
  return shortened_.hear(news.camera,
                         "its windows remember " + remembered + " instead of " +
                             base::format_duration(news.wanted) + ": of this machine's memory it may take " +
                             mebibytes(news.room) + ", and " + mebibytes(news.need) +
                             " if nothing were pruned; raise engine.window_memory, or shorten window.memory",
                         now);
}

}  // namespace vigil::actors
