#include "bench/memory_day.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "actors/cache/disk_writing.h"
#include "base/virtual_time.h"
#include "engine/memory/hours.h"

namespace vigil::bench {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// As often as the cache looks at what is too old.
constexpr seconds kAging{10};

std::int64_t wall_of(const base::Clock& clock) {
  return memory::nanoseconds(clock.wall());
}

/// The cache's part with its disk, in one thread.
class MemoryDay {
 public:
  MemoryDay(const MemoryDayOptions& options, history::HistoryStore& store, MemoryDayFigures& figures)
      : options_(options),
        store_(store),
        figures_(figures),
        bytes_(options.shape, options.seed),
        memory_(&store, day_memory(options)),
        writing_(store, *memory_.queue(), time_) {
    for (int i = 0; i < options.cameras; ++i) {
      cameras_.emplace_back(day_camera(i), options.shape, options.seed + static_cast<std::uint64_t>(i) + 1);
      memory_.watch(cameras_.back().id(), hours(options.hours));
    }
  }

  void run() {
    const nanoseconds length = hours(options_.hours + options_.more_hours);
    const nanoseconds patch = options_.shape.patch;
    const nanoseconds between = options_.erasures > 0 ? length / options_.erasures : length;
    nanoseconds aged{0}, erased{0};
    for (nanoseconds at{0}; at + patch <= length; at += patch) {
      see_all(patch);
      if (at - aged >= kAging) age();
      if (at - aged >= kAging) aged = at;
      if (at - erased < between - minutes(10)) continue;
      if (std::cmp_less(figures_.erasures, options_.erasures)) erase();
      erased += between;
    }
    age();
    hear(writing_.finish());
    figures_.end = wall_of(time_);
  }

 private:
  void see_all(nanoseconds patch) {
    const std::int64_t from = wall_of(time_);
    time_.advance(patch);
    const std::vector<kv::Form> wanted = memory_.wanted();
    if (wanted.size() < 3) throw std::runtime_error("the disk is behind, though nothing waits for it");
    for (MadeCamera& camera : cameras_) {
      std::optional<memory::FreshPage> page = camera.see(from, wanted, bytes_);
      if (!page) continue;
      const memory::Memory::Taken taken = memory_.take(std::move(*page), time_.now());
      if (taken.lost || taken.written.size() != wanted.size())
        throw std::runtime_error("a page of " + camera.id().camera + " was not kept");
      write();
    }
  }
  void write() {
    for (;;) {
      const auto due = memory_.queue()->due();
      if (!due || *due > time_.now()) return;
      bool goes_on = false;
      hear(writing_.turn(goes_on));
    }
  }
  void age() {
    memory::Memory::Aged aged = memory_.age(wall_of(time_));
    if (aged.empty()) return write();
    writing_.retire(std::move(aged.expiries));
    writing_.forget(std::move(aged.forgotten));
    writing_.note(aged.notes);
    bool goes_on = false;
    hear(writing_.turn(goes_on));
  }
  /// Five minutes, from ten minutes ago on, when some of them still wait and others lie on the disk.
  void erase() {
    const std::int64_t now = wall_of(time_);
    const history::CameraId& camera = cameras_[figures_.erasures++ % cameras_.size()].id();
    const history::WallRange wall{now - nanoseconds(minutes(15)).count(),
                                  now - nanoseconds(minutes(10)).count()};
    figures_.erased_pages += memory_.erase(camera, wall, now);
    bool goes_on = false;
    hear(writing_.turn(goes_on));
  }
  void hear(const actors::DiskNews& news) {
    if (!news.failure.empty()) throw std::runtime_error(news.failure);
    figures_.retired.pages += news.retired.pages;
    figures_.retired.bytes += news.retired.bytes;
    for (const memory::PartQueue::Written& written : news.written) {
      if (!written.failure.empty()) throw std::runtime_error(written.failure);
      memory_.wrote(written);
      MemoryDayFigures::OfForm& kept = figures_.kept[static_cast<kv::Form>(written.form)];
      kept.pages += written.pages;
      kept.bytes += written.bytes;
    }
  }

  const MemoryDayOptions& options_;
  history::HistoryStore& store_;
  MemoryDayFigures& figures_;
  base::VirtualTime time_;
  MadeBytes bytes_;
  memory::Memory memory_;
  actors::DiskWriting writing_;
  std::vector<MadeCamera> cameras_;
};

}  // namespace

MemoryDayOptions MemoryDayOptions::of_share(double share) {
  MemoryDayOptions options;
  options.hours = std::max(1, static_cast<int>(std::lround(24 * share)));
  options.more_hours = std::max(1, static_cast<int>(std::lround(6 * share)));
  return options;
}

std::uint64_t MemoryDayFigures::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [form, each] : kept) bytes += each.bytes;
  return bytes;
}

memory::Memory::Options day_memory(const MemoryDayOptions& options) {
  memory::Memory::Options memory;
  // A camera's `keep` bounds them all.
  for (const kv::Form form : {kv::Form::int4, kv::Form::embeddings, kv::Form::sketch})
    memory.disk.emplace(form, hours(options.hours));
  memory.parts.layers = options.layers;
  return memory;
}

history::CameraId day_camera(int number) {
  return {"demo", "camera-" + std::to_string(number)};
}

MemoryDayFigures simulate_day(const MemoryDayOptions& options, const base::Clock& real) {
  MemoryDayFigures figures;
  const auto begin = real.now();
  const WrittenBytes before = written_bytes();
  {
    const auto store = history::open_history_store(options.folder, {.master = options.master});
    MemoryDay day(options, *store, figures);
    day.run();
    for (const history::HourSummary& hour : store->hours(std::nullopt)) {
      figures.form_pages_there += hour.pages;
      figures.bytes_there += hour.bytes;
      if (static_cast<kv::Form>(hour.form) == kv::Form::int4) figures.pages_there += hour.pages;
    }
  }
  const WrittenBytes after = written_bytes();
  figures.written = {after.storage - before.storage, after.calls - before.calls};
  figures.seconds = std::chrono::duration<double>(real.now() - begin).count();
  figures.index_bytes = folder_bytes(options.folder / "index");
  figures.folder_bytes = folder_bytes(options.folder);
  return figures;
}

}  // namespace vigil::bench
