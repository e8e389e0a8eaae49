#include "engine/stream/window_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vigil::stream {
namespace {

/// A memory goes by blocks, of which it has about so many; and so many patches a block has.
constexpr double kBlocks = 8, kFewestOfBlock = 8, kMostOfBlock = 40;
/// Of the bytes of keys and values: what lies between clusters.
constexpr double kBetween = 1.25;

}  // namespace

WindowMemory::WindowMemory(run::Passes& passes, const model::TextConfig& text, past::PastOptions how,
                           base::Duration length)
    : passes_(passes), text_(text), how_(std::move(how)), length_(length) {}

void WindowMemory::take(LeavingTokens tokens) noexcept {
  if (tokens.why == Leaving::slid && tokens.view.size() > 0) {
    std::int64_t first = 0;
    for (const LeavingPatch& patch : tokens.patches) {
      const std::int64_t count = patch.tokens->count();
      if (patch.number > taken_) {
        taken_ = patch.number;
        waiting_.push_back({patch.number, patch.tokens->seconds + patch.tokens->duration, patch.at.t,
                            tokens.view.part(first, count)});
        last_ = patch.tokens;
      }
      first += count;
    }
  }
  if (next_) next_->take(std::move(tokens));
}

void WindowMemory::set_length(base::Duration length) {
  // Its room is that of the length that it was made with.
  if (length > length_) forget();
  length_ = length;
}

std::int64_t WindowMemory::room_for(const model::VisualTokens& patch, double patches) const {
  const auto groups = static_cast<double>(patch.kept.height() * patch.kept.width());
  // Of keys and values in bf16, which no form exceeds by much.
  const double token = 4.0 * text_.num_hidden_layers * text_.num_key_value_heads * text_.head_dim;
  return static_cast<std::int64_t>(patches * groups * token * kBetween);
}

void WindowMemory::make_past(const model::VisualTokens& patch) {
  const double patches = std::ceil(base::seconds(length_) / std::max(patch.duration, 1e-3));
  const double block = std::clamp(std::ceil(patches / kBlocks), kFewestOfBlock, kMostOfBlock);
  past::PastOptions options = how_;
  options.host_bytes = room_for(patch, patches + block);
  options.block_patches = static_cast<int>(block);
  past_ = passes_.make_past(options);
  room_of_patch_ = room_for(patch, 1);
}

void WindowMemory::settle(std::int64_t first) {
  if (waiting_.empty() || waiting_.front().number >= first) return;
  // Larger pictures have no room in what was made for smaller ones.
  if (past_ && room_for(*last_, 1) > room_of_patch_) begin_anew();
  if (!past_) make_past(*last_);
  while (!waiting_.empty() && waiting_.front().number < first) {
    const Waiting& patch = waiting_.front();
    past_->append(patch.view.slots(),
                  std::vector<std::int32_t>(static_cast<std::size_t>(patch.view.size()), patch.time));
    ends_.push_back(patch.end);
    waiting_.pop_front();
  }
  follow_past();
  for (std::vector<int> blocks = past_->patches(); blocks.size() > 1; blocks = past_->patches()) {
    const double end = ends_[static_cast<std::size_t>(blocks.front() - 1)];
    if (ends_.back() - end <= base::seconds(length_)) break;
    past_->forget_block();
    follow_past();
  }
  past_->lay();
  follow_past();
}

void WindowMemory::follow_past() {
  std::size_t patches = 0;
  for (const int block : past_->patches()) patches += static_cast<std::size_t>(block);
  while (ends_.size() > patches) ends_.pop_front();
}

void WindowMemory::begin_anew() {
  past_.reset();
  ends_.clear();
}

void WindowMemory::forget() {
  waiting_.clear();
  begin_anew();
}

}  // namespace vigil::stream
