// What a turn of bench_demotion remembers, and what came of its windows.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/statistics.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/page_key.h"
#include "engine/memory/host_tier.h"
#include "engine/memory/page_maker.h"
#include "engine/run/token_mover.h"
#include "kernels/device/host_buffer.h"

namespace vigil::loadtest {

constexpr double kLate = 0.95;
constexpr int kBootstraps = 2000;

using bench::percentile;

/// Words of kv::kFormNames between commas, the finest first. Throws std::invalid_argument for others.
inline std::vector<kv::Form> parse_forms(const std::string& words) {
  std::vector<kv::Form> forms;
  std::istringstream from(words);
  for (std::string word; std::getline(from, word, ',');) {
    const auto named = std::find_if(kv::kFormNames.begin(), kv::kFormNames.end(),
                                    [&](const auto& each) { return each.first == word; });
    if (named == kv::kFormNames.end()) throw std::invalid_argument("'" + word + "' is no form");
    forms.push_back(named->second);
  }
  if (forms.empty()) throw std::invalid_argument("a side with memory keeps some form");
  return forms;
}

/// The host's tier, in a thread of its own: pages come to it while the executor goes on.
class Keeper {
 public:
  Keeper(std::uint64_t bytes, const std::vector<kv::Form>& forms, std::span<const history::CameraId> cameras)
      : tier_(bytes, memory::Eviction::lru, ages(forms)) {
    tier_.share(cameras);
    thread_ = std::thread([this] { run(); });
  }
  ~Keeper() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    came_.notify_one();
    thread_.join();
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Pages that the tier had no room for, so far.
  std::int64_t not_kept() const { return not_kept_; }

  void put(std::vector<memory::FreshPage> pages) {
    {
      const std::lock_guard lock(mutex_);
      std::move(pages.begin(), pages.end(), std::back_inserter(waiting_));
    }
    came_.notify_one();
  }

 private:
  static memory::HostTier::Ages ages(const std::vector<kv::Form>& forms) {
    memory::HostTier::Ages ages;
    for (const kv::Form form : forms) ages[form] = std::chrono::hours(24);
    return ages;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      came_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
      if (ended_) return;
      std::vector<memory::FreshPage> pages = std::exchange(waiting_, {});
      lock.unlock();
      for (memory::FreshPage& page : pages) put(page);
      pages.clear();
      lock.lock();
    }
  }
  void put(memory::FreshPage& fresh) {
    memory::HostTier::Page page{.info = fresh.info, .change = fresh.change, .forms = {}};
    page.info.number = ++numbers_;
    page.sketch = std::move(fresh.sketch);
    for (run::MovedTokens& form : fresh.forms) page.forms.emplace(form.form, std::move(form));
    if (!tier_.put(fresh.camera, std::move(page)).is_kept) ++not_kept_;
  }

  memory::HostTier tier_;
  std::uint64_t numbers_ = 0;
  std::atomic<std::int64_t> not_kept_ = 0;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<memory::FreshPage> waiting_;
  bool ended_ = false;
  std::thread thread_;
};

/// Turns of one kind, and what came of them.
struct Side {
  std::string name = "off";
  std::vector<kv::Form> forms = {};
  std::unique_ptr<kernels::HostMemory> memory = nullptr;
  std::unique_ptr<Keeper> keeper = nullptr;
  std::shared_ptr<memory::PageMaker> maker = nullptr;
  /// Milliseconds of windows, by the second of all turns in which they were due.
  std::vector<std::vector<double>> seconds = {};
  /// Visual tokens that were computed for them.
  std::int64_t computed = 0;
  /// Seconds.
  double busy = 0;
  std::int64_t pages = 0, patches_lost = 0, overtaken = 0;
  std::map<kv::Form, std::int64_t> bytes = {}, forms_lost = {};

  std::vector<double> windows() const { return windows(0, seconds.size()); }
  std::vector<double> windows(std::size_t from, std::size_t to) const {
    std::vector<double> all;
    for (std::size_t i = from; i < to; ++i) all.insert(all.end(), seconds[i].begin(), seconds[i].end());
    return all;
  }
};

/// Of a side's windows; `turn`: seconds of a turn.
inline nlohmann::json windows_of(const Side& side, std::size_t turn) {
  const std::vector<double> windows = side.windows();
  const auto count = static_cast<double>(std::max<std::size_t>(1, windows.size()));
  nlohmann::json line{{"side", side.name},
                      {"windows", windows.size()},
                      {"overtaken", side.overtaken},
                      {"computed", static_cast<double>(side.computed) / count},
                      {"p50_ms", percentile(windows, 0.5)},
                      {"p95_ms", percentile(windows, kLate)},
                      {"p99_ms", percentile(windows, 0.99)},
                      {"busy", side.busy / static_cast<double>(side.seconds.size())}};
  for (std::size_t i = 0; i < side.seconds.size(); i += turn)
    line["p95_by_turn_ms"].push_back(percentile(side.windows(i, i + turn), kLate));
  return line;
}

/// Of the 95th of a hundred of a side's windows beside another's: where 95 % of the bootstraps over their
/// seconds lie.
inline std::pair<double, double> ratio_interval(const Side& side, const Side& beside) {
  std::mt19937_64 random(1);
  const auto drawn = [&](const Side& of) {
    std::uniform_int_distribution<std::size_t> any(0, of.seconds.size() - 1);
    std::vector<double> windows;
    for (std::size_t i = 0; i < of.seconds.size(); ++i) {
      const std::vector<double>& second = of.seconds[any(random)];
      windows.insert(windows.end(), second.begin(), second.end());
    }
    return percentile(std::move(windows), kLate);
  };
  std::vector<double> ratios;
  for (int i = 0; i < kBootstraps; ++i) {
    const double other = drawn(beside);
    if (other > 0) ratios.push_back(drawn(side) / other);
  }
  return {percentile(ratios, 0.025), percentile(ratios, 0.975)};
}

}  // namespace vigil::loadtest
