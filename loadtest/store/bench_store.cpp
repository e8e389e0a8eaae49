// What a history writes and reads beside fio, plain files and tables of RocksDB, with the same bytes on the
// same disk; how long one of a day opens; and what is written beside what is kept. Variants take turns. JSON
// lines.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "engine/kv/history/history_store.h"
#include "loadtest/store/bench_tables.h"
#include "services/build_info.h"

namespace {

using namespace vigil;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::uint32_t kFirstHour = 495994;

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const char* bench, json figures) {
  utsname name{};
  ::uname(&name);
  figures["bench"] = bench;
  figures["machine"] = name.machine;
  figures["cores"] = std::thread::hardware_concurrency();
  figures["commit"] = services::kCommit;
  std::cout << figures.dump() << std::endl;
}

std::vector<std::byte> random_bytes(std::size_t bytes) {
  std::mt19937_64 random(1);
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    const std::uint64_t eight = random();
    std::memcpy(result.data() + at, &eight, 8);
  }
  return result;
}

/// Bytes that this process has given to the disk so far.
std::uint64_t written_bytes() {
  std::ifstream stream("/proc/self/io");
  std::string name;
  for (std::uint64_t value = 0; stream >> name >> value;)
    if (name == "wchar:") return value;
  return 0;
}

/// A page of `seconds` of a camera, with a patch a second of which a third of 12 x 21 tokens is kept.
history::GivenPage page_of(std::uint64_t number, std::int64_t from, int seconds,
                           std::span<const std::byte> value) {
  history::GivenPage page;
  page.info.number = number;
  page.info.form = 2;
  page.info.bytes = value.size();
  for (int i = 0; i < seconds; ++i) {
    history::PatchInfo patch;
    patch.number = static_cast<std::int64_t>(number) * seconds + i;
    patch.place = 2 * patch.number;
    patch.kept = base::GridMask::none(12, 21);
    for (std::int64_t cell = i % 3; cell < 252; cell += 3) patch.kept.add(cell);
    patch.wall = {from + i * kSecond, from + (i + 1) * kSecond - 1};
    patch.seconds = static_cast<double>(patch.number);
    page.info.tokens += static_cast<std::uint32_t>(patch.kept.count());
    page.info.patches.push_back(std::move(patch));
  }
  page.values.push_back({{0, 6}, value});
  return page;
}

const history::CameraId kCamera{"bench", "camera"};

double write_store(const bench::Layout& layout, std::span<const std::byte> value,
                   const history::HistoryOptions& options) {
  const auto store = history::open_history_store(layout.folder / "store", options);
  std::uint64_t number = 0;
  const double took = seconds([&] {
    for (std::size_t part = 0; part < layout.files; ++part) {
      history::GivenPart given{kCamera, kFirstHour, {}};
      for (std::size_t i = 0; i < layout.values(); ++i, ++number)
        given.pages.push_back(
            page_of(number + 1, kFirstHour * kHour + static_cast<std::int64_t>(number) * kSecond, 1, value));
      store->put(given);
    }
  });
  return layout.megabytes() / took;
}

double read_store(const bench::Layout& layout, int threads, const history::HistoryOptions& options) {
  const auto store = history::open_history_store(layout.folder / "store", options);
  const double took = seconds([&] {
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) {
      all.emplace_back([&, thread] {
        for (auto part = static_cast<std::size_t>(thread); part < layout.files;
             part += static_cast<std::size_t>(threads)) {
          std::vector<std::uint64_t> order(layout.values());
          for (std::size_t i = 0; i < order.size(); ++i) order[i] = part * layout.values() + i + 1;
          std::mt19937 random(static_cast<unsigned>(part));
          std::shuffle(order.begin(), order.end(), random);
          for (const std::uint64_t number : order) {
            const history::ValueName name{number, {0, 6}};
            if (!store->read(kCamera, {&name, 1}).at(0)) std::abort();
          }
        }
      });
    }
    for (std::thread& each : all) each.join();
  });
  return layout.megabytes() / took;
}

void measure_rates(const fs::path& folder, std::size_t value_bytes, std::size_t files, int rounds,
                   const std::vector<int>& threads) {
  const bench::Layout layout{folder, value_bytes, std::size_t{64} << 20U, files};
  const auto value = random_bytes(value_bytes);
  history::HistoryOptions sealed;
  sealed.master = history::SecretKey::random();
  std::map<std::string, std::vector<double>> rates;
  for (int round = 0; round < rounds; ++round) {
    rates["write_fio"].push_back(bench::write_fio(layout));
    rates["write_store"].push_back(write_store(layout, value, {}));
    rates["write_plain"].push_back(bench::write_plain(layout, value));
    rates["write_tables"].push_back(bench::write_tables(layout, value));
    for (const int count : threads) {
      const std::string by = "_" + std::to_string(count);
      rates["read_fio" + by].push_back(bench::read_fio(layout, count));
      rates["read_store" + by].push_back(read_store(layout, count, {}));
      rates["read_plain" + by].push_back(bench::read_plain(layout, count));
      rates["read_tables" + by].push_back(bench::read_tables(layout, count));
    }
    fs::remove_all(layout.folder / "store");
    rates["write_sealed"].push_back(write_store(layout, value, sealed));
    for (const int count : threads)
      rates["read_sealed_" + std::to_string(count)].push_back(read_store(layout, count, sealed));
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  }
  json figures = {{"value_bytes", value_bytes}, {"megabytes", layout.megabytes()}, {"rounds", rounds}};
  for (const auto& [name, values] : rates) {
    figures["mb_s"][name] = median(values);
    figures["all_mb_s"][name] = values;
  }
  const auto share = [&](const std::string& of, const std::string& to) {
    figures["ratios"][of + "/" + to] = median(rates[of]) / median(rates[to]);
  };
  for (const char* kind : {"store", "sealed", "plain", "tables"}) {
    share(std::string("write_") + kind, "write_fio");
    for (const int count : threads)
      share("read_" + std::string(kind) + "_" + std::to_string(count), "read_fio_" + std::to_string(count));
  }
  print("rates", std::move(figures));
}

