// Where ports live in tests: beside real sockets with a piece of wire before each, or in memory, in a time of
// its own. The same tests run in all of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/bulk/memory_bulk.h"
#include "cluster/bulk/socket_bulk.h"
#include "cluster/process/clock.h"
#include "tests/cluster/bulk/forwarder.h"
#include "tests/cluster/bulk/heard.h"

namespace vigil::cluster::testing {

class World {
 public:
  virtual ~World() = default;

  /// A port of this name, with the key that `key_of` tells of it unless another name is said.
  virtual std::unique_ptr<BulkPort> port(const BulkOptions& options, Heard& heard,
                                         const std::string& with_key_of = "") = 0;
  /// As others know the port of this name, whether it is there or not.
  virtual BulkPeer peer(const std::string& name) = 0;
  /// Has the port use another key from now on, which `peer` tells as the newest.
  virtual void renew_key(BulkPort& port, const std::string& name) = 0;

  /// Waits until that holds; false if it does not come true in a long time.
  virtual bool until(const std::function<bool()>& holds) = 0;
  /// Lets things happen for that long.
  virtual void pass(std::chrono::milliseconds time) = 0;

  /// Of all connections to the port of this name.
  virtual void cut(const std::string& name) = 0;
  virtual void stall(const std::string& name, bool stalled) = 0;
  /// Changes a byte of messages that this port sends, after that many of their bytes or about there.
  virtual void damage(const std::string& name, std::size_t after) = 0;

  virtual bool encrypted() const = 0;
};

class SocketWorld final : public World {
 public:
  explicit SocketWorld(bool encrypted) : encrypted_(encrypted) {}

  std::unique_ptr<BulkPort> port(const BulkOptions& options, Heard& heard,
                                 const std::string& with_key_of) override {
    SocketBulkOptions sockets{.endpoint = "tcp://127.0.0.1:0"};
    if (encrypted_) sockets.keys = keys(with_key_of.empty() ? options.name : with_key_of).front();
    auto made = std::make_unique<SocketBulk>(options, sockets, heard, clock_);
    wires_[options.name].lead_to(made->endpoint());
    heard_.push_back(&heard);
    return made;
  }
  BulkPeer peer(const std::string& name) override {
    BulkPeer result{name, wires_[name].endpoint()};
    if (encrypted_) {
      for (const KeyPair& each : keys(name)) result.keys.push_back(each.public_key);
    }
    return result;
  }
  void renew_key(BulkPort& port, const std::string& name) override {
    keys(name).insert(keys(name).begin(), make_key_pair());
    dynamic_cast<SocketBulk&>(port).set_keys(keys(name).front());
  }

  bool until(const std::function<bool()>& holds) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      heard_.back()->wait_a_moment();
    }
    return true;
  }
  void pass(std::chrono::milliseconds time) override {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) heard_.back()->wait_a_moment();
  }

  void cut(const std::string& name) override { wires_[name].cut(); }
  void stall(const std::string& name, bool stalled) override { wires_[name].stall(stalled); }
  void damage(const std::string& name, std::size_t after) override {
    wires_[name].damage(static_cast<std::int64_t>(after));
  }
  bool encrypted() const override { return encrypted_; }

 private:
  std::vector<KeyPair>& keys(const std::string& name) {
    std::vector<KeyPair>& result = keys_[name];
    if (result.empty()) result.push_back(make_key_pair());
    return result;
  }

  bool encrypted_;
  SystemClock clock_;
  std::map<std::string, Forwarder> wires_;
  std::map<std::string, std::vector<KeyPair>> keys_;
  std::vector<Heard*> heard_;
};

class MemoryWorld final : public World {
 public:
  explicit MemoryWorld(bool encrypted)
      : encrypted_(encrypted),
        network_(clock_, [this](const std::string& from, const std::string& to, Frames frames,
                                MemoryBulkNetwork::Arrive arrive) {
          // A wire that was stalled stays dead for what went over it.
          if (stalled_.contains(from) || stalled_.contains(to)) return;
          disturb(from, frames);
          under_way_.push_back({from, to, std::move(frames), std::move(arrive)});
        }) {}

  std::unique_ptr<BulkPort> port(const BulkOptions& options, Heard& heard,
                                 const std::string& with_key_of) override {
    return std::make_unique<MemoryBulk>(
        options, options.name, key(with_key_of.empty() ? options.name : with_key_of), heard, network_);
  }
  BulkPeer peer(const std::string& name) override {
    BulkPeer result{name, name};
    for (int i = generations_[name]; encrypted_ && i >= 0; --i)
      result.keys.push_back("key " + std::to_string(i) + " of " + name);
    return result;
  }
  void renew_key(BulkPort& port, const std::string& name) override {
    ++generations_[name];
    dynamic_cast<MemoryBulk&>(port).set_key(key(name));
  }

  bool until(const std::function<bool()>& holds) override {
    const auto end = clock_.now() + std::chrono::seconds(120);
    while (!holds()) {
      if (clock_.now() > end) return false;
      go_on();
    }
    return true;
  }
  void pass(std::chrono::milliseconds time) override {
    const auto end = clock_.now() + time;
    while (clock_.now() < end) go_on();
  }

  void cut(const std::string& name) override {
    for (const char* other : {"a", "b", "c"}) network_.cut(name, other);
  }
  void stall(const std::string& name, bool stalled) override {
    if (stalled)
      stalled_.insert(name);
    else
      stalled_.erase(name);
  }
  void damage(const std::string& name, std::size_t after) override { damages_[name] = after; }
  bool encrypted() const override { return encrypted_; }

 private:
  // What is no message is smaller.
  static constexpr std::size_t kControl = 5000;

  class VirtualClock final : public base::Clock {
   public:
    TimePoint now() const override { return now_; }
    WallTime wall() const override { return {}; }
    void advance(std::chrono::nanoseconds by) { now_ += by; }

   private:
    TimePoint now_{std::chrono::hours(1)};
  };
  struct Packet {
    std::string from;
    std::string to;
    Frames frames;
    MemoryBulkNetwork::Arrive arrive;
  };

  std::string key(const std::string& name) {
    return encrypted_ ? "key " + std::to_string(generations_[name]) + " of " + name : "";
  }

  void go_on() {
    network_.step();
    if (under_way_.empty()) return clock_.advance(std::chrono::milliseconds(1));
    Packet packet = std::move(under_way_.front());
    under_way_.pop_front();
    packet.arrive(std::move(packet.frames));
    clock_.advance(std::chrono::microseconds(10));
  }

  void disturb(const std::string& from, Frames& frames) {
    const auto wanted = damages_.find(from);
    if (wanted == damages_.end()) return;
    for (Bytes& frame : frames) {
      if (frame.size() <= std::max(wanted->second, kControl)) continue;
      std::string text(frame.text());
      text[wanted->second] ^= 0x10;
      frame = Bytes(std::move(text));
      damages_.erase(wanted);
      return;
    }
  }

  bool encrypted_;
  VirtualClock clock_;
  std::deque<Packet> under_way_;
  std::set<std::string> stalled_;
  std::map<std::string, std::size_t> damages_;
  std::map<std::string, int> generations_;
  MemoryBulkNetwork network_;
};

}  // namespace vigil::cluster::testing
