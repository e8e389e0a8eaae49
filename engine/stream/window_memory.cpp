#include "engine/stream/window_memory.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace vigil::stream {
namespace {

/// A memory goes by blocks, of which it has about so many; and so many patches a block has.
constexpr double kBlocks = 8, kFewestOfBlock = 8;
/// Of the bytes of keys and values: what lies between clusters.
constexpr double kBetween = 1.25;

}  // namespace

WindowMemory::WindowMemory(run::Passes& passes, const model::TextConfig& text, past::PastOptions how,
                           base::Duration length)
    : passes_(passes), text_(text), how_(std::move(how)), length_(length) {}

void WindowMemory::take(LeavingTokens tokens) noexcept {
  if ((tokens.why == Leaving::slid || tokens.why == Leaving::forgotten) && tokens.view.size() > 0) {
    std::int64_t first = 0;
    for (const LeavingPatch& patch : tokens.patches) {
      const std::int64_t count = patch.tokens->count();
      // What is given back and stays in the stream comes again.
      if (patch.number > taken_ && patch.number < gone_before_) {
        taken_ = patch.number;
        waiting_.push_back({patch.number, patch.tokens->seconds + patch.tokens->duration, patch.at.t,
                            tokens.view.part(first, count)});
        last_ = patch.tokens;
        need_ = std::max(need_, room_for(*last_));
      }
      first += count;
    }
  }
  if (next_) next_->take(std::move(tokens));
}

void WindowMemory::set_length(base::Duration length) {
  length_ = length;
  if (last_) need_ = room_for(*last_);
}

double WindowMemory::patches_in(const model::VisualTokens& patch) const {
  return std::ceil(base::seconds(length_) / std::max(patch.duration, 1e-3));
}

double WindowMemory::block_patches(double patches) {
  return std::clamp(std::ceil(patches / kBlocks), kFewestOfBlock, double{kMostOfBlock});
}

std::int64_t WindowMemory::room_for(const model::VisualTokens& patch) const {
  const double patches = patches_in(patch);
  const auto groups = static_cast<double>(patch.kept.height() * patch.kept.width());
  // Of keys and values in bf16, which no form exceeds by much.
  const double token = 4.0 * text_.num_hidden_layers * text_.num_key_value_heads * text_.head_dim;
  return static_cast<std::int64_t>((patches + block_patches(patches)) * groups * token * kBetween);
}

void WindowMemory::make_past(const model::VisualTokens& patch) {
  past::PastOptions options = how_;
  options.host_bytes = room_;
  const double share = std::min(1.0, static_cast<double>(room_) / static_cast<double>(need_));
  options.block_patches =
      std::min(most_of_block_, static_cast<int>(block_patches(share * patches_in(patch))));
  block_patches_ = options.block_patches;
  past_ = passes_.make_past(options);
}

void WindowMemory::within_room(const std::function<void()>& change) {
  try {
    change();
  } catch (const std::invalid_argument&) {
    // Its newest block has no room by itself: smaller ones may have. Where one patch is too much, nothing is
    // gathered until there is more room than this.
    past_.reset();
    ends_.clear();
    is_short_ = true;
    most_of_block_ = block_patches_ / 2;
    too_little_ = most_of_block_ == 0 ? room_ : 0;
  }
}

void WindowMemory::settle(std::int64_t first) {
  if (!waits(first)) return;
  if (room_ > too_little_) {
    if (most_of_block_ == 0) most_of_block_ = 1;
    within_room([&] { gather(first); });
  } else {
    is_short_ = true;
  }
  // What was in its way is not seen.
  while (waits(first)) waiting_.pop_front();
}

void WindowMemory::gather(std::int64_t first) {
  if (!past_) make_past(*last_);
  while (waits(first)) {
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
  lay();
}

void WindowMemory::allow(std::int64_t bytes) {
  if (bytes >= need_) {
    is_short_ = false;
    told_room_ = std::numeric_limits<std::int64_t>::max();
    most_of_block_ = kMostOfBlock;
  }
  most_room_ = std::max(most_room_, bytes);
  if (std::exchange(room_, bytes) == bytes || !past_) return;
  within_room([&] {
    past_->resize(bytes);
    follow_past();
    lay();
  });
}

void WindowMemory::lay() {
  past_->lay();
  follow_past();
}

std::optional<base::Duration> WindowMemory::take_shortened() {
  if (!is_short_ || room_ >= need_ || room_ == told_room_ || room_ > told_room_ / 2) return std::nullopt;
  told_room_ = room_;
  const double seconds = ends_.empty() ? 0 : ends_.back() - ends_.front() + last_->duration;
  return std::chrono::round<base::Duration>(std::chrono::duration<double>(seconds));
}

void WindowMemory::follow_past() {
  std::size_t patches = 0;
  for (const int block : past_->patches()) patches += static_cast<std::size_t>(block);
  for (; ends_.size() > patches; ends_.pop_front())
    if (ends_.back() - ends_.front() <= base::seconds(length_)) is_short_ = true;
}

void WindowMemory::forget() {
  waiting_.clear();
  past_.reset();
  ends_.clear();
}

}  // namespace vigil::stream
