// Patches of many cameras through the vision tower in one pass.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "base/clock.h"
#include "base/duration.h"
#include "engine/run/vision_encoder.h"

namespace vigil::actors {

/// A patch that was captured longer ago than that is audited no more: the device has other work.
constexpr base::Duration kAuditPatience = std::chrono::seconds(2);

struct Encoded {
  /// In the order of the patches, without those that failed.
  std::vector<VisualPatchPtr> patches;
  struct Failure {
    FramePatchPtr patch;
    std::string reason;
    enum class Kind : std::uint8_t { failed, out_of_memory, unknown };
    Kind kind = Kind::failed;
    /// What the metrics call it.
    const char* word() const {
      return kind == Kind::failed ? "encode_failed" : kind == Kind::unknown ? "unknown" : "out_of_memory";
    }
  };
  /// In the order of the patches.
  std::vector<Failure> failures;
  /// Why memory did not suffice, for all in one pass or for one of them alone; empty if it did.
  std::string too_many;
  /// From when the first was begun until the last was done, without what audits take beside it.
  WorkSpan span;
};

/// If the pass fails, each patch is tried alone, so that one that cannot be encoded takes no other with it.
/// Those that are audited are encoded whole in a second pass, if the first one went well.
/// The clock tells when they were encoded. Throws run::DeviceLost alone.
Encoded encode(run::VisionEncoder& encoder, const base::Clock& clock,
               const std::vector<FramePatchPtr>& patches);

/// What became of each of these patches.
std::vector<PatchAck> acks_of(const std::vector<FramePatchPtr>& patches, const Encoded& encoded);

}  // namespace vigil::actors
