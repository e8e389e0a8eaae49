#include "loadtest/store/bench_tables.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace vigil::bench {
namespace {

constexpr std::size_t kBlock = 4096;

[[noreturn]] void give_up(const std::string& what) {
  std::cerr << "bench_store: " << what << '\n';
  std::exit(1);
}

void require(bool condition, const char* what) {
  if (!condition) give_up(what);
}

template <class F>
double rate(const Layout& layout, F work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return layout.megabytes() / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer buffer_of(std::size_t bytes) {
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(kBlock, bytes)));
}

std::string name_of(const Layout& layout, std::size_t file, const char* extension) {
  return (layout.folder / (std::to_string(file) + extension)).string();
}

std::string key_of(std::size_t value) {
  std::string digits = std::to_string(value);
  return digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');
}

/// Values of files [thread, files) by steps of `threads`, each file's in an order of its own.
template <class F>
void in_threads(const Layout& layout, int threads, F read_file) {
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      for (auto file = static_cast<std::size_t>(thread); file < layout.files;
           file += static_cast<std::size_t>(threads)) {
        std::vector<std::size_t> order(layout.values());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::mt19937 random(static_cast<unsigned>(file));
        std::shuffle(order.begin(), order.end(), random);
        read_file(file, order);
      }
    });
  }
  for (std::thread& each : all) each.join();
}

rocksdb::Options table_options() {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

double fio(const Layout& layout, const std::string& job, const char* direction) {
  const std::string command =
      "fio --output-format=json --name=bench --ioengine=psync --direct=1 --invalidate=1 --group_reporting "
      "--bs=" +
      std::to_string(layout.value_bytes) + " --directory='" + layout.folder.string() + "' " + job;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  require(pipe != nullptr, "fio cannot be started");
  std::string text;
  std::array<char, 4096> piece{};
  for (std::size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe.get())) > 0;)
    text.append(piece.data(), got);
  const auto report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded()) give_up("fio (Debian's package of that name) says: " + text);
  return report["jobs"][0][direction]["bw_bytes"].get<double>() / 1e6;
}

}  // namespace

double write_plain(const Layout& layout, std::span<const std::byte> value) {
  const Buffer buffer = buffer_of(value.size());
  std::memcpy(buffer.get(), value.data(), value.size());
  return rate(layout, [&] {
    for (std::size_t file = 0; file < layout.files; ++file) {
      const base::Descriptor opened(
          ::open(name_of(layout, file, ".plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600));
      for (std::size_t i = 0; i < layout.values(); ++i) {
        const auto written =
            ::pwrite(opened.number(), buffer.get(), value.size(), static_cast<off_t>(i * value.size()));
        require(written == static_cast<ssize_t>(value.size()), "a plain file cannot be written");
      }
      require(::fdatasync(opened.number()) == 0, "a plain file cannot be synced");
    }
  });
}

double read_plain(const Layout& layout, int threads) {
  return rate(layout, [&] {
    in_threads(layout, threads, [&](std::size_t file, const std::vector<std::size_t>& order) {
      const Buffer buffer = buffer_of(layout.value_bytes);
      const base::Descriptor opened(::open(name_of(layout, file, ".plain").c_str(), O_RDONLY | O_DIRECT));
      for (const std::size_t i : order) {
        const auto got = ::pread(opened.number(), buffer.get(), layout.value_bytes,
                                 static_cast<off_t>(i * layout.value_bytes));
        require(got == static_cast<ssize_t>(layout.value_bytes), "a plain file cannot be read");
      }
    });
  });
}

double write_tables(const Layout& layout, std::span<const std::byte> value) {
  rocksdb::EnvOptions direct;
  direct.use_direct_writes = true;
  direct.writable_file_max_buffer_size = 4 << 20;
  const rocksdb::Slice bytes(reinterpret_cast<const char*>(value.data()), value.size());
  return rate(layout, [&] {
    for (std::size_t file = 0; file < layout.files; ++file) {
      rocksdb::SstFileWriter writer(direct, table_options(), nullptr, /*invalidate_page_cache=*/false);
      require(writer.Open(name_of(layout, file, ".sst")).ok(), "a table cannot be opened");
      for (std::size_t i = 0; i < layout.values(); ++i)
        require(writer.Put(key_of(i), bytes).ok(), "a table cannot be written");
      // Syncs it.
      require(writer.Finish().ok(), "a table cannot be finished");
    }
  });
}

double read_tables(const Layout& layout, int threads) {
  const rocksdb::Options options = table_options();
  return rate(layout, [&] {
    in_threads(layout, threads, [&](std::size_t file, const std::vector<std::size_t>& order) {
      rocksdb::SstFileReader reader(options);
      require(reader.Open(name_of(layout, file, ".sst")).ok(), "a table cannot be opened");
      for (const std::size_t i : order) {
        const std::unique_ptr<rocksdb::Iterator> entry(reader.NewIterator(rocksdb::ReadOptions()));
        entry->Seek(key_of(i));
        require(entry->Valid() && entry->value().size() == layout.value_bytes, "a table cannot be read");
      }
    });
  });
}

double write_fio(const Layout& layout) {
  return fio(
      layout,
      "--rw=write --end_fsync=1 --fallocate=none --file_service_type=sequential --openfiles=1 --nrfiles=" +
          std::to_string(layout.files) + " --filesize=" + std::to_string(layout.file_bytes),
      "write");
}

double read_fio(const Layout& layout, int threads) {
  std::string names;
  for (std::size_t file = 0; file < layout.files; ++file)
    names += (file > 0 ? ":bench.0." : "bench.0.") + std::to_string(file);
  const std::size_t bytes = layout.files * layout.file_bytes;
  return fio(layout,
             "--rw=randread --thread --filename=" + names + " --size=" + std::to_string(bytes) +
                 " --io_size=" + std::to_string(bytes / static_cast<std::size_t>(threads)) +
                 " --numjobs=" + std::to_string(threads),
             "read");
}

}  // namespace vigil::bench
