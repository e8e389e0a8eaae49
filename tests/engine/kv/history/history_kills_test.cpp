// A process that is killed at any of its calls: each page is whole or absent, and what was erased stays so.
#include <atomic>
#include <new>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/faulty_disk.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using testing::disk;
using testing::file_bytes;
using testing::files_in;
using testing::is_whole;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kSecond;
using testing::kYard;
using testing::missing;
using testing::part_of;
using testing::value_of;
namespace fs = std::filesystem;

constexpr std::int64_t kBegin = kFirstHour * kHour;

// From one call to the next one that is tried, and how many kills there are then at least.
#ifdef VIGIL_ALL_KILLS
constexpr long kStride = 2;
constexpr int kLeastKills = 100;
#else
constexpr long kStride = 23;
constexpr int kLeastKills = 8;
#endif

/// What a process that is killed has been told.
struct Told {
  std::atomic<int> steps{0};
};

/// When nothing was kept.
constexpr WallRange kLost{kBegin + 10 * kHour, kBegin + 10 * kHour + kSecond};

/// Puts, erases, retires and notes; `step` after each.
template <class F>
void work(HistoryStore& store, F step) {
  store.put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  step();  // 1
  store.put(part_of(kYard, kFirstHour, 0, 1, 6).part);
  step();  // 2
  store.put(part_of(kGate, kFirstHour + 1, 0, 7, 6).part);
  step();  // 3
  store.erase(kGate, {kBegin + 25 * kSecond, kBegin + 35 * kSecond});
  step();  // 4
  store.finish_erasures();
  step();  // 5
  const Expiry over[] = {{kYard, kFirstHour + 1}};
  store.retire(over);
  step();  // 6
  store.put(part_of(kGate, kFirstHour + 1, 60, 13, 6).part);
  step();  // 7
  const Note notes[] = {{kGate, kLost, 2}, {kYard, kLost, 3}};
  store.note(notes);
  step();  // 8
  store.erase(kGate, kLost);
  step();  // 9
}

void expect_consistent(const HistoryStore& store, int steps) {
  EXPECT_EQ(store.verify(std::nullopt, 1).damaged, 0U);
  const auto put = [&](const CameraId& camera, std::uint64_t first, int step, auto erased) {
    std::size_t there = 0;
    for (std::uint64_t page = first; page < first + 6; ++page) {
      const bool whole = is_whole(store, camera, page, 0) && is_whole(store, camera, page, 2);
      EXPECT_EQ(whole, missing(store, camera, page) == Missing::no) << page;
      EXPECT_FALSE(whole && erased(page)) << page << " was erased";
      // An erasure that was under way may hold.
      const bool may_be = steps == 3 && camera == kGate && (page == 3 || page == 4);
      there += whole || erased(page) || may_be ? 1U : 0U;
    }
    EXPECT_TRUE(there == 6 || (there <= 2 && steps < step)) << camera.camera << ' ' << first << ": " << there;
  };
  const std::size_t gate = store.notes(kGate, kLost).size(), yard = store.notes(kYard, kLost).size();
  // They were noted together, and one of them was erased.
  EXPECT_TRUE(yard == (steps >= 8 ? 1U : 0U) || (steps == 7 && yard == 1)) << steps;
  EXPECT_TRUE(gate == (steps >= 9 ? 0U : yard) || (steps == 8 && gate == 0)) << steps;
  const auto never = [](std::uint64_t) { return false; };
  put(kGate, 1, 1, [&](std::uint64_t page) { return steps >= 4 && (page == 3 || page == 4); });
  put(kGate, 7, 3, never);
  put(kGate, 13, 7, never);
  if (steps < 5) {
    put(kYard, 1, 2, never);
  } else if (steps >= 6) {
    EXPECT_EQ(missing(store, kYard, 1), Missing::absent);
  }
}

/// Whether all of it holds. In a process of its own, as the other one: threads of RocksDB do not survive a
/// fork, and it thinks that they do.
template <class F>
bool in_a_process(F work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class HistoryKills : public ::testing::TestWithParam<bool> {};

TEST_P(HistoryKills, EachPageIsWholeOrAbsent) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "history";
  HistoryOptions options;
  if (GetParam()) options.master = SecretKey::random();
  void* const shared =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const told = new (shared) Told;
  const auto bytes = value_of(kGate, 3, 0, 3000);
  const std::string trace(reinterpret_cast<const char*>(bytes.data()), 16);
  int kills = 0;
  for (long call = 0;; call += kStride) {
    SCOPED_TRACE("killed at call " + std::to_string(call));
    fs::remove_all(path);
    told->steps = 0;
    ASSERT_TRUE(testing::run_and_kill([&] {
      disk().folder = path;
      disk().countdown = call;
      const auto store = open_history_store(path, options);
      work(*store, [&] { ++told->steps; });
      ++told->steps;
    }));
    if (told->steps == 10) break;
    ++kills;
    ASSERT_TRUE(in_a_process([&] {
      const auto store = open_history_store(path, options);
      expect_consistent(*store, told->steps);
      for (const fs::path& file : files_in(path)) {
        if (told->steps >= 4) {
          EXPECT_EQ(file_bytes(file).find(trace), std::string::npos) << file;
        }
      }
      EXPECT_EQ(store->put(part_of(kYard, kFirstHour + 2, 0, 100, 2).part).pages, 2U);
    }));
  }
  EXPECT_GE(kills, kLeastKills);
  ::munmap(shared, sizeof(Told));
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, HistoryKills, ::testing::Bool());

}  // namespace
}  // namespace vigil::history
