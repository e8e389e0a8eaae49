// What tables of RocksDB would write and read beside a history and plain files, with the same bytes on the
// same disk. Variants take turns. JSON lines.
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/figures.h"
#include "bench/store_rates.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "loadtest/store/bench_tables.h"
#include "services/build_info.h"

namespace {

using namespace vigil;

void measure(const std::filesystem::path& folder, std::size_t value_bytes, std::size_t files, int rounds) {
  const bench::DiskLayout layout{folder, value_bytes, std::size_t{64} << 20U, files};
  const auto value = bench::random_bytes(value_bytes);
  const cluster::SystemClock clock;
  bench::Figures figures;
  const auto add = [&](const std::string& name, double rate) { figures.add(name, "B/s", rate); };
  for (int round = 0; round < rounds; ++round) {
    add("write_store", bench::write_store(layout, value, std::nullopt, clock));
    add("write_plain", bench::write_plain(layout, value, clock));
    add("write_tables", bench::write_tables(layout, value, clock));
    for (const int threads : {1, 2, 4}) {
      const std::string by = "_" + std::to_string(threads);
      add("read_store" + by, bench::read_store(layout, threads, std::nullopt, clock));
      add("read_plain" + by, bench::read_plain(layout, threads, clock));
      add("read_tables" + by, bench::read_tables(layout, threads, clock));
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      std::filesystem::remove_all(entry.path());
  }
  figures.print({{"bench", "tables"},
                 {"value_bytes", value_bytes},
                 {"files", files},
                 {"machine", cluster::processor_name()},
                 {"cores", std::thread::hardware_concurrency()},
                 {"commit", services::kCommit}},
                std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Tables of RocksDB beside a history on a disk, in JSON lines (vigil bench memory measures the rest)");
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "vigil-bench-store";
  int rounds = 5;
  std::size_t files = 16;
  app.add_option("--folder", folder, "on the disk that is meant; removed at the end");
  app.add_option("--rounds", rounds);
  app.add_option("--files", files, "of 64 MiB");
  CLI11_PARSE(app, argc, argv);
  try {
    std::filesystem::create_directories(folder);
    for (const std::size_t mebibytes : {1U, 4U}) measure(folder, mebibytes << 20U, files, rounds);
    std::filesystem::remove_all(folder);
  } catch (const std::exception& error) {
    std::cerr << "bench_store: " << error.what() << '\n';
    return 1;
  }
}
