#include "fleet/events/shipping_publisher.h"

#include <utility>

#include "fleet/messages/shipped.h"

namespace vigil::fleet {

bool ShippingPublisher::publish(const actors::OutboxEvent& event) {
  std::string name = unit_name(event.topic, event.sequence, event.body);
  const std::lock_guard lock(mutex_);
  if (last_.empty() || name != name_) {
    if (positions_.size() >= options_.most) return false;
    complete();
  }
  name_ = std::move(name);
  last_.push_back(event);
  positions_.push_back(event.position);
  return true;
}

std::uint64_t ShippingPublisher::published() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void ShippingPublisher::drain() {
  std::unique_lock lock(mutex_);
  complete();
  moved_.wait_for(lock, options_.patience, [this] { return positions_.empty(); });
}

void ShippingPublisher::start_over() {
  const std::lock_guard lock(mutex_);
  ++epoch_;
  published_ = 0;
  positions_.clear();
  ready_.clear();
  last_.clear();
}

void ShippingPublisher::serve() {
  const std::lock_guard lock(mutex_);
  complete();
}

void ShippingPublisher::attach(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

void ShippingPublisher::complete() {
  if (last_.empty()) return;
  const bool was_empty = ready_.empty();
  ready_.push_back(std::exchange(last_, {}));
  if (was_empty && wake_) wake_();
}

ShippingPublisher::Taken ShippingPublisher::take() {
  const std::lock_guard lock(mutex_);
  return {epoch_, std::exchange(ready_, {})};
}

void ShippingPublisher::done(std::uint64_t epoch, std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_ || position <= published_) return;
  published_ = position;
  while (!positions_.empty() && positions_.front() <= position) positions_.pop_front();
  moved_.notify_all();
}

}  // namespace vigil::fleet
