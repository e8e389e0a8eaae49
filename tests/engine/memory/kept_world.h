// A memory over a store, of which some is as old as its camera keeps.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/memory.h"
#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory::testing {

/// Times are minutes from noon on.
struct KeptWorld : ::testing::Test {
  static inline const history::CameraId kHall{"city", "hall"};
  static constexpr std::size_t kPage = 1000;
  static constexpr std::int64_t kMinute = 60 * kSecond;

  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> inner = history::make_memory_history_store();
  FailingStore store{*inner};
  Memory::Options options;
  std::unique_ptr<Memory> remembered;

  KeptWorld() {
    store.fails = false;
    options.host_bytes = std::uint64_t{1} << 20U;
    options.host = {{kv::Form::fp8, std::chrono::hours(200)}};
    options.disk = {{kv::Form::int4, std::chrono::hours(200)}};
    begin();
  }
  /// A new process.
  void begin(bool with_store = true) {
    remembered = std::make_unique<Memory>(with_store ? &store : nullptr, options);
  }
  static std::int64_t at(double minute) { return kNoon + static_cast<std::int64_t>(minute * 60e9); }
  static history::WallRange between(double from, double to) { return {at(from), at(to) - 1}; }
  /// A page of ten patches of a minute each.
  Memory::Taken see(double from) {
    FreshPage page;
    page.camera = kHall;
    page.info = made_page(0, from * 60, 60);
    const history::PatchInfo patch = page.info.patches.front();
    for (int i = 1; i < 10; ++i) {
      page.info.patches.push_back(patch);
      page.info.patches.back().number += i;
      page.info.patches.back().place += 2 * i;
      page.info.patches.back().seconds += 60 * i;
      page.info.patches.back().wall = between(from + i, from + i + 1);
    }
    page.info.tokens = 40;
    for (const kv::Form form : remembered->wanted()) page.forms.push_back(made_tokens(memory, form, kPage));
    return remembered->take(std::move(page), {});
  }
  void write() {
    remembered->queue()->flush(std::nullopt);
    while (const auto written = remembered->queue()->write_next({})) remembered->wrote(*written);
  }
  /// As whoever writes does it; what was said to go.
  Memory::Aged age(double minute) {
    Memory::Aged aged = remembered->age(at(minute));
    store.retire(aged.expiries);
    store.note(aged.notes);
    return aged;
  }
  /// From which minute to which of what is found, page by page.
  std::vector<std::string> found(double now, const history::WallRange& wall) {
    std::vector<std::string> lines;
    for (const Memory::Found& page : remembered->find(kHall, wall, at(now))) {
      const auto minute = [](std::int64_t time) { return std::to_string((time - kNoon) / kMinute); };
      lines.push_back(minute(page.info.patches.at(page.first_kept).wall.from) + " to " +
                      minute(page.info.patches.back().wall.to + 1));
    }
    return lines;
  }
  std::vector<KnownGap> gaps(double now, double from, double to) const {
    return remembered->coverage(kHall, between(from, to), at(now)).gaps;
  }
};

}  // namespace vigil::memory::testing
