#include "fleet/link/link_desk.h"

#include <string>
#include <utility>

namespace vigil::fleet {

std::optional<LinkDesk::Change> LinkDesk::change(bool was_up, const std::string& reason) {
  if (is_up() == was_up) return std::nullopt;
  waiting_.clear();
  all_ = patches_ = {};
  return Change{is_up(), reason};
}

std::optional<LinkDesk::Change> LinkDesk::attached() {
  const bool was_up = is_up();
  attached_ = true;
  return change(was_up, "");
}

std::optional<LinkDesk::Change> LinkDesk::bulk_opened() {
  const bool was_up = is_up();
  bulk_open_ = true;
  return change(was_up, "");
}

std::optional<LinkDesk::Change> LinkDesk::detached(const std::string& reason) {
  const bool was_up = is_up();
  attached_ = false;
  return change(was_up, reason);
}

std::optional<LinkDesk::Change> LinkDesk::bulk_ended(const std::string& reason) {
  const bool was_up = is_up();
  bulk_open_ = attached_ = false;
  return change(was_up, reason);
}

std::optional<LinkDesk::Change> LinkDesk::send(const LinkFrame& frame) {
  if (!is_up()) return std::nullopt;
  Waiting waiting{write(frame), 0, std::nullopt};
  waiting.bytes = waiting.message.bytes();
  const auto dropped = [](const auto& form) {
    return Dropped{
        {form.watch.camera, form.generation, form.sequence, actors::PatchOutcome::dropped, "too_large"},
        static_cast<std::uint32_t>(form.frames)};
  };
  if (const auto* patch = std::get_if<PackedPatch>(&frame)) waiting.dropped = dropped(patch->form);
  if (const auto* tokens = std::get_if<PackedTokens>(&frame)) waiting.dropped = dropped(tokens->form);
  // There may be credit already.
  resume();
  if (waiting.dropped && !has_room_for_patch(waiting.bytes)) {
    dropped_.push_back(std::move(*waiting.dropped));
    dropped_.back().ack.reason = "queue_full";
    return std::nullopt;
  }
  if (waiting_.size() >= kMostFrames)
    return detached("it takes nothing of what waits for it: " + std::to_string(kMostFrames) + " frames");
  all_.add(waiting.bytes);
  if (waiting.dropped) patches_.add(waiting.bytes);
  waiting_.push_back(std::move(waiting));
  resume();
  return std::nullopt;
}

bool LinkDesk::has_room_for_patch(std::uint64_t bytes) const {
  if (waiting_.size() >= kMostFrames) return false;
  // One that is larger than all goes alone.
  if (patches_.frames == 0) return true;
  return patches_.frames < kMostPatches && patches_.bytes <= kMostBytes &&
         bytes <= kMostBytes - patches_.bytes;
}

void LinkDesk::resume() {
  while (!waiting_.empty()) {
    Waiting& next = waiting_.front();
    const cluster::BulkSent sent = send_(next.message);
    if (!sent && sent.answer != cluster::BulkSent::Answer::too_large) return;
    all_.take(next.bytes);
    if (next.dropped) patches_.take(next.bytes);
    if (!sent && next.dropped) dropped_.push_back(std::move(*next.dropped));
    waiting_.pop_front();
  }
}

}  // namespace vigil::fleet
