#include "engine/kv/history/part_maker.h"

#include <algorithm>
#include <utility>

#include "base/durable.h"
#include "engine/kv/history/record.h"

namespace vigil::history {

MadePart make_part(PartFiles& files, AlignedBytes& buffer, const PartKey& key,
                   const std::vector<MadePage>& pages, std::vector<std::uint64_t> replaces,
                   const PartSecret& secret) {
  MadePart made{key, {}, {}, 0};
  made.entry.replaces = std::move(replaces);
  std::vector<std::pair<PageKey, std::pair<std::size_t, std::size_t>>> order;
  for (std::size_t page = 0; page < pages.size(); ++page) {
    EntryPage entry{encode_page_info(pages[page].info), {}};
    for (std::size_t value = 0; value < pages[page].values.size(); ++value) {
      const MadeValue& each = pages[page].values[value];
      entry.values.push_back({each.layers, each.bytes, std::nullopt});
      order.push_back({{key, each.layers, pages[page].info.number}, {page, value}});
    }
    made.entry.pages.push_back(std::move(entry));
  }
  std::sort(order.begin(), order.end());
  PartWriter writer(files.path_of(key.part), buffer);
  for (const auto& [page_key, place] : order) {
    const auto& [page, value] = place;
    const Value read = pages[page].values[value].read();
    if (!read) continue;
    const std::string name = encode(page_key);
    made.entry.pages[page].values[value].offset = writer.bytes();
    const auto room = writer.append(RecordShape::of(name.size(), read.bytes().size()).bytes);
    write_record(room, name, pages[page].info, read.bytes(), secret.key.get());
  }
  made.entry.record_bytes = writer.bytes();
  const std::string name = encode(key);
  made.encoded = encode_entry(made.entry, name, secret.key.get());
  writer.finish(encode_trailer({name, secret.wrapped, made.encoded}));
  made.file_bytes = writer.file_bytes();
  try {
    base::sync(files.folder());
  } catch (const base::FileError&) {
    try {
      files.remove(key.part);
    } catch (const base::FileError&) {
      // The disk refuses everything; the next start looks at what is there.
    }
    throw;
  }
  return made;
}

PartSecret new_secret(const HourKey& hour, const std::optional<SecretKey>& master) {
  if (!master) return {};
  auto key = std::make_shared<const SecretKey>(SecretKey::random());
  std::string wrapped = wrap(*key, *master, wrapped_for(hour));
  return {std::move(key), std::move(wrapped)};
}

std::string wrapped_for(const HourKey& hour) {
  return "vigil history hour " + encode(hour);
}

}  // namespace vigil::history
