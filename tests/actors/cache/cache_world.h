// A cache with its readers and its writer under the deterministic scheduler, and devices and askers by
// script.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/cache/cache_actor.h"
#include "tests/actors/cache/asked_cache.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors::testing {

inline const history::CameraId kGate{"city", "gate"};

class CacheActorTest : public ::testing::Test {
 protected:
  using Form = kv::Form;
  struct Device {
    recalling_actor who;
    std::vector<std::vector<Form>> wants;
    std::vector<ShowPtr> shows;
    std::vector<RecallPtr> recalls;
    std::vector<std::uint64_t> forgotten;
  };
  struct Asker {
    past_listener_actor who;
    std::vector<PastReplyPtr> replies;
  };

  CacheActorTest() {
    store_.fails = false;
    options_.memory.host_bytes = std::uint64_t{16} << 20U;
    options_.memory.host = {{Form::fp8, std::chrono::hours(2)}};
    options_.memory.disk = {{Form::int4, std::chrono::hours(48)}};
    options_.memory.parts.part_time = std::chrono::minutes(10);
  }
  ~CacheActorTest() override {
    stop();
    for (const auto& [name, device] : devices_) caf::anon_send_exit(device->who, caf::exit_reason::kill);
    for (const auto& asker : askers_) caf::anon_send_exit(asker->who, caf::exit_reason::kill);
    settle();
  }
  void begin(bool with_store = true) {
    cache_ = system_.spawn(cache, CacheDeps{with_store ? &store_ : nullptr, clock_, metrics_, board_, logger_,
                                            options_, Threads::scheduled, 2});
    monitor_->monitor(cache_);
    settle();
  }
  void settle() {
    while (scheduler().try_run_once()) {
    }
  }
  void pass(base::Duration span) {
    settle();
    clock_.advance(span);
    scheduler().advance_time(span);
    settle();
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  Device& join(const std::string& name) {
    auto& device = devices_[name] = std::make_unique<Device>();
    device->who =
        system_.spawn([at = device.get()](recalling_actor::pointer) -> recalling_actor::behavior_type {
          return {[at](const WantedFormsPtr& wanted) { at->wants.push_back(wanted->forms); },
                  [at](const ShowPtr& show) { at->shows.push_back(show); },
                  [at](const RecallPtr& recall) { at->recalls.push_back(recall); },
                  [at](forget_atom, std::uint64_t ticket) { at->forgotten.push_back(ticket); }};
        });
    caf::send_as(device->who, cache_, join_atom_v, name);
    settle();
    return *device;
  }
  Asker& asker() {
    auto& one = askers_.emplace_back(std::make_unique<Asker>());
    one->who =
        system_.spawn([at = one.get()](past_listener_actor::pointer) -> past_listener_actor::behavior_type {
          return {[at](const PastReplyPtr& reply) { at->replies.push_back(reply); }};
        });
    return *one;
  }
  void ask(const Asker& asker, std::uint64_t ticket, decltype(PastRequest::what) what,
           base::Clock::TimePoint deadline = base::Clock::TimePoint::max()) {
    caf::send_as(asker.who, cache_,
                 PastRequestPtr(std::make_shared<PastRequest>(
                     PastRequest{ticket, kEverything, std::move(what), deadline})));
    settle();
  }
  static PastQuestion question(std::int64_t to = 80) {
    return AskedCache::question({"gate", std::nullopt}, "Did a car stop?", from_begin(0, to));
  }
  void see(std::int64_t from, std::int64_t to) {
    caf::anon_send(cache_, watch_of_tenant("city", "gate"));
    auto left = std::make_shared<LeftPages>();
    for (std::int64_t second = from; second < to; second += 8)
      left->news.pages.push_back(page_from(kGate, second, {Form::fp8, Form::int4}, memory_));
    caf::anon_send(cache_, LeftPagesPtr(std::move(left)));
    settle();
  }
  /// All that it has is answered, until nothing more comes.
  void answer(Device& device, double log_odds = -6) {
    while (!device.recalls.empty()) {
      for (const RecallPtr& each : std::exchange(device.recalls, {}))
        caf::send_as(
            device.who, cache_,
            RecalledPtr(std::make_shared<Recalled>(Recalled{each->ticket, answer_of(log_odds), "", false})));
      settle();
    }
  }
  /// It says that it has shown what it was to show last.
  void shown(const Device& device) {
    caf::send_as(device.who, cache_, ShownPtr(std::make_shared<Shown>(Shown{device.shows.back()->ticket})));
    settle();
  }
  void stop() {
    caf::anon_send(cache_, stop_atom_v);
    settle();
  }
  /// Whether the cache has ended; of itself.
  bool has_ended() {
    monitor_->receive_while([&] { return monitor_->has_next_message(); })([&](const caf::down_msg& message) {
      EXPECT_FALSE(message.reason) << system_.render(message.reason);
      ended_ = true;
    });
    return ended_;
  }
  static nlohmann::json last(const Asker& asker) {
    EXPECT_FALSE(asker.replies.empty());
    if (asker.replies.empty()) return {};
    EXPECT_EQ(asker.replies.back()->outcome, PastOutcome::answer) << asker.replies.back()->text;
    return nlohmann::json::parse(asker.replies.back()->text);
  }

  kernels::HostMemory memory_{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> inner_ = history::make_memory_history_store();
  vigil::memory::testing::FailingStore store_{*inner_};
  ManualClock clock_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  CacheDesk::Options options_;
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor monitor_{system_};
  std::map<std::string, std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Asker>> askers_;
  cache_actor cache_;
  bool ended_ = false;
};

}  // namespace vigil::actors::testing
