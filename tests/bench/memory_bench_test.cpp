// What `vigil bench memory` measures: made-up pages, a short day of them on a real disk, and the figures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/durable.h"
#include "bench/demotion.h"
#include "bench/disk_rates.h"
#include "bench/made_pages.h"
#include "bench/memory_day.h"
#include "bench/memory_report.h"
#include "bench/past_asker.h"
#include "bench/store_rates.h"
#include "config/settings.h"
#include "tests/temporary_folder.h"

namespace vigil::bench {
namespace {

using kv::Form;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;

/// A second later whenever somebody looks.
class SteppingClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::seconds(++looks_)); }
  WallTime wall() const override { return {}; }

 private:
  mutable std::atomic<int> looks_{0};
};

std::shared_ptr<const model::ModelFolder> demo() {
  return model::ModelFolder::open(std::string(VIGIL_SOURCE_DIR) + "/models/demo");
}

MadeShape small_shape() {
  MadeShape shape;
  shape.layout = {.layers = 2, .kv_heads = 1, .head_dim = 16};
  shape.hidden = 32;
  return shape;
}

TEST(DiskRates, PlainFilesAreWhatTheyShouldBeAndEachValueIsReadOnce) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  const DiskLayout layout{folder.path(), 8192, 65536, 3};
  const auto value = random_bytes(layout.value_bytes);
  // A second each.
  EXPECT_EQ(write_plain(layout, value, clock), 3.0 * 65536);
  EXPECT_EQ(read_plain(layout, 2, clock), 3.0 * 65536);
  EXPECT_EQ(folder_bytes(folder.path()), 3U * 65536U);
  std::ifstream file(folder.path() / "2.plain", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(bytes.size(), 65536U);
  for (std::size_t at = 0; at < bytes.size(); at += value.size())
    EXPECT_EQ(bytes.compare(at, value.size(), reinterpret_cast<const char*>(value.data()), value.size()), 0);
  std::vector<std::size_t> order = order_of(layout, 1);
  EXPECT_EQ(order, order_of(layout, 1));
  EXPECT_NE(order, order_of(layout, 2));
  std::sort(order.begin(), order.end());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  drop_cache(folder.path());
  EXPECT_EQ(read_plain(layout, 1, clock), 3.0 * 65536) << "it is still there";
}

TEST(DiskRates, AFileThatIsCutShortOrMissingIsToldByItsName) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  const DiskLayout layout{folder.path(), 8192, 65536, 2};
  write_plain(layout, random_bytes(layout.value_bytes), clock);
  std::filesystem::resize_file(folder.path() / "1.plain", 20000);
  try {
    read_plain(layout, 2, clock);
    FAIL() << "nobody missed the rest of the file";
  } catch (const base::FileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("1.plain"));
  }
  std::filesystem::remove(folder.path() / "0.plain");
  EXPECT_THROW(read_plain(layout, 2, clock), base::FileError);
}

TEST(DiskRates, TheSystemTellsWhatWasWritten) {
  const TemporaryFolder folder;
  const auto told = [&](const std::string& text) {
    std::ofstream(folder.path() / "io") << text;
    return written_bytes(folder.path() / "io");
  };
  const WrittenBytes bytes =
      told("rchar: 1\nwchar: 700\nread_bytes: 2\nwrite_bytes: 500\ncancelled_write_bytes: 40\n");
  EXPECT_EQ(bytes.calls, 700U);
  EXPECT_EQ(bytes.storage, 460U) << "without what never came to the disk";
  EXPECT_EQ(told("wchar: 700\nwrite_bytes: 5\ncancelled_write_bytes: 40\n").storage, 0U);
  EXPECT_THROW(told("wchar: 700\n"), std::runtime_error);
  EXPECT_THROW(written_bytes(folder.path() / "none"), std::runtime_error);
}

