// Any bytes as what the outbox keeps on the disk: either nothing, or a value whose own bytes say the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "actors/alerts/outbox_records.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::actors;
  // A copy of its own size: a read past the end is seen.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto head = decode_event_head(bytes)) {
    require(head->body <= bytes.size());
    // The topic lies within.
    require(head->topic.data() >= bytes.data() &&
            head->topic.data() + head->topic.size() <= bytes.data() + size);
    const auto event = decode_event(7, bytes);
    require(event && event->topic == head->topic && event->body == bytes.substr(head->body));
    if (head->stamp) require(encode_event(*event, *head->stamp) == bytes);
    const std::string again = encode_event(*event, head->stamp.value_or(head->time));
    const auto same = decode_event(7, again);
    require(same && same->sequence == event->sequence && same->time == event->time &&
            same->body == event->body);
  } else {
    require(!decode_event(7, bytes));
  }
  if (const auto watermark = decode_watermark(bytes)) {
    const auto same = decode_watermark(encode_watermark(*watermark));
    require(same && same->identity == watermark->identity && same->position == watermark->position);
  }
  if (const auto number = decode_number(bytes)) require(encode_number(*number) == bytes);
  if (const auto position = decode_position_key(bytes)) require(position_key(bytes[0], *position) == bytes);
  if (const auto time = decode_time(bytes)) require(encode_time(*time) == bytes);
  return 0;
}
