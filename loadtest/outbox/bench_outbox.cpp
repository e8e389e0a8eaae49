// What keeping an event costs beside RocksDB alone, which syncs the same bytes, and what opening and pruning
// cost when there are many events. Variants take turns. JSON lines.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/utsname.h>

#include "actors/alerts/outbox.h"
#include "cluster/process/clock.h"
#include "engine/kv/database/rocksdb_parts.h"
#include "services/build_info.h"

namespace {

using namespace vigil;
using nlohmann::json;

constexpr std::size_t kBodyBytes = 1000;
constexpr int kTopics = 50;

/// The machine's clock, some time later.
class LaterClock final : public base::Clock {
 public:
  TimePoint now() const override { return inner_.now() + later; }
  WallTime wall() const override { return inner_.wall() + later; }
  base::Duration later{0};

 private:
  cluster::SystemClock inner_;
};

double milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

json summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {{"mean", mean}, {"deviation", std::sqrt(squares / count)}, {"median", values[values.size() / 2]}};
}

class Events {
 public:
  std::vector<actors::OutboxEvent> next(std::size_t count) {
    std::vector<actors::OutboxEvent> events(count);
    for (actors::OutboxEvent& event : events) {
      const std::size_t topic = made_++ % kTopics;
      event.topic = "alert/north/camera-" + std::to_string(topic) + "/person/";
      event.sequence = ++sequences_[topic];
      event.body.assign(kBodyBytes, static_cast<char>('a' + made_ % 26));
    }
    return events;
  }

 private:
  std::size_t made_ = 0;
  std::vector<std::uint64_t> sequences_ = std::vector<std::uint64_t>(kTopics);
};

json machine() {
  utsname name{};
  ::uname(&name);
  return {{"machine", name.machine},
          {"cores", std::thread::hardware_concurrency()},
          {"commit", vigil::services::kCommit}};
}

void print(const char* bench, json figures) {
  figures["bench"] = bench;
  figures.update(machine());
  std::cout << figures.dump() << std::endl;
}

void measure_append(const std::filesystem::path& folder, std::size_t batch, int rounds) {
  LaterClock clock;
  config::RetentionClock ages(clock);
  const auto outbox = actors::open_rocksdb_outbox(folder / "outbox", ages);
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(kv::database_options(), (folder / "alone").string(), &opened).ok()) std::abort();
  const std::unique_ptr<rocksdb::DB> alone(opened);
  Events events;
  std::vector<double> ours;
  std::vector<double> theirs;
  std::uint64_t key = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto made = events.next(batch);
    ours.push_back(milliseconds([&] { outbox->append(made); }));
    rocksdb::WriteBatch same;
    for (const actors::OutboxEvent& event : made) same.Put(std::to_string(key++), event.topic + event.body);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    theirs.push_back(milliseconds([&] {
      if (!alone->Write(synced, &same).ok()) std::abort();
    }));
  }
  const json append = summary(ours);
  const json database = summary(theirs);
  print("append", {{"events_at_once", batch},
                   {"rounds", rounds},
                   {"append_ms", append},
                   {"database_alone_ms", database},
                   {"ratio_of_medians", append["median"].get<double>() / database["median"].get<double>()}});
}

void measure_many(const std::filesystem::path& folder, std::size_t count) {
  LaterClock clock;
  json figures = {{"events", count}};
  {
    config::RetentionClock ages(clock);
    auto outbox = actors::open_rocksdb_outbox(folder / "many", ages);
    Events events;
    for (std::size_t made = 0; made < count; made += 1000) {
      outbox->append(events.next(1000));
      for (const auto& event : outbox->unacknowledged(1000)) outbox->acknowledge(event.position);
    }
    std::vector<double> idle;
    for (int i = 0; i < 20; ++i) idle.push_back(milliseconds([&] { outbox->prune(std::chrono::hours(24)); }));
    figures["prune_nothing_ms"] = summary(idle);
    outbox.reset();
    figures["open_ms"] = milliseconds([&] { outbox = actors::open_rocksdb_outbox(folder / "many", ages); });
    clock.later = std::chrono::hours(48);
    ages.now();
    clock.later += std::chrono::minutes(11);
    std::vector<double> busy;
    std::size_t pruned = 0;
    for (std::size_t last = 1; last > 0;) {
      busy.push_back(milliseconds([&] { last = outbox->prune(std::chrono::hours(24)); }));
      pruned += last;
    }
    figures["pruned"] = pruned;
    figures["prune_at_once"] = actors::kPruneAtOnce;
    figures["prune_ms"] = summary(busy);
    std::vector<double> after;
    for (int i = 0; i < 20; ++i)
      after.push_back(milliseconds([&] { outbox->prune(std::chrono::hours(24)); }));
    figures["prune_nothing_after_ms"] = summary(after);
  }
  print("many", std::move(figures));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the outbox costs, in JSON lines");
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "vigil-bench-outbox";
  int rounds = 500;
  std::size_t events = 1'000'000;
  app.add_option("--folder", folder, "on the disk that is meant; removed at the end");
  app.add_option("--rounds", rounds);
  app.add_option("--events", events, "of the outbox that is opened and pruned");
  CLI11_PARSE(app, argc, argv);
  std::filesystem::create_directories(folder);
  for (const std::size_t batch : {std::size_t{1}, std::size_t{16}, std::size_t{256}}) {
    measure_append(folder, batch, batch == 256 ? rounds / 5 : rounds);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  measure_many(folder, events);
  std::filesystem::remove_all(folder);
}
