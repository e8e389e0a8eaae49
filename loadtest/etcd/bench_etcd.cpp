// What one server of etcd does for a fleet: members as `EtcdRegistry` makes them (a connection each), their
// puts, leases, reads and watches. A JSON line a figure, with the server's processor time of one operation:
// that is what the model of `vigil bench city` is made of.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/process/process.h"
#include "cluster/registry/etcd_registry.h"
#include "services/build_info.h"

namespace {

using namespace vigil::cluster;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string endpoint;
  /// Of the server; 0: its processor time is not told.
  int pid = 0;
  double seconds = 5;
  std::vector<std::size_t> members = {1, 10, 100, 300};
  std::size_t record_bytes = 600;
  std::size_t plan_bytes = 40'000;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What a process has had of the processors.
double processor_seconds(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) throw std::runtime_error("--pid: no process " + std::to_string(pid));
  std::istringstream fields(text.substr(name_end + 2));
  std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
  return (std::stod(values.at(11)) + std::stod(values.at(12))) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Counts down in any thread; whoever waits goes on at 0.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(120), [&] { return left_ == 0; }))
      throw std::runtime_error("etcd: no answer within 2 minutes");
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_;
};

template <class T>
const T& good(const RegistryResult<T>& result) {
  if (const auto* failure = std::get_if<RegistryFailure>(&result)) throw std::runtime_error(failure->text);
  return std::get<T>(result);
}

class Bench {
 public:
  explicit Bench(const Arguments& arguments) : arguments_(arguments) {}

  void run() {
    const std::size_t most = *std::max_element(arguments_.members.begin(), arguments_.members.end());
    while (registries_.size() < most)
      registries_.push_back(std::make_unique<EtcdRegistry>(EtcdRegistry::Options{
          .endpoints = {arguments_.endpoint}, .plain_text = true, .time_limit = std::chrono::seconds(60)}));
    grant_leases(most);
    one_after_the_other();
    for (const std::size_t members : arguments_.members) {
      together("put", members, [this](std::size_t member, auto done) {
        registries_[member]->commit(put(member, arguments_.record_bytes), [done](const auto& result) {
          good(result);
          done();
        });
      });
      together("keep_alive", members, [this](std::size_t member, auto done) {
        registries_[member]->keep_alive(leases_[member], [done](const auto& result) {
          good(result);
          done();
        });
      });
      if (members >= 10) reads(members);
      watches(members);
    }
    plans();
    for (const LeaseId lease : leases_) revoke(lease);
  }

 private:
  RegistryTransaction put(std::size_t member, std::size_t bytes) {
    const std::string key = "/bench/nodes/" + std::to_string(member);
    return {.conditions = {}, .changes = {RegistryPut{key, std::string(bytes, 'x'), leases_[member]}}};
  }

  void grant_leases(std::size_t count) {
    leases_.resize(count);
    Countdown answers(count);
    for (std::size_t i = 0; i < count; ++i)
      registries_[i]->grant(std::chrono::minutes(10), [this, i, &answers](const auto& result) {
        leases_[i] = good(result).id;
        answers.done();
      });
    answers.wait();
  }

  void revoke(LeaseId lease) {
    Countdown answer(1);
    registries_[0]->revoke(lease, [&](const auto&) { answer.done(); });
    answer.wait();
  }

  void tell(nlohmann::json line, std::size_t operations, double seconds, double processor) {
    line["per_second"] = static_cast<double>(operations) / seconds;
    if (arguments_.pid != 0) line["server_us"] = processor / static_cast<double>(operations) * 1e6;
    line["bench"] = "etcd";
    line["machine"] = processor_name();
    line["commit"] = vigil::services::kCommit;
    std::cout << line.dump() << std::endl;
  }

  double processor() const { return arguments_.pid == 0 ? 0 : processor_seconds(arguments_.pid); }

  /// A put that waits for nobody but the disk.
  void one_after_the_other() {
    std::vector<double> times;
    const auto begin = Clock::now();
    const double before = processor();
    while (seconds_since(begin) < arguments_.seconds) {
      const auto sent = Clock::now();
      Countdown answer(1);
      registries_[0]->commit(put(0, arguments_.record_bytes), [&](const auto& result) {
        good(result);
        answer.done();
      });
      answer.wait();
      times.push_back(seconds_since(sent));
    }
    const double took = seconds_since(begin);
    std::sort(times.begin(), times.end());
    tell({{"what", "put_alone"},
          {"bytes", arguments_.record_bytes},
          {"p50_ms", times[times.size() / 2] * 1e3},
          {"p99_ms", times[times.size() * 99 / 100] * 1e3}},
         times.size(), took, processor() - before);
  }

