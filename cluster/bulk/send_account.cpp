#include "cluster/bulk/send_account.h"

#include <algorithm>
#include <utility>

namespace vigil::cluster {

SendAccount::SendAccount(const BulkLimits& limits, const base::Clock& clock)
    : limits_(limits), clock_(clock), of_peer_(limits) {}

bool SendAccount::too_large(const BulkMessage& message, std::uint64_t bytes) const {
  return bytes > std::min(limits_.message, of_peer_.message) ||
         message.header.size() > std::min(limits_.header, of_peer_.header) ||
         message.parts.size() > std::min(limits_.parts, of_peer_.parts);
}

bool SendAccount::fits(std::uint64_t bytes) const {
  const std::uint64_t most = std::min(granted_.bytes, limits_.bytes);
  return flow_.waiting_messages < std::min<std::uint64_t>(granted_.messages, limits_.messages) &&
         bytes <= most && flow_.waiting_bytes <= most - bytes;
}

BulkSent SendAccount::send(const BulkMessage& message) {
  const std::uint64_t bytes = message.bytes();
  const std::lock_guard lock(mutex_);
  if (too_large(message, bytes)) return {BulkSent::Answer::too_large};
  if (!flow_.open) return {BulkSent::Answer::no_stream};
  if (!fits(bytes)) {
    if (!refused_) refused_at_ = clock_.now();
    refused_ = std::min(bytes, refused_.value_or(bytes));
    ++refused_sends_;
    return {BulkSent::Answer::no_credit};
  }
  const std::uint64_t number = next_++;
  taken_.push_back({number, message});
  under_way_.push_back({bytes});
  flow_.waiting_bytes += bytes;
  ++flow_.waiting_messages;
  flow_.most_waiting_bytes = std::max(flow_.most_waiting_bytes, flow_.waiting_bytes);
  return {BulkSent::Answer::taken, number};
}

std::uint64_t SendAccount::open(const BulkGrant& grant, const BulkLimits& of_peer) {
  const std::lock_guard lock(mutex_);
  granted_ = grant;
  of_peer_ = of_peer;
  flow_.open = true;
  first_ = next_;
  return next_;
}

std::uint64_t SendAccount::close(BulkEnd why) {
  std::deque<BulkNumbered> lost;
  const std::lock_guard lock(mutex_);
  if (std::exchange(flow_.open, false)) ++flow_.resets[static_cast<std::size_t>(why)];
  taken_.swap(lost);
  under_way_.clear();
  flow_.waiting_bytes = flow_.waiting_messages = 0;
  granted_ = {};
  of_peer_ = limits_;
  unblock();
  return next_;
}

std::vector<BulkNumbered> SendAccount::take(std::uint64_t bytes) {
  std::vector<BulkNumbered> result;
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  while (!taken_.empty() && (result.empty() || sum < bytes)) {
    const std::uint64_t size = taken_.front().message.bytes();
    sum += size;
    flow_.bytes += size;
    ++flow_.messages;
    result.push_back(std::move(taken_.front()));
    taken_.pop_front();
  }
  return result;
}

bool SendAccount::acknowledge(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  // What is not handed over cannot have arrived.
  const std::uint64_t end = taken_.empty() ? next_ : taken_.front().number;
  if (number < first_ || number >= end) return false;
  UnderWay& message = under_way_[number - first_];
  if (std::exchange(message.acknowledged, true)) return false;
  flow_.waiting_bytes -= message.bytes;
  --flow_.waiting_messages;
  while (!under_way_.empty() && under_way_.front().acknowledged) {
    under_way_.pop_front();
    ++first_;
  }
  return true;
}

void SendAccount::grant(const BulkGrant& more) {
  const std::lock_guard lock(mutex_);
  granted_.bytes += more.bytes;
  granted_.messages += more.messages;
}

bool SendAccount::take_room() {
  const std::lock_guard lock(mutex_);
  if (!refused_ || !fits(*refused_)) return false;
  unblock();
  return true;
}

void SendAccount::unblock() {
  if (refused_) blocked_ += clock_.now() - refused_at_;
  refused_.reset();
}

void SendAccount::count(BulkCounters& counters) const {
  const std::lock_guard lock(mutex_);
  counters.outgoing = flow_;
  counters.refused_sends = refused_sends_;
  counters.blocked = blocked_;
  if (refused_) counters.blocked += clock_.now() - refused_at_;
}

}  // namespace vigil::cluster