TEST(StoreRates, TakeTurnsAndLeaveNothing) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  StoreRatesOptions options;
  options.folder = folder.path();
  options.value_bytes = std::size_t{4} << 20U;
  options.files = 1;
  options.rounds = 2;
  options.threads = {1};
  const Figures figures = store_rates(options, clock);
  std::vector<std::string> names;
  for (const Figure& figure : figures.all()) {
    names.push_back(figure.name);
    EXPECT_THAT(figure.values, SizeIs(2));
    EXPECT_THAT(figure.values, Each(double{64 << 20})) << figure.name << ": in a second";
  }
  EXPECT_THAT(names, UnorderedElementsAre("write_store", "write_plain", "write_sealed", "read_store_1",
                                          "read_plain_1", "read_sealed_1"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(StoreRates, AValueThatIsDamagedEndsThem) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  const DiskLayout layout{folder.path(), std::size_t{1} << 20U, std::size_t{2} << 20U, 1};
  write_store(layout, random_bytes(layout.value_bytes), std::nullopt, clock);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "store" / "parts")) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500'000);
    file << "no longer what it was";
  }
  EXPECT_THROW(read_store(layout, 1, std::nullopt, clock), std::runtime_error);
}

TEST(MadePages, ACameraLeavesWholePagesOfWhatItKeeps) {
  const MadeShape shape = small_shape();
  const MadeBytes bytes(shape);
  const std::vector<Form> forms{Form::int4, Form::embeddings, Form::sketch};
  MadeCamera camera({"demo", "gate"}, shape, 5), same({"demo", "gate"}, shape, 5);
  const std::int64_t begin = 480'000 * kHour + 1800 * kSecond;
  std::int64_t next = 0, tokens = 0, standing_out = 0, cells = 0;
  std::set<std::int64_t> hours;
  for (std::int64_t second = 0; second < 3600; ++second) {
    const auto page = camera.see(begin + second * kSecond, forms, bytes);
    const auto again = same.see(begin + second * kSecond, forms, bytes);
    ASSERT_EQ(page.has_value(), again.has_value());
    if (!page) continue;
    EXPECT_EQ(page->info, again->info) << "a seed says all of it";
    ASSERT_TRUE(page->sketch);
    std::uint32_t of_page = 0, of_sketch = 0;
    for (std::size_t i = 0; i < page->info.patches.size(); ++i) {
      const history::PatchInfo& patch = page->info.patches[i];
      EXPECT_EQ(patch.number, next);
      EXPECT_EQ(patch.wall, (history::WallRange{begin + next * kSecond, begin + (next + 1) * kSecond - 1}));
      ++next;
      EXPECT_EQ(patch.wall.from / kHour, page->info.patches.front().wall.from / kHour) << "of one hour";
      EXPECT_TRUE(patch.kept.has(page->sketch->patches[i].kept));
      of_page += static_cast<std::uint32_t>(patch.kept.count());
      of_sketch += static_cast<std::uint32_t>(page->sketch->patches[i].kept.count());
      cells += patch.kept.cells();
    }
    hours.insert(page->info.patches.front().wall.from / kHour);
    EXPECT_EQ(page->info.tokens, of_page);
    EXPECT_EQ(page->sketch->tokens, of_sketch);
    history::PageInfo numbered = page->info;
    numbered.number = 1;
    EXPECT_EQ(history::fault_of(numbered), std::nullopt);
    tokens += of_page;
    standing_out += of_sketch;
    ASSERT_EQ(page->forms.size(), 3U);
    for (const run::MovedTokens& moved : page->forms) {
      const auto count = static_cast<std::int64_t>(moved.form == Form::sketch ? of_sketch : of_page);
      EXPECT_EQ(moved.tokens, count);
      EXPECT_EQ(static_cast<std::int64_t>(moved.size),
                count == 0 ? 0 : kv::form_bytes(moved.form, shape.layout, shape.hidden, count));
    }
  }
  EXPECT_THAT(hours, SizeIs(2));
  EXPECT_GT(next, 3500);
  EXPECT_NEAR(static_cast<double>(tokens) / static_cast<double>(cells), 0.28, 0.01);
  EXPECT_NEAR(static_cast<double>(standing_out) / static_cast<double>(tokens), 0.02, 0.005);
}