  /// Each member has one operation under way all the time.
  void together(const std::string& what, std::size_t members,
                const std::function<void(std::size_t, std::function<void()>)>& operation) {
    std::atomic<std::size_t> count = 0;
    Countdown ended(members);
    const auto begin = Clock::now();
    const double before = processor();
    std::function<void(std::size_t)> next = [&](std::size_t member) {
      operation(member, [&, member] {
        ++count;
        if (seconds_since(begin) < arguments_.seconds) return next(member);
        ended.done();
      });
    };
    for (std::size_t i = 0; i < members; ++i) next(i);
    ended.wait();
    const double took = seconds_since(begin);
    tell({{"what", what}, {"members", members}}, count, took, processor() - before);
  }

  /// All members read all records at once.
  void reads(std::size_t members) {
    constexpr int kRounds = 5;
    std::atomic<std::size_t> entries = 0;
    const auto begin = Clock::now();
    const double before = processor();
    for (int round = 0; round < kRounds; ++round) {
      Countdown answers(members);
      for (std::size_t i = 0; i < members; ++i)
        registries_[i]->range("/bench/nodes/", [&](const auto& result) {
          entries += good(result).entries.size();
          answers.done();
        });
      answers.wait();
    }
    const double took = seconds_since(begin);
    tell({{"what", "range_entry"}, {"members", members}, {"bytes", arguments_.record_bytes}}, entries, took,
         processor() - before);
  }

  /// Every member watches all records; half of them are put anew, as many at once as there are members.
  void watches(std::size_t members) {
    const std::size_t puts = std::max<std::size_t>(100, std::min<std::size_t>(2000, 200'000 / members));
    Countdown seen(puts * members);
    std::vector<std::unique_ptr<RegistryWatch>> watches;
    Countdown first(1);
    Revision from = 0;
    registries_[0]->range("/bench/none", [&](const auto& result) {
      from = good(result).header.revision + 1;
      first.done();
    });
    first.wait();
    for (std::size_t i = 0; i < members; ++i)
      watches.push_back(registries_[i]->watch("/bench/nodes/", from, [&seen](const auto& result) {
        for (std::size_t each = good(result).events.size(); each > 0; --each) seen.done();
      }));
    // One more put makes sure that all watch, and is not counted.
    const auto begin = Clock::now();
    const double before = processor();
    std::atomic<std::size_t> left = puts;
    const std::size_t writers = std::min<std::size_t>(members, 20);
    std::function<void(std::size_t)> next = [&](std::size_t member) {
      std::size_t now = left.load();
      do {
        if (now == 0) return;
      } while (!left.compare_exchange_weak(now, now - 1));
      registries_[member]->commit(put(member, arguments_.record_bytes), [&, member](const auto& result) {
        good(result);
        next(member);
      });
    };
    for (std::size_t i = 0; i < writers; ++i) next(i);
    seen.wait();
    const double took = seconds_since(begin);
    const double spent = processor() - before;
    watches.clear();
    tell({{"what", "watch_event"}, {"members", members}, {"bytes", arguments_.record_bytes}, {"puts", puts}},
         puts * members, took, spent);
  }

  /// A planner's transactions: sixteen plans each.
  void plans() {
    constexpr std::size_t kPlans = 16;
    std::size_t count = 0;
    std::vector<double> times;
    const auto begin = Clock::now();
    const double before = processor();
    while (seconds_since(begin) < arguments_.seconds) {
      RegistryTransaction transaction;
      for (std::size_t i = 0; i < kPlans; ++i)
        transaction.changes.emplace_back(
            RegistryPut{"/bench/plan/" + std::to_string(i), std::string(arguments_.plan_bytes, 'x')});
      const auto sent = Clock::now();
      Countdown answer(1);
      registries_[0]->commit(std::move(transaction), [&](const auto& result) {
        good(result);
        answer.done();
      });
      answer.wait();
      times.push_back(seconds_since(sent));
      count += kPlans;
    }
    const double took = seconds_since(begin);
    std::sort(times.begin(), times.end());
    tell({{"what", "plan"}, {"bytes", arguments_.plan_bytes}, {"p50_ms", times[times.size() / 2] * 1e3}},
         count, took, processor() - before);
  }

  const Arguments& arguments_;
  std::vector<LeaseId> leases_;
  std::vector<std::unique_ptr<EtcdRegistry>> registries_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What one server of etcd does for the members of a fleet; it has to run, without TLS");
  Arguments arguments;
  app.add_option("--endpoint", arguments.endpoint, "HOST:PORT of the server")->required();
  app.add_option("--pid", arguments.pid, "of the server, whose processor time is told then");
  app.add_option("--seconds", arguments.seconds, "of each measurement")->check(CLI::Range(0.1, 600.0));
  app.add_option("--members", arguments.members, "how many at once")->check(CLI::Range(1, 5000));
  app.add_option("--record-bytes", arguments.record_bytes, "of a node's record")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--plan-bytes", arguments.plan_bytes, "of a node's plan")->check(CLI::Range(1, 60'000));
  CLI11_PARSE(app, argc, argv);
  try {
    Bench(arguments).run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
