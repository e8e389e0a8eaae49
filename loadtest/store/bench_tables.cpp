#include "loadtest/store/bench_tables.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

namespace vigil::bench {
namespace {

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

std::string table_name(const DiskLayout& layout, std::size_t file) {
  return (layout.folder / (std::to_string(file) + ".sst")).string();
}

std::string key_of(std::size_t value) {
  std::string digits = std::to_string(value);
  return digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');
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

}  // namespace

double write_tables(const DiskLayout& layout, std::span<const std::byte> value, const base::Clock& clock) {
  rocksdb::EnvOptions direct;
  direct.use_direct_writes = true;
  direct.writable_file_max_buffer_size = 4 << 20;
  const rocksdb::Slice bytes(reinterpret_cast<const char*>(value.data()), value.size());
  return rate_of(layout, clock, [&] {
    for (std::size_t file = 0; file < layout.files; ++file) {
      rocksdb::SstFileWriter writer(direct, table_options(), nullptr, /*invalidate_page_cache=*/false);
      require(writer.Open(table_name(layout, file)).ok(), "a table cannot be opened");
      for (std::size_t i = 0; i < layout.values(); ++i)
        require(writer.Put(key_of(i), bytes).ok(), "a table cannot be written");
      // Syncs it.
      require(writer.Finish().ok(), "a table cannot be finished");
    }
  });
}

double read_tables(const DiskLayout& layout, int threads, const base::Clock& clock) {
  const rocksdb::Options options = table_options();
  return read_rate(layout, threads, clock, [&](std::size_t file) {
    rocksdb::SstFileReader reader(options);
    require(reader.Open(table_name(layout, file)).ok(), "a table cannot be opened");
    for (const std::size_t i : order_of(layout, file)) {
      const std::unique_ptr<rocksdb::Iterator> entry(reader.NewIterator(rocksdb::ReadOptions()));
      entry->Seek(key_of(i));
      require(entry->Valid() && entry->value().size() == layout.value_bytes, "a table cannot be read");
    }
  });
}

}  // namespace vigil::bench
