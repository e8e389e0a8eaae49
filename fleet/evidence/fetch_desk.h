// Stills and clips that are being fetched from other nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "fleet/evidence/evidence_chunk.h"

namespace vigil::fleet {

/// Asks for one part after the other, so that a clip never has more than one on the way, and patches of
/// cameras have the rest of it. Not thread-safe.
class FetchDesk {
 public:
  struct Limits {
    /// Of one file: all of it is held until it is there.
    std::uint64_t bytes = 128 << 20;
    /// Of one part.
    std::uint64_t chunk = 1 << 20;
    /// For the next part.
    base::Duration patience{5000};
    /// For all of it, so that a slow way does not keep what others wait for: the largest takes 108 s at
    /// 10 Mbit/s.
    base::Duration in_all{120'000};
  };

  FetchDesk(const Limits& limits, const base::Clock& clock) : limits_(limits), clock_(clock) {}

  /// Whether a file of this size may be fetched.
  bool may(std::uint64_t size) const { return size > 0 && size <= limits_.bytes; }
  /// A file of another node, of which so many bytes are expected. Returns its ticket; the first part is to be
  /// asked for.
  std::uint64_t begin(const std::string& node, std::uint64_t size);

  struct Step {
    /// From where on the next part is to be asked for; of one that is complete or failed: nothing.
    std::optional<std::uint64_t> next;
    /// All of it.
    std::optional<std::string> done;
    /// Why there will be nothing; empty otherwise.
    std::string failure;
  };
  /// Nothing: nobody waits for that, from there.
  std::optional<Step> take(const std::string& node, const EvidenceChunk& chunk);

  struct Overdue {
    std::uint64_t ticket = 0;
    /// What its node did not do in time.
    std::string failure;
  };
  /// Those whose next part, or all of which, has not come in time; they are forgotten.
  std::vector<Overdue> take_overdue();
  /// Nobody waits for it any more.
  void drop(std::uint64_t ticket) { fetches_.erase(ticket); }
  std::size_t size() const { return fetches_.size(); }

 private:
  struct Fetch {
    std::string node;
    std::uint64_t size = 0;
    std::string bytes;
    base::Clock::TimePoint begun, asked;
  };

  const Limits limits_;
  const base::Clock& clock_;
  std::map<std::uint64_t, Fetch> fetches_;
  std::uint64_t last_ = 0;
};

}  // namespace vigil::fleet
