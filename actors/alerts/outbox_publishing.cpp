#include "actors/alerts/outbox_publishing.h"

#include <vector>

namespace vigil::actors {
namespace {

constexpr std::size_t kPublishAtOnce = 256;

}  // namespace

void OutboxPublishing::remember_last() {
  if (remembered_of_ == outbox_.identity()) return;
  for (const OutboxEvent& event : outbox_.last_events(1)) publisher_.remember(event);
  remembered_of_ = outbox_.identity();
}

// What was taken and is not handed over comes first again, and is less than what is looked at.
void OutboxPublishing::publish_written(std::uint64_t after) {
  if (offered_of_ != outbox_.identity()) {
    publisher_.start_over();
    offered_ = 0;
    offered_of_ = outbox_.identity();
  }
  for (bool went_on = true; went_on;) {
    went_on = false;
    const std::vector<OutboxEvent> events = after == 0 ? outbox_.unacknowledged(kPublishAtOnce)
                                                       : outbox_.unacknowledged_after(after, kPublishAtOnce);
    waiting_ = events.size();
    std::vector<std::uint64_t> published;
    for (const OutboxEvent& event : events) {
      if (event.position > offered_) {
        if (!publisher_.publish(event)) break;
        offered_ = event.position;
        went_on = true;
      }
      if (event.position <= publisher_.published()) published.push_back(event.position);
    }
    if (published.empty()) continue;
    outbox_.acknowledge(published);
    waiting_ -= published.size();
    went_on = true;
  }
}

}  // namespace vigil::actors
