// The same bytes in tables of RocksDB.
#pragma once

#include <cstddef>
#include <span>

#include "base/clock.h"
#include "bench/disk_rates.h"

namespace vigil::bench {

// By SstFileWriter and SstFileReader with direct I/O, as `write_plain` and `read_plain`. They throw
// std::runtime_error if the disk does not do what it should.
double write_tables(const DiskLayout& layout, std::span<const std::byte> value, const base::Clock& clock);
double read_tables(const DiskLayout& layout, int threads, const base::Clock& clock);

}  // namespace vigil::bench
