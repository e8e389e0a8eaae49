// What an owner of a port has heard, for tests to wait for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cluster/bulk/bulk.h"

namespace vigil::cluster::testing {

inline constexpr std::size_t kKiB = 1 << 10;
inline constexpr std::size_t kMiB = 1 << 20;

/// Bytes that tell which they are.
inline Bytes made_bytes(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(text.data() + i, &word, std::min(sizeof word, size - i));
  }
  return Bytes(std::move(text));
}

/// Copies of what was received, without receipts.
struct Copied {
  std::string peer;
  std::uint64_t number = 0;
  std::string header;
  std::vector<Bytes> parts;
};

/// Thread-safe.
class Heard final : public BulkOwner {
  template <class F>
  auto get(const F& f) const {
    const std::lock_guard lock(mutex_);
    return f();
  }

 public:
  void received(const std::string& peer, BulkReceived received) override {
    const std::lock_guard lock(mutex_);
    all_.push_back({peer, received.number, received.message.header, received.message.parts});
    if (keeps_[peer]) receipts_[peer].push_back(std::move(received.receipt));
    changed_.notify_all();
  }
  void acknowledged(const std::string& peer, std::uint64_t number) override {
    const std::lock_guard lock(mutex_);
    acknowledged_[peer].push_back(number);
    changed_.notify_all();
  }
  void room(const std::string& peer) override {
    const std::lock_guard lock(mutex_);
    ++rooms_[peer];
    changed_.notify_all();
  }
  void opened(const std::string& peer, BulkDirection direction, std::uint64_t incarnation) override {
    const std::lock_guard lock(mutex_);
    opened_[{peer, direction}].push_back(incarnation);
    changed_.notify_all();
  }
  void reset(const std::string& peer, const BulkReset& reset) override {
    const std::lock_guard lock(mutex_);
    resets_[{peer, reset.direction}].push_back(reset);
    changed_.notify_all();
  }

  void trouble(const std::string& line) override {
    const std::lock_guard lock(mutex_);
    troubles_.push_back(line);
    changed_.notify_all();
  }

  /// Whether receipts are kept, until `release`.
  void keep(const std::string& peer, bool keeps = true) {
    const std::lock_guard lock(mutex_);
    keeps_[peer] = keeps;
  }
  /// Lets go of the receipt at this place, of those that are held.
  void release(const std::string& peer, std::size_t place = 0) {
    BulkReceipt receipt;
    const std::lock_guard lock(mutex_);
    receipt = std::move(receipts_[peer].at(place));
    receipts_[peer].erase(receipts_[peer].begin() + static_cast<std::ptrdiff_t>(place));
  }
  void release_all(const std::string& peer) {
    std::vector<BulkReceipt> receipts;
    const std::lock_guard lock(mutex_);
    receipts.swap(receipts_[peer]);
  }
  std::size_t held(const std::string& peer) const {
    return get([&] { return size_of(receipts_, peer); });
  }

  std::vector<std::string> troubles() const {
    return get([&] { return troubles_; });
  }
  std::vector<Copied> all() const {
    return get([&] { return all_; });
  }
  std::size_t count(const std::string& peer) const {
    return get([&] {
      std::size_t sum = 0;
      for (const Copied& each : all_) sum += each.peer == peer ? 1U : 0U;
      return sum;
    });
  }
  std::vector<std::uint64_t> acknowledged(const std::string& peer) const {
    return get([&] { return at(acknowledged_, peer); });
  }
  int rooms(const std::string& peer) const {
    return get([&] { return at(rooms_, peer); });
  }
  std::vector<std::uint64_t> opened(const std::string& peer, BulkDirection direction) const {
    return get([&] { return at(opened_, std::pair(peer, direction)); });
  }
  std::vector<BulkReset> resets(const std::string& peer, BulkDirection direction) const {
    return get([&] { return at(resets_, std::pair(peer, direction)); });
  }

  void wait_a_moment() const {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }

 private:
  template <class Map, class Key>
  static typename Map::mapped_type at(const Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? typename Map::mapped_type() : found->second;
  }
  template <class Map>
  static std::size_t size_of(const Map& map, const std::string& key) {
    const auto found = map.find(key);
    return found == map.end() ? 0 : found->second.size();
  }

  using Stream = std::pair<std::string, BulkDirection>;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Copied> all_;
  std::vector<std::string> troubles_;
  std::map<std::string, bool> keeps_;
  std::map<std::string, std::vector<BulkReceipt>> receipts_;
  std::map<std::string, std::vector<std::uint64_t>> acknowledged_;
  std::map<std::string, int> rooms_;
  std::map<Stream, std::vector<std::uint64_t>> opened_;
  std::map<Stream, std::vector<BulkReset>> resets_;
};

}  // namespace vigil::cluster::testing
