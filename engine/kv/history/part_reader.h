// A value out of a part's file.
#pragma once

#include "engine/kv/history/catalog.h"
#include "engine/kv/history/part_file.h"

namespace vigil::history {

/// Damaged if its file is gone or too short or cannot be read, or what is there is not what was written.
/// Thread-safe. Throws std::bad_alloc.
Value read_value(const PartFiles& files, const StoredPart& part, const StoredPage& page,
                 const EntryValue& value);

}  // namespace vigil::history
