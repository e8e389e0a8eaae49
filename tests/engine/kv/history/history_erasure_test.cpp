// What an erasure leaves behind: nothing of the pages in any file, wherever it was stopped.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kv/history/history_store.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using testing::file_bytes;
using testing::files_in;
using testing::is_whole;
using ::testing::IsEmpty;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kSecond;
using testing::missing;
using testing::part_of;
using ::testing::SizeIs;
using testing::value_of;
namespace fs = std::filesystem;

constexpr std::int64_t kBegin = kFirstHour * kHour;

class HistoryErasure : public ::testing::TestWithParam<bool> {
 protected:
  HistoryErasure() {
    if (GetParam()) options_.master = SecretKey::random();
  }
  std::unique_ptr<HistoryStore> open() const {
    return open_history_store(folder_.path() / "history", options_);
  }

  /// A part whose patches have numbers that nothing else has.
  static testing::OwnedPart striking(std::uint32_t hour, int second, std::uint64_t first,
                                     std::uint64_t count) {
    auto owned = part_of(kGate, hour, second, first, count);
    for (GivenPage& page : owned.part.pages)
      for (PatchInfo& patch : page.info.patches)
        patch.number += static_cast<std::int64_t>(page.info.number << 40U);
    return owned;
  }

  /// Where one of these is found.
  std::vector<std::string> found(const std::vector<std::string>& what) const {
    std::vector<std::string> result;
    for (const fs::path& file : files_in(folder_.path() / "history")) {
      const std::string bytes = file_bytes(file);
      for (std::size_t i = 0; i < what.size(); ++i)
        if (bytes.find(what[i]) != std::string::npos)
          result.push_back(file.filename().string() + " has " + std::to_string(i));
    }
    return result;
  }

  /// Of a page: stretches of its bytes, its description, its positions and its wall time.
  static std::vector<std::string> traces_of(const GivenPage& page) {
    std::vector<std::string> traces;
    for (const GivenValue& value : page.values)
      for (const std::size_t at : {std::size_t{0}, value.bytes.size() / 2, value.bytes.size() - 16})
        traces.emplace_back(reinterpret_cast<const char*>(value.bytes.data()) + at, 16);
    traces.push_back(encode_page_info(page.info));
    const auto number = [&](std::int64_t of) {
      traces.emplace_back(reinterpret_cast<const char*>(&of), sizeof of);
    };
    number(page.info.patches.front().number);
    number(wall_of(page.info).from);
    number(wall_of(page.info).to);
    return traces;
  }

  HistoryOptions options_;
  TemporaryFolder folder_;
};

TEST_P(HistoryErasure, LeavesNothingOfThePagesInAnyFile) {
  const auto first = striking(kFirstHour, 0, 1, 6);
  const auto second = striking(kFirstHour, 60, 7, 6);
  const auto third = striking(kFirstHour + 1, 0, 13, 6);
  auto store = open();
  store->put(first.part);
  store->put(second.part);
  store.reset();
  // Some of it is in a table of the index, some in its log.
  store = open();
  store->put(third.part);
  const WallRange noted{kBegin + 40 * kSecond + 7, kBegin + 50 * kSecond + 7};
  const Note note{kGate, noted, 2};
  store->note({&note, 1});
  std::vector<std::string> traces;
  for (const std::int64_t of : {noted.from, noted.to})
    traces.emplace_back(reinterpret_cast<const char*>(&of), sizeof of);
  // Pages 3 to 12.
  for (std::size_t i = 2; i < 6; ++i)
    for (const std::string& each : traces_of(first.part.pages[i])) traces.push_back(each);
  for (const GivenPage& page : second.part.pages)
    for (const std::string& each : traces_of(page)) traces.push_back(each);
  if (GetParam()) {
    EXPECT_THAT(found(traces), IsEmpty()) << "nothing is written that is not encrypted";
  } else {
    EXPECT_THAT(found(traces), SizeIs(::testing::Ge(traces.size()))) << "or this test would see nothing";
  }
  const std::size_t files = files_in(folder_.path() / "history" / "parts").size();
  store->erase(kGate, {kBegin + 25 * kSecond, kBegin + 130 * kSecond});
  EXPECT_EQ(files_in(folder_.path() / "history" / "parts").size(), files);
  EXPECT_THAT(store->notes(kGate, {INT64_MIN, INT64_MAX}), IsEmpty());
  EXPECT_EQ(store->finish_erasures(), (Removed{10, 60000}));
  EXPECT_THAT(found(traces), IsEmpty());
  for (int start = 0; start < 2; ++start) {
    for (const std::uint64_t page : {1U, 2U, 13U, 18U}) EXPECT_TRUE(is_whole(*store, kGate, page, 2)) << page;
    for (std::uint64_t page = 3; page <= 12; ++page) EXPECT_EQ(missing(*store, kGate, page), Missing::absent);
    store.reset();
    store = open();
  }
  EXPECT_THAT(found(traces), IsEmpty());
}

