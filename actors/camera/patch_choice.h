// What of its frames a camera sends to the model, and what became of it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"

namespace vigil::actors {

/// Where a policy chooses, beside the pixels, what of a temporal patch is worth encoding: all of it so far.
/// It hears what became of each, since what the model did not take it has to be shown again. One for each
/// incarnation of a camera. Not thread-safe.
class PatchChoice {
 public:
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t encoded = 0;
    std::uint64_t dropped = 0;
    std::uint64_t lost = 0;
    /// Of which nothing was heard yet.
    std::uint64_t under_way() const { return sent - encoded - dropped - lost; }
  };

  /// What is sent of a patch that is complete.
  FramePatchPtr choose(std::shared_ptr<FramePatch> patch) {
    ++counts_.sent;
    return patch;
  }

  /// Once for each that was sent, in any order.
  void hear(const PatchAck& ack) {
    switch (ack.outcome) {
      case PatchOutcome::encoded:
        ++counts_.encoded;
        break;
      case PatchOutcome::dropped:
        ++counts_.dropped;
        break;
      case PatchOutcome::lost:
        ++counts_.lost;
        break;
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  Counts counts_;
};

}  // namespace vigil::actors
