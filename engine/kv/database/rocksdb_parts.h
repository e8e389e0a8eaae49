// How small databases of ours use RocksDB.
#pragma once

#include <string>
#include <string_view>

#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include "base/clock.h"

namespace vigil::kv {

/// Of a small database that is written to a disk which may be full.
rocksdb::Options database_options();

/// Whether what was written is not what is read, rather than that the system does not give it now.
bool is_damage(const rocksdb::Status& status);

/// Whether the disk cannot read it (EIO): this time, or ever again.
bool is_unreadable(const rocksdb::Status& status);

/// Tells a sector that is gone from a disk that has a bad moment. Not thread-safe.
class ReadErrors {
 public:
  /// One has come. Whether they have come again and again for a minute.
  bool lasts(base::Clock::WallTime now);

 private:
  base::Clock::WallTime first_{};
  base::Clock::WallTime last_{};
};

/// Whether another process, or another object of this one, has the database.
bool is_locked(const rocksdb::Status& status);

inline std::string_view view_of(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

}  // namespace vigil::kv
