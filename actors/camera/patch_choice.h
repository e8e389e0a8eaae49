// What of its frames a camera sends to the model, and what became of it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "actors/camera/audit_clock.h"
#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "engine/prune/anchor_clock.h"
#include "engine/prune/pruning_policy.h"
#include "engine/prune/salience.h"

namespace vigil::actors {

/// Chooses, beside the pixels, what of a temporal patch is worth encoding. It hears what became of each,
/// since what the model did not take it has to be shown again. One for each incarnation of a camera. Not
/// thread-safe.
class PatchChoice {
 public:
  /// All of all patches.
  PatchChoice() = default;
  /// What the policy says; null: all. Every window of so many seconds holds a patch that is sent whole,
  /// whatever the policy says: where it sends none by itself for as long as a turn of `anchors`, with the
  /// turn.
  PatchChoice(std::unique_ptr<prune::PruningPolicy> policy, const prune::PatchGrid& grid, double window,
              const prune::AnchorClock& anchors)
      : policy_(std::move(policy)), grid_(grid), window_(window), anchors_(anchors) {}

  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t encoded = 0;
    std::uint64_t dropped = 0;
    std::uint64_t lost = 0;
    /// Of which nothing was heard yet.
    std::uint64_t under_way() const { return sent - encoded - dropped - lost; }
  };

  /// Whether frames have to come with their motion.
  bool wants_motion() const { return policy_ && policy_->wants_motion(); }
  /// And that with its residual.
  bool wants_residual() const { return policy_ && policy_->wants_residual(); }

  /// From the next patch on, it is said of each what stands out, or no more; that takes time. Whoever begins
  /// to say so knows nothing yet of what is usual.
  void remember(bool is_remembered);

  /// What is sent of a patch that is complete. Throws as `PruningPolicy::choose` does.
  FramePatchPtr choose(std::shared_ptr<FramePatch> patch);

  /// Frames of the camera came into no patch, or none came for a while: the next patch is whole.
  void missed() { is_whole_next_ = true; }

  /// Once for each that was sent, in any order. After one that was lost the device may know nothing of the
  /// camera any more, and after one that was unknown to it, it does not: the next patch is whole. One that
  /// was encoded tells what the camera's budget and its device allow.
  void hear(const PatchAck& ack);

  /// Goes on with another policy, window and clock, as if the camera began; what is under way still counts.
  void change(std::unique_ptr<prune::PruningPolicy> policy, double window, const prune::AnchorClock& anchors);

  /// Of a picture's groups, those that are kept of a patch at most, from 0 to 1, from the next one on,
  /// however much more its budget holds; if the policy heeds bounds.
  void keep(double share);

  /// Which windows are audited, from the next patch on.
  void audit(const AuditClock& audits) { audits_ = audits; }
  /// As of the last patch that was encoded (`Advice::less`).
  int less() const { return advice_.less; }

  const Counts& counts() const { return counts_; }

 private:
  void tell_policy();
  void say_what_stands_out(FramePatch& patch);

  std::unique_ptr<prune::PruningPolicy> policy_;
  prune::PatchGrid grid_;
  double window_ = 0;
  prune::AnchorClock anchors_{1, 0};
  /// Times of the last patch, of the last one that was whole, and of the last one that was so by its policy
  /// alone.
  double last_ = 0, last_whole_ = 0, last_by_policy_ = kNever;
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  bool is_whole_next_ = false;
  /// With the last patch that was encoded.
  Advice advice_;
  double most_kept_ = 1;
  AuditClock audits_;
  /// Of a camera that is remembered.
  std::optional<prune::Salience> salience_;
  /// By sequence: what was sent and not heard of.
  std::map<std::uint64_t, base::GridMask> under_way_;
  Counts counts_;
};

/// When whole pictures of a camera come: once in each of its windows, at its own place, so that a fleet's are
/// spread. `patch_seconds`: of a patch.
prune::AnchorClock anchors_of(const config::CameraSettings& camera, double patch_seconds);

/// The policy of a camera's settings, or one that prunes by so many steps less; null for none. One with a
/// clock for anchors has that of `anchors_of`.
std::unique_ptr<prune::PruningPolicy> pruning_of(const config::CameraSettings& camera,
                                                 const prune::PatchGrid& grid, double patch_seconds,
                                                 int less = 0);

}  // namespace vigil::actors