TEST(MadePages, AQuietCameraLeavesPagesOfManyPatchesAndEmptySketches) {
  MadeShape shape = small_shape();
  shape.kept = 0.01;
  shape.standing_out = 0;
  const MadeBytes bytes(shape);
  MadeCamera camera({"demo", "gate"}, shape, 1);
  const std::vector<Form> forms{Form::sketch};
  std::int64_t second = 0;
  std::optional<memory::FreshPage> page;
  while (!page) page = camera.see(480'000 * kHour + second++ * kSecond, forms, bytes);
  EXPECT_EQ(page->info.patches.size(), memory::PageMaker::Options().patches);
  EXPECT_EQ(page->forms.front().size, 0U);
  EXPECT_EQ(page->forms.front().bytes, nullptr);
}

TEST(MadePages, TheirBytesAreNumbersAndNoMoreThanAPageHas) {
  const MadeShape shape = small_shape();
  const MadeBytes bytes(shape);
  const run::MovedTokens page = bytes.of(Form::bf16, 256);
  for (std::size_t i = 0; i < page.size; ++i)
    ASSERT_LT(std::to_integer<int>(page.bytes[static_cast<std::ptrdiff_t>(i)]), 0x40);
  EXPECT_THROW(bytes.of(Form::int4, 10'000), std::invalid_argument);
  const MadeShape of_demo = MadeShape::of(demo()->config, 224, 448);
  EXPECT_EQ(of_demo.rows, 16);
  EXPECT_EQ(of_demo.columns, 8);
  EXPECT_EQ(of_demo.hidden, 320);
  EXPECT_EQ(of_demo.layout.layers, 6);
  EXPECT_EQ(of_demo.layout.head_dim, 64);
}

MemoryDayOptions short_day(const std::filesystem::path& folder) {
  MemoryDayOptions options;
  options.folder = folder;
  options.shape = MadeShape::of(demo()->config, 224, 224);
  options.layers = 6;
  options.cameras = 2;
  options.hours = 1;
  options.more_hours = 2;
  options.erasures = 2;
  return options;
}

TEST(MemoryDay, WhatIsTooOldAndErasedGoesAndTheRestIsThere) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  const MemoryDayOptions options = short_day(folder.path() / "day");
  const MemoryDayFigures day = simulate_day(options, clock);
  EXPECT_EQ(day.seconds, 1);
  EXPECT_EQ(day.erasures, 2U);
  EXPECT_GT(day.erased_pages, 20U);
  EXPECT_GT(day.retired.pages, 100U);
  ASSERT_THAT(day.kept, SizeIs(3));
  // Two cameras for three hours, 0.28 of 64 tokens a second; 432 bytes of INT4 and 640 of embeddings each.
  const double tokens = 2 * 3 * 3600 * 64 * 0.28;
  EXPECT_THAT(static_cast<double>(day.kept.at(Form::embeddings).bytes),
              DoubleNear(640 * tokens, 0.06 * 640 * tokens));
  EXPECT_THAT(static_cast<double>(day.kept.at(Form::int4).bytes),
              DoubleNear(440 * tokens, 0.08 * 440 * tokens));
  EXPECT_LT(day.kept.at(Form::sketch).bytes, day.kept.at(Form::int4).bytes / 10);
  EXPECT_GE(day.written.calls, day.kept_bytes());
  EXPECT_LT(static_cast<double>(day.written.calls), 1.2 * static_cast<double>(day.kept_bytes()));
  EXPECT_GT(day.folder_bytes, day.bytes_there);
  EXPECT_GT(day.index_bytes, 0U);
  const auto store = history::open_history_store(options.folder);
  const history::VerifyReport verified = store->verify(std::nullopt, 1);
  EXPECT_EQ(verified.damaged, 0U);
  EXPECT_EQ(verified.whole, day.form_pages_there);
  EXPECT_EQ(day.form_pages_there, 3 * day.pages_there);
  std::uint64_t there = 0;
  for (const history::CameraSummary& camera : store->list()) {
    there += camera.bytes;
    EXPECT_GE(camera.wall.from, day.end - 2 * kHour) << "what is older than an hour goes as whole hours";
  }
  EXPECT_EQ(there, day.bytes_there);
  for (const history::Erasure& erasure : store->erasures()) {
    EXPECT_TRUE(erasure.finished);
    EXPECT_THAT(store->pages(erasure.camera, erasure.wall), SizeIs(0));
  }
}

TEST(MemoryDay, KeepsTheFormsOfTheConfigurationForAShareOfItsTime) {
  const auto memory = day_memory(MemoryDayOptions::of_share(1));
  const config::FormSettings demo = config::MemorySettings().disk.forms;
  ASSERT_THAT(memory.disk, SizeIs(3));
  EXPECT_EQ(memory.disk.at(Form::int4), demo.int4);
  EXPECT_EQ(memory.disk.at(Form::embeddings), demo.embeddings);
  EXPECT_GT(demo.sketch, config::StreamSettings().keep) << "which bounds them";
  EXPECT_EQ(memory.disk.at(Form::sketch), config::StreamSettings().keep);
  EXPECT_EQ(MemoryDayOptions::of_share(1).more_hours, 6);
  EXPECT_EQ(MemoryDayOptions::of_share(0.125).hours, 3);
  EXPECT_EQ(MemoryDayOptions::of_share(1e-9).hours, 1);
  EXPECT_EQ(MemoryDayOptions::of_share(1e-9).more_hours, 1);
}

TEST(MemoryDay, AFolderThatIsNoneIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "day") << "a file";
  const SteppingClock clock;
  EXPECT_ANY_THROW(simulate_day(short_day(folder.path() / "day"), clock));
}

/// The demo model on the processor.
TEST(PastAsker, AnswersFromTheDiskAndComputesTheSameWindowsAgain) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  MemoryDayOptions options = short_day(folder.path() / "day");
  options.cameras = 1;
  options.more_hours = 1;
  options.erasures = 0;
  const MemoryDayFigures day = simulate_day(options, clock);
  const auto store = history::open_history_store(options.folder);
  memory::Memory memory(store.get(), day_memory(options));
  memory.watch(day_camera(0), std::chrono::hours(1));
  engine::Engine engine = engine::make_engine(demo());
  PastAsker asker(engine, memory, *store, clock, {});
  const memory::PastAsking asking{day_camera(0), {day.end - 200 * kSecond, day.end}, "Is there a car?", ""};
  const PastAsker::Asked asked = asker.ask(asking);
  EXPECT_GT(asked.seconds, 0);
  // Windows of 40 s begin every 8 s, by their sketches, then four whole.
  EXPECT_GE(asked.windows.size(), 20U);
  EXPECT_LE(asked.windows.size(), 30U);
  EXPECT_EQ(asked.answer.found.failed, 0U);
  EXPECT_EQ(asked.answer.found.windows.size(), 4U);
  EXPECT_GT(asked.answer.coverage.share, 0.9);
  EXPECT_EQ(asked.answer.host_bytes, 0U);
  EXPECT_GT(asked.answer.disk_bytes, 200'000U);
  EXPECT_GT(asker.compute(asked.windows), 0);
  // It is asked again as if nothing had been.
  const PastAsker::Asked again = asker.ask(asking);
  EXPECT_EQ(again.windows.size(), asked.windows.size());
  // Which windows share a pass is the readers' doing, and products of other sizes add up in another order.
  EXPECT_NEAR(again.answer.found.log_odds, asked.answer.found.log_odds, 1e-4);
  // Of a time of which nothing is there, nothing is computed.
  const PastAsker::Asked nothing = asker.ask({day_camera(0), {kHour, 2 * kHour}, "Is there a car?", ""});
  EXPECT_THAT(nothing.windows, SizeIs(0));
  EXPECT_EQ(nothing.answer.coverage.share, 0);
  EXPECT_EQ(asker.compute({}), 1);
}

PipelineFigures turn_of(std::vector<double> latencies) {
  PipelineFigures figures;
  for (const double latency : latencies) figures.windows.emplace_back().latency = latency;
  return figures;
}

TEST(Demotion, TurnsAreTurnedAroundAndTakenTogether) {
  std::vector<bool> turns;
  const auto measure = [&](bool remembers, double settle, double seconds) {
    EXPECT_EQ(settle, 3);
    EXPECT_EQ(seconds, 5);
    turns.push_back(remembers);
    PipelineFigures figures = turn_of(std::vector<double>(20, remembers ? 2.0 : 1.0));
    figures.windows.back().latency = static_cast<double>(10 * turns.size());
    figures.windows[18].latency = static_cast<double>(turns.size());
    figures.lost.windows["overtaken"] = 1;
    return figures;
  };
  const DemotionFigures figures = measure_demotion({.pairs = 3, .seconds = 5, .settle = 3}, measure);
  EXPECT_THAT(turns, ElementsAre(false, true, true, false, false, true));
  EXPECT_THAT(figures.with_p95, ElementsAre(2, 3, 6));
  EXPECT_THAT(figures.without_p95, ElementsAre(1, 4, 5));
  EXPECT_THAT(figures.with, SizeIs(60));
  EXPECT_EQ(figures.p95_with(), 6);
  EXPECT_EQ(figures.p95_without(), 5);
  EXPECT_EQ(figures.windows_lost, 6);
}

TEST(Demotion, ATurnWithoutWindowsIsNoFigure) {
  EXPECT_THROW(measure_demotion({}, [](bool, double, double) { return turn_of({}); }), std::runtime_error);
}

TEST(Demotion, SketchesAreCountedBesideKeysOfTheSamePages) {
  const TemporaryFolder folder;
  const SteppingClock clock;
  MemoryDayOptions options = short_day(folder.path() / "day");
  options.erasures = 0;
  const MemoryDayFigures day = simulate_day(options, clock);
  const auto store = history::open_history_store(options.folder);
  const Remembered all = remembered_in(*store);
  EXPECT_EQ(all.pages, day.pages_there);
  EXPECT_NEAR(static_cast<double>(all.tokens) / static_cast<double>(all.cells), 0.28, 0.02);
  EXPECT_NEAR(static_cast<double>(all.standing_out) / static_cast<double>(all.tokens), 0.02, 0.005);
  EXPECT_LT(all.sketch_bytes + all.int4_bytes, day.bytes_there);
  EXPECT_GT(all.sketch_bytes, 0U);
  const auto empty = history::make_memory_history_store();
  EXPECT_EQ(remembered_in(*empty).pages, 0U);
}

MemoryFigure rate() {
  MemoryFigure figure{.part = "store", .work = "write 4 MiB", .value = 0.9, .unit = "GB/s"};
  figure.beside = {{"plain", 2}, {"fio", 1}};
  figure.floor = "fio";
  figure.least = 0.8;
  return figure;
}

TEST(MemoryReport, AFigureReachesWhatItIsTo) {
  MemoryFigure figure = rate();
  EXPECT_EQ(figure.ratio(), 0.9);
  EXPECT_EQ(figure.is_reached(), true);
  figure.value = 0.7;
  EXPECT_EQ(figure.is_reached(), false);
  figure.paired = 0.85;
  EXPECT_EQ(figure.is_reached(), true);
  figure.least.reset();
  EXPECT_EQ(figure.is_reached(), std::nullopt);
  figure.most = 0.8;
  EXPECT_EQ(figure.is_reached(), false);
  MemoryFigure alone{
      .part = "restart", .work = "until its first answer", .value = 1.9, .unit = "s", .most = 2};
  EXPECT_EQ(alone.ratio(), std::nullopt);
  EXPECT_EQ(alone.is_reached(), true);
  alone.value = 2.1;
  EXPECT_EQ(alone.is_reached(), false);
  alone.floor = "what is not there";
  EXPECT_EQ(alone.is_reached(), std::nullopt);
}

TEST(MemoryReport, IsATableForPeople) {
  std::ostringstream out;
  MemoryReport report({{"bench", "memory"}}, /*is_json=*/false, out);
  report.missing("store", "fio is not in PATH");
  report.add(rate());
  MemoryFigure slow{
      .part = "restart", .work = "until its first answer", .value = 2.5, .unit = "s", .most = 2};
  slow.remark = "74 windows";
  report.add(slow);
  EXPECT_EQ(out.str(),
            "store\n"
            "  fio is not in PATH\n"
            "  write 4 MiB                                 0.9      GB/s    plain 2  fio 1  0.9 of fio  (to "
            "reach: 0.8, "
            "reached)\n"
            "\nrestart\n"
            "  until its first answer                      2.5      s       (to reach: 2, not reached)  74 "
            "windows\n");
}

TEST(MemoryReport, IsALineAFigureForPrograms) {
  std::ostringstream out;
  MemoryReport report({{"bench", "memory"}, {"commit", "abc"}}, /*is_json=*/true, out);
  MemoryFigure figure = rate();
  figure.about = {{"files", 8}};
  report.add(figure);
  report.missing("store", "fio is not in PATH");
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line), (nlohmann::json{{"bench", "memory"},
                                                         {"commit", "abc"},
                                                         {"part", "store"},
                                                         {"figure", "write 4 MiB"},
                                                         {"value", 0.9},
                                                         {"unit", "GB/s"},
                                                         {"beside", {{"plain", 2.0}, {"fio", 1.0}}},
                                                         {"floor", "fio"},
                                                         {"ratio", 0.9},
                                                         {"to_reach_at_least", 0.8},
                                                         {"reached", true},
                                                         {"files", 8}}));
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line).at("missing"), "fio is not in PATH");
}

}  // namespace
}  // namespace vigil::bench
