#include "cluster/bulk/receive_account.h"

#include <algorithm>
#include <utility>

namespace vigil::cluster {

ReceiveAccount::ReceiveAccount(const BulkLimits& limits, std::function<void()> wake)
    : limits_(limits), wake_(std::move(wake)) {}

BulkGrant ReceiveAccount::begin(std::uint64_t stream) {
  const std::lock_guard lock(mutex_);
  stream_ = stream;
  released_ = {};
  held_ = {};
  granted_.bytes = limits_.bytes - std::min(limits_.bytes, flow_.waiting_bytes);
  granted_.messages = limits_.messages - std::min<std::uint64_t>(limits_.messages, flow_.waiting_messages);
  return granted_;
}

bool ReceiveAccount::take(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (held_.messages >= granted_.messages || bytes > granted_.bytes - held_.bytes) return false;
  held_.bytes += bytes;
  ++held_.messages;
  flow_.bytes += bytes;
  ++flow_.messages;
  flow_.waiting_bytes += bytes;
  ++flow_.waiting_messages;
  flow_.most_waiting_bytes = std::max(flow_.most_waiting_bytes, flow_.waiting_bytes);
  return true;
}

void ReceiveAccount::set_open() {
  const std::lock_guard lock(mutex_);
  flow_.open = true;
}

void ReceiveAccount::end(BulkEnd why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(flow_.open, false)) ++flow_.resets[static_cast<std::size_t>(why)];
  stream_ = 0;
  released_ = {};
}

void ReceiveAccount::close() {
  const std::lock_guard lock(mutex_);
  wake_ = nullptr;
}

ReceiveAccount::Released ReceiveAccount::take_released() {
  const std::lock_guard lock(mutex_);
  return std::exchange(released_, {});
}

void ReceiveAccount::release(std::uint64_t stream, std::uint64_t number, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  flow_.waiting_bytes -= bytes;
  --flow_.waiting_messages;
  if (stream_ == 0) return;
  const bool first = released_.empty();
  if (stream == stream_) {
    held_.bytes -= bytes;
    --held_.messages;
    released_.numbers.push_back(number);
  } else {
    // The grant was smaller by this; it is granted now.
    granted_.bytes += bytes;
    ++granted_.messages;
    released_.more.bytes += bytes;
    ++released_.more.messages;
  }
  if (first && wake_) wake_();
}

BulkCounters::Flow ReceiveAccount::counters() const {
  const std::lock_guard lock(mutex_);
  return flow_;
}

}  // namespace vigil::cluster