/// A day of sixteen cameras in parts of ten minutes, of which a value has so many bytes, or as many as those
/// of the demo have: written with expiry and erasures for some hours more, then opened.
void measure_day(const fs::path& folder, std::size_t value_bytes, int rounds, bool encrypted) {
  constexpr int kCameras = 16;
  constexpr int kHours = 24;
  constexpr int kMore = 6;
  constexpr int kPages = 75;
  const auto value = random_bytes(value_bytes);
  history::HistoryOptions options;
  if (encrypted) options.master = history::SecretKey::random();
  std::vector<history::CameraId> cameras;
  for (int i = 0; i < kCameras; ++i) cameras.push_back({"bench", "camera " + std::to_string(i)});
  json figures = {{"value_bytes", value_bytes},
                  {"cameras", kCameras},
                  {"hours", kHours},
                  {"pages_a_part", kPages},
                  {"encrypted", encrypted}};
  std::uint64_t kept = 0;
  std::size_t erasures = 0;
  const std::uint64_t before = written_bytes();
  std::vector<double> finish;
  {
    const auto store = history::open_history_store(folder / "day", options);
    std::uint64_t number = 1;
    for (std::uint32_t hour = 0; hour < kHours + kMore; ++hour) {
      for (int part = 0; part < 6; ++part, number += kPages) {
        for (const history::CameraId& camera : cameras) {
          history::GivenPart given{camera, kFirstHour + hour, {}};
          for (int i = 0; i < kPages; ++i)
            given.pages.push_back(page_of(number + static_cast<std::uint64_t>(i),
                                          (kFirstHour + hour) * kHour + (part * 600 + i * 8) * kSecond, 8,
                                          value));
          kept += kPages * value_bytes;
          store->put(given);
        }
      }
      if (hour >= kHours) {
        std::vector<history::Expiry> over;
        for (const history::CameraId& camera : cameras)
          over.push_back({camera, kFirstHour + hour - kHours + 1});
        store->retire(over);
      }
      if (hour % 6 == 5) {
        const std::int64_t from = (kFirstHour + hour) * kHour + 900 * kSecond;
        store->erase(cameras[hour % kCameras], {from, from + 300 * kSecond});
        finish.push_back(seconds([&] { store->finish_erasures(); }));
        ++erasures;
      }
    }
  }
  figures["kept_megabytes"] = static_cast<double>(kept) / 1e6;
  figures["written_megabytes"] = static_cast<double>(written_bytes() - before) / 1e6;
  figures["write_amplification"] = static_cast<double>(written_bytes() - before) / static_cast<double>(kept);
  figures["erasures"] = erasures;
  figures["finish_erasure_s"] = median(finish);
  std::uint64_t index = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "day" / "index"))
    if (entry.is_regular_file()) index += entry.file_size();
  figures["index_megabytes"] = static_cast<double>(index) / 1e6;
  std::vector<double> open;
  for (int round = 0; round < rounds; ++round) {
    std::unique_ptr<history::HistoryStore> store;
    open.push_back(seconds([&] { store = history::open_history_store(folder / "day", options); }));
    std::uint64_t pages = 0;
    for (const history::CameraSummary& each : store->list()) pages += each.pages;
    figures["pages"] = pages;
  }
  figures["open_s"] = median(open);
  figures["all_open_s"] = open;
  std::size_t parts = 0;
  for (const auto& entry : fs::directory_iterator(folder / "day" / "parts"))
    parts += entry.is_regular_file() ? 1U : 0U;
  figures["parts"] = parts;
  print("day", std::move(figures));
  fs::remove_all(folder / "day");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a history on a disk costs, in JSON lines");
  fs::path folder = fs::temp_directory_path() / "vigil-bench-store";
  int rounds = 5;
  std::size_t files = 16;
  std::size_t day_value = 4096;
  bool only_day = false;
  bool only_rates = false;
  app.add_option("--folder", folder, "on the disk that is meant; removed at the end");
  app.add_option("--rounds", rounds);
  app.add_option("--files", files, "of 64 MiB, for the rates");
  app.add_option("--day-value", day_value, "bytes of a page of the day; those of the demo have 64000");
  app.add_flag("--only-day", only_day);
  app.add_flag("--only-rates", only_rates);
  CLI11_PARSE(app, argc, argv);
  fs::create_directories(folder);
  if (!only_rates) {
    measure_day(folder, day_value, rounds, /*encrypted=*/false);
    measure_day(folder, day_value, rounds, /*encrypted=*/true);
  }
  if (!only_day)
    for (const std::size_t value_bytes : {std::size_t{1} << 20U, std::size_t{4} << 20U})
      measure_rates(folder, value_bytes, files, rounds, {1, 2, 4});
  fs::remove_all(folder);
}
