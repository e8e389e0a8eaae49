// A part's file from its pages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/kv/history/history_store.h"
#include "engine/kv/history/part_entry.h"
#include "engine/kv/history/part_file.h"

namespace vigil::history {

struct MadeValue {
  Layers layers;
  std::uint32_t bytes = 0;
  /// Its payload, when its turn has come; missing: it is lost, and the part says so.
  std::function<Value()> read;
};

struct MadePage {
  PageInfo info;
  std::vector<MadeValue> values;
};

/// How the values of a part are encrypted, if they are.
struct PartSecret {
  std::shared_ptr<const SecretKey> key;
  /// The same, wrapped by the master key for its hour.
  std::string wrapped;
};

struct MadePart {
  PartKey key;
  PartEntry entry;
  /// The entry as it stands in the file, and is to stand in the index.
  std::string encoded;
  std::uint64_t file_bytes = 0;
};

/// Writes the file, in the order of keys, and syncs it and its name. Throws base::FileError and HistoryError,
/// and then leaves no file. `buffer`: as a PartWriter's.
MadePart make_part(PartFiles& files, AlignedBytes& buffer, const PartKey& key,
                   const std::vector<MadePage>& pages, std::vector<std::uint64_t> replaces,
                   const PartSecret& secret);

/// A random one, wrapped by the master key for this hour; none without a master key.
PartSecret new_secret(const HourKey& hour, const std::optional<SecretKey>& master);

/// What a page's key is bound to when it is wrapped.
std::string wrapped_for(const HourKey& hour);

}  // namespace vigil::history
