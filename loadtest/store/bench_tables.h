// What a history is measured beside: the same bytes in plain files, in tables of RocksDB, and by fio.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace vigil::bench {

/// Files of `file_bytes` in `folder`, of values of `value_bytes` each; `files` of them.
struct Layout {
  std::filesystem::path folder;
  std::size_t value_bytes = 0;
  std::size_t file_bytes = 0;
  std::size_t files = 0;

  std::size_t values() const { return file_bytes / value_bytes; }
  double megabytes() const { return static_cast<double>(files * values() * value_bytes) / 1e6; }
};

// Megabytes a second. Writers sync each file; readers read every value once, in a shuffled order, by so many
// threads. They end the process if the disk does not do what it should.
double write_plain(const Layout& layout, std::span<const std::byte> value);
double read_plain(const Layout& layout, int threads);
/// SstFileWriter and SstFileReader with direct I/O.
double write_tables(const Layout& layout, std::span<const std::byte> value);
double read_tables(const Layout& layout, int threads);
/// The program `fio`, from its own report.
double write_fio(const Layout& layout);
double read_fio(const Layout& layout, int threads);

}  // namespace vigil::bench
