#include "engine/kv/history/part_reader.h"

#include <memory>
#include <utility>

#include "base/durable.h"
#include "engine/kv/history/record.h"

namespace vigil::history {

Value read_value(const PartFiles& files, const StoredPart& part, const StoredPage& page,
                 const EntryValue& value) {
  if (!part.is_there(value)) return Value(Missing::damaged);
  const std::string key = encode(PageKey{part.key, value.layers, page.number});
  const auto info = decode_page_info(page.info);
  try {
    const std::size_t bytes = RecordShape::of(key.size(), value.bytes).bytes;
    auto stretch = files.read(part.key.part, *value.offset, bytes);
    if (!stretch || !info) return Value(Missing::damaged);
    const auto payload = open_record(stretch->bytes, key, *info, part.secret.get());
    if (!payload || payload->size() != value.bytes) return Value(Missing::damaged);
    return {*payload, std::make_shared<AlignedBytes>(std::move(stretch->memory))};
  } catch (const base::FileError&) {
    return Value(Missing::damaged);
  }
}

}  // namespace vigil::history