TEST_P(HistoryErasure, OfAWholeHourNotEvenItsKeyIsLeft) {
  auto store = open();
  store->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  store->put(part_of(kGate, kFirstHour + 1, 0, 7, 6).part);
  // Its table, and a manifest that names its first key and its last.
  store.reset();
  store = open();
  const std::vector<std::string> keys = {encode(HourKey{kGate, kFirstHour})};
  EXPECT_THAT(found(keys), ::testing::Not(IsEmpty()));
  const std::uint64_t id = store->erase(kGate, {kBegin, kBegin + kHour - 1});
  store->finish_erasures();
  EXPECT_THAT(found(keys), IsEmpty());
  EXPECT_THAT(found({encode(HourKey{kGate, kFirstHour + 1})}), ::testing::Not(IsEmpty()));
  // Nor, at the end, that anything was erased.
  const std::int64_t last = kBegin + kHour - 1;
  const std::vector<std::string> times = {std::string(reinterpret_cast<const char*>(&last), sizeof last)};
  EXPECT_THAT(found(times), ::testing::Not(IsEmpty()));
  store->forget_erasure(id, std::nullopt);
  EXPECT_THAT(found(times), IsEmpty());
}

// With what is in a backup of the disk from before, nobody reads what stayed by the old key, or the other
// way.
TEST_P(HistoryErasure, KeysOfAnHourGoWithTheFirstErasureInIt) {
  if (!GetParam()) GTEST_SKIP() << "there are none";
  auto store = open();
  store->put(part_of(kGate, kFirstHour, 0, 1, 2).part);
  store->put(part_of(kGate, kFirstHour, 20, 3, 2).part);
  const auto before = files_in(folder_.path() / "history" / "parts");
  const auto wrapped = [&] {
    // The trailer has the wrapped key behind the part's key, and the wrapped key ends before the entry.
    const auto file = files_in(folder_.path() / "history" / "parts").at(0);
    const std::string bytes = file_bytes(file);
    const std::size_t key = bytes.rfind(encode(HourKey{kGate, kFirstHour}));
    return bytes.substr(key + encode(PartKey{{kGate, kFirstHour}, 0}).size(), kWrappedBytes);
  };
  const std::string first = wrapped();
  EXPECT_THAT(found({first}), SizeIs(::testing::Ge(3))) << "both parts and the index";
  store->erase(kGate, {kBegin, kBegin + kSecond});
  store->finish_erasures();
  EXPECT_THAT(found({first}), IsEmpty());
  const std::string second = wrapped();
  for (const fs::path& file : before) EXPECT_FALSE(fs::exists(file)) << "also the part that was not touched";
  for (const std::uint64_t page : {2U, 3U, 4U}) EXPECT_TRUE(is_whole(*store, kGate, page, 0));
  // The next part of the hour goes on by it.
  store->put(part_of(kGate, kFirstHour, 40, 5, 1).part);
  EXPECT_THAT(found({second}), SizeIs(::testing::Ge(4)));
  // The key stays as long as another form of the hour does.
  const Expiry form[] = {{kGate, kFirstHour + 1, 1}};
  EXPECT_EQ(store->retire(form).pages, 1U);
  EXPECT_THAT(found({second}), ::testing::Contains(::testing::Not(::testing::HasSubstr(".part"))))
      << "the index has it";
  const Expiry over[] = {{kGate, kFirstHour + 1}};
  store->retire(over);
  EXPECT_THAT(found({second}), IsEmpty()) << "its hour is over";
}

TEST_P(HistoryErasure, IsCompletedByTheNextStart) {
  const auto given = striking(kFirstHour, 0, 1, 6);
  ASSERT_TRUE(testing::run_and_kill([&] {
    const auto store = open();
    store->put(given.part);
    store->erase(kGate, {kBegin + 25 * kSecond, kBegin + 35 * kSecond});
  }));
  const auto store = open();
  ASSERT_THAT(store->erasures(), SizeIs(1));
  EXPECT_TRUE(store->erasures()[0].finished);
  std::vector<std::string> traces = traces_of(given.part.pages[2]);
  for (const std::string& each : traces_of(given.part.pages[3])) traces.push_back(each);
  EXPECT_THAT(found(traces), IsEmpty());
  EXPECT_TRUE(is_whole(*store, kGate, 2, 0));
  EXPECT_TRUE(is_whole(*store, kGate, 5, 0));
}

INSTANTIATE_TEST_SUITE_P(PlainAndSealed, HistoryErasure, ::testing::Bool());

}  // namespace
}  // namespace vigil::history
