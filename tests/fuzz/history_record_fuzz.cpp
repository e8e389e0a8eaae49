// Any bytes as what a history keeps on a disk: either nothing, or a value whose own bytes say the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/erasure_file.h"
#include "engine/kv/history/note_list.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"
#include "engine/kv/history/part_entry.h"
#include "engine/kv/history/record.h"
#include "engine/kv/history/store_format.h"

namespace {

using namespace vigil::history;

void require(bool condition) {
  if (!condition) std::abort();
}

const SecretKey kSecret;
const PartKey kPart{{{"north", "gate"}, 495994}, 5};

PageInfo info() {
  PageInfo page;
  page.number = 17;
  page.patches.emplace_back();
  return page;
}

/// Bytes as they are, and with the sum that they would need: so that what is behind it is reached.
void read_all(const std::string& bytes) {
  if (const auto page = decode_page_info(bytes)) {
    require(encode_page_info(*page) == bytes);
    require(summary_of(bytes) == PageSummary{page->number, page->form, page->bytes, wall_of(*page)});
  } else {
    require(!summary_of(bytes));
  }
  if (const auto key = decode_page_key(bytes)) require(encode(*key) == bytes);
  if (const auto key = decode_part_key(bytes)) require(encode(*key) == bytes);
  if (const auto key = decode_hour_key(bytes)) require(encode(*key) == bytes);
  if (const auto camera = decode_camera(bytes)) require(encode(*camera) == bytes);
  if (const auto erasure = decode_erasure(bytes)) require(encode_erasure(*erasure) == bytes);
  if (const auto erasures = decode_erasures(bytes))
    require(decode_erasures(encode_erasures(*erasures)) == erasures);
  const CameraId camera = kPart.hour.camera;
  for (const SecretKey* secret : {static_cast<const SecretKey*>(nullptr), &kSecret})
    if (const auto notes = decode_notes(camera, bytes, secret))
      require(decode_notes(camera, encode_notes(camera, *notes, secret), secret) == notes);
  const std::string key = encode(kPart);
  for (const SecretKey* secret : {static_cast<const SecretKey*>(nullptr), &kSecret})
    if (const auto entry = decode_entry(bytes, key, secret))
      require(decode_entry(encode_entry(*entry, key, secret), key, secret) == entry);
  if (const auto trailer = decode_trailer(bytes)) require(encode_trailer(*trailer) == bytes);
  if (const auto secret = unwrap(bytes, kSecret, "bound"))
    require(unwrap(wrap(*secret, kSecret, "bound"), kSecret, "bound") == secret);
  is_format(bytes);
  const PageInfo page = info();
  for (const SecretKey* secret : {static_cast<const SecretKey*>(nullptr), &kSecret}) {
    // A copy of its own size: a read past the end is seen.
    std::vector<std::byte> record(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) record[i] = static_cast<std::byte>(bytes[i]);
    const auto payload = open_record(record, encode(PageKey{kPart, {0, 2}, 17}), page, secret);
    require(!payload || (payload->data() >= record.data() &&
                         payload->data() + payload->size() <= record.data() + record.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_all(bytes);
  const auto with_sum = [&](const std::string& over) {
    const Tag sum = sum_of(over);
    return bytes + std::string(reinterpret_cast<const char*>(sum.data()), sum.size());
  };
  read_all(with_sum(bytes));
  read_all(with_sum(encode(kPart) + bytes));
  read_all(with_sum("vigil history notes " + encode(kPart.hour.camera) + bytes));
  return 0;
}
