// A server of questions with clients of both kinds, each served in turn by the test's one thread. Nothing
// here waits for a time: what is waited for comes, or the test fails after long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <zmq_addon.hpp>

#include "base/clock.h"
#include "cluster/asks/client.h"
#include "cluster/asks/server.h"

namespace vigil::cluster::testing {

using namespace std::chrono_literals;

inline constexpr auto kLongest = 20s;

/// A time that only a test moves.
class AskClock final : public base::Clock {
 public:
  TimePoint now() const override { return now_; }
  WallTime wall() const override { return {}; }
  void advance(std::chrono::milliseconds by) { now_ += by; }

 private:
  TimePoint now_{1h};
};

/// A client that sends whatever it likes.
class AskStranger {
 public:
  explicit AskStranger(const std::string& endpoint, zmq::socket_type type = zmq::socket_type::dealer,
                       const std::function<void(zmq::socket_t&)>& prepare = {})
      : socket_(context_, type) {
    socket_.set(zmq::sockopt::linger, 0);
    if (prepare) prepare(socket_);
    socket_.connect(endpoint);
  }

  void send(const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      socket_.send(zmq::buffer(part),
                   &part == &parts.back() ? zmq::send_flags::none : zmq::send_flags::sndmore);
    }
  }

  /// What has come, if something has.
  std::vector<std::string> take() {
    std::vector<zmq::message_t> parts;
    std::vector<std::string> texts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait)) return texts;
    for (const zmq::message_t& part : parts) texts.push_back(part.to_string());
    return texts;
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

/// What a gate tells. Thread-safe.
class SeenAtGate final : public GateObserver {
 public:
  void connections(int open) override {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void refused(Refusal reason) override {
    const std::lock_guard lock(mutex_);
    refused_.insert(reason);
    changed_.notify_all();
  }
  bool wait_open(int open) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongest, [&] { return open_ == open; });
  }
  bool wait_refused(Refusal reason) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLongest, [&] { return refused_.contains(reason); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  std::set<Refusal> refused_;
};

class AskSite : public ::testing::Test {
 protected:
  void start(const AskLimits& limits = {}, const std::optional<CurveServer>& curve = std::nullopt,
             const std::string& endpoint = "tcp://127.0.0.1:0") {
    AskServer::Options options{.endpoint = endpoint, .curve = curve, .limits = limits, .clock = &clock_};
    options.gate.observer = &gate_;
    server_ = std::make_unique<AskServer>(options);
  }

  std::unique_ptr<AskClient> client(const std::optional<CurveClient>& curve = std::nullopt) {
    return std::make_unique<AskClient>(
        AskClient::Options{.endpoint = server_->endpoint(), .curve = curve, .clock = &clock_});
  }

  /// Serves until this is so.
  bool eventually(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + kLongest;
    while (std::chrono::steady_clock::now() < until) {
      if (server_) {
        server_->serve();
        for (AskedRequest& each : server_->take_requests()) requests_.push_back(std::move(each));
        for (const GivenUpAsk& each : server_->take_given_up()) given_up_.push_back(each);
      }
      if (done()) return true;
      ::poll(nullptr, 0, 1);  // So that ZeroMQ's threads have the processor.
    }
    return false;
  }

  AskClient::Tag ask(AskClient& client, const AskRequest& request, std::chrono::milliseconds timeout = 1h) {
    std::optional<AskClient::Tag> tag;
    EXPECT_TRUE(eventually([&] { return (tag = client.ask(request, timeout)).has_value(); }));
    return tag.value_or(0);
  }

  /// Waits until so many requests have come in all.
  bool wait_requests(std::size_t count) {
    return eventually([&] { return requests_.size() >= count; });
  }

  /// The next one that comes.
  AskClient::Arrival next(AskClient& client) {
    std::optional<AskClient::Arrival> arrival;
    EXPECT_TRUE(eventually([&] { return (arrival = client.take()).has_value(); }));
    return arrival ? *std::move(arrival) : AskClient::Arrival{};
  }

  std::vector<std::string> next(AskStranger& stranger) {
    std::vector<std::string> parts;
    EXPECT_TRUE(eventually([&] { return !(parts = stranger.take()).empty(); }));
    return parts;
  }

  static AskRequest question(const std::string& text = "When?") {
    return AskQuestion{.camera = "gate-7", .question = text, .from_ms = 1, .to_ms = 2};
  }

  AskClock clock_;
  SeenAtGate gate_;
  std::unique_ptr<AskServer> server_;
  std::vector<AskedRequest> requests_;
  std::vector<GivenUpAsk> given_up_;
};

}  // namespace vigil::cluster::testing
