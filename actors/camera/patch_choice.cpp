#include "actors/camera/patch_choice.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "actors/camera/pruning_input.h"
#include "actors/messages/pruned_less.h"
#include "config/schema/fields.h"

namespace vigil::actors {
namespace {

/// Anchors come with the first patch of their turn, so two of them are up to a patch farther apart.
double anchor_seconds(const config::CameraSettings& camera, double patch_seconds) {
  const double window = std::chrono::duration<double>(camera.stream.window.length).count();
  return std::max(window - patch_seconds, patch_seconds);
}

}  // namespace

FramePatchPtr PatchChoice::choose(std::shared_ptr<FramePatch> patch) {
  ++counts_.sent;
  patch->audit = audits_.window_at(patch->seconds, patch->duration);
  if (salience_) say_what_stands_out(*patch);
  if (!policy_) return patch;
  const media::Size size = patch->frames.front().image->size;
  // Were the next patch the next whole one, as far from this one as this is from the last, would a window fit
  // in between?
  constexpr double kRounding = 1e-6;
  const double next = patch->seconds + (patch->seconds - last_);
  // Of a codec with rare I-frames; a policy with a clock has the same one.
  const bool is_turn =
      anchors_.comes(patch->seconds) && patch->seconds - last_by_policy_ > anchors_.interval() - kRounding;
  const bool asks =
      std::exchange(is_whole_next_, false) || is_turn || next - last_whole_ > window_ + kRounding;
  if (asks) policy_->lost(base::GridMask::all(size.height / grid_.group(), size.width / grid_.group()));
  const PruningInput input(patch->frames, grid_, *policy_);
  prune::Choice choice = policy_->choose(patch->seconds, input.pictures());
  last_ = patch->seconds;
  if (choice.is_whole()) (asks ? last_whole_ : last_by_policy_) = patch->seconds;
  last_whole_ = std::max(last_whole_, last_by_policy_);
  patch->kept = std::move(choice.kept);
  if (!choice.encoded.has_all()) patch->encoded = choice.encoded;
  under_way_.emplace(patch->sequence, std::move(choice.encoded));
  return patch;
}

void PatchChoice::remember(bool is_remembered) {
  if (is_remembered == salience_.has_value()) return;
  salience_.reset();
  if (is_remembered) salience_.emplace(grid_);
}

void PatchChoice::say_what_stands_out(FramePatch& patch) {
  std::vector<prune::SampledPicture> pictures;
  pictures.reserve(patch.frames.size());
  for (const media::SampledFrame& frame : patch.frames)
    pictures.push_back({{frame.image->rgb.data(), frame.image->size.width, frame.image->size.height}, {}});
  patch.standing_out = salience_->look(patch.seconds, patch.duration, pictures);
}

void PatchChoice::hear(const PatchAck& ack) {
  switch (ack.outcome) {
    case PatchOutcome::encoded:
      ++counts_.encoded;
      advice_ = ack.advice;
      tell_policy();
      break;
    case PatchOutcome::dropped:
      ++counts_.dropped;
      break;
    case PatchOutcome::lost:
    case PatchOutcome::unknown:
      ++counts_.lost;
      missed();
      break;
  }
  const auto sent = under_way_.find(ack.sequence);
  if (sent == under_way_.end()) return;
  if (ack.outcome != PatchOutcome::encoded && policy_) policy_->lost(sent->second);
  under_way_.erase(sent);
}

void PatchChoice::keep(double share) {
  if (std::exchange(most_kept_, share) != share) tell_policy();
}

void PatchChoice::tell_policy() {
  if (!policy_) return;
  policy_->bound(std::min(advice_.share, most_kept_));
  policy_->spare(advice_.is_behind);
}

void PatchChoice::change(std::unique_ptr<prune::PruningPolicy> policy, double window,
                         const prune::AnchorClock& anchors) {
  policy_ = std::move(policy);
  tell_policy();
  window_ = window;
  anchors_ = anchors;
  last_by_policy_ = kNever;
  is_whole_next_ = false;
  // A policy that begins shows everything.
  under_way_.clear();
}

prune::AnchorClock anchors_of(const config::CameraSettings& camera, double patch_seconds) {
  return {anchor_seconds(camera, patch_seconds), prune::anchor_phase(camera.name)};
}

std::unique_ptr<prune::PruningPolicy> pruning_of(const config::CameraSettings& camera,
                                                 const prune::PatchGrid& grid, double patch_seconds,
                                                 int less) {
  const config::Pruning policy = pruned_less(camera.stream.pruning, less).policy;
  if (policy == config::Pruning::none) return nullptr;
  prune::PruningOptions options;
  options.grid = grid;
  options.motion_threshold = static_cast<float>(camera.stream.pruning.motion_threshold);
  options.residual_weight = static_cast<float>(camera.stream.pruning.residual_weight);
  options.anchor_seconds = anchor_seconds(camera, patch_seconds);
  options.anchor_phase = prune::anchor_phase(camera.name);
  return prune::make_pruning(config::name_of(policy), options);
}

}  // namespace vigil::actors
