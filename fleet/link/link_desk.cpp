#include "fleet/link/link_desk.h"

#include <utility>

namespace vigil::fleet {

std::optional<LinkDesk::Change> LinkDesk::change(bool was_up, const std::string& reason) {
  if (is_up() == was_up) return std::nullopt;
  ++number_;
  waiting_.clear();
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

void LinkDesk::send(const LinkFrame& frame) {
  if (!is_up()) return;
  Waiting waiting{write(frame), std::nullopt};
  const auto too_large = [](const auto& form) {
    return actors::PatchAck{form.watch.camera, form.generation, form.sequence, actors::PatchOutcome::dropped,
                            "too_large"};
  };
  if (const auto* patch = std::get_if<PackedPatch>(&frame)) waiting.dropped = too_large(patch->form);
  if (const auto* tokens = std::get_if<PackedTokens>(&frame)) waiting.dropped = too_large(tokens->form);
  waiting_.push_back(std::move(waiting));
  resume();
}

void LinkDesk::resume() {
  while (!waiting_.empty()) {
    Waiting& next = waiting_.front();
    const cluster::BulkSent sent = send_(next.message);
    if (sent) {
      bytes_ += next.message.bytes();
    } else if (sent.answer != cluster::BulkSent::Answer::too_large) {
      return;
    } else if (next.dropped) {
      dropped_.push_back(std::move(*next.dropped));
    }
    waiting_.pop_front();
  }
}

}  // namespace vigil::fleet
