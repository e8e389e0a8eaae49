// Two readers by the first byte. 'q': any bytes as a query, which is refused in one line, or means the same
// when it is written down and read again. Else: any parts as the answer to a query, which is none, or has
// what its header says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/topics/replay.h"
#include "tests/fuzz/parts.h"

namespace {

using namespace vigil::cluster;

void require(bool holds) {
  if (!holds) std::abort();
}

void fuzz_query(std::string_view text) {
  const auto read = parse_query(text);
  if (const auto* refusal = std::get_if<ReplayRefusal>(&read)) {
    require(!refusal->reason.empty() && refusal->reason.size() < 2000 &&
            refusal->reason.find('\n') == std::string::npos);
    return;
  }
  const auto& query = std::get<ReplayQuery>(read);
  require(!query.topics.empty() && query.topics.size() <= 64 && query.limit >= 1 && query.limit <= 256);
  require(!query.from || query.topics.size() == 1);
  require(!query.since_ms || *query.since_ms >= 0);
  const auto again = parse_query(query_text(query));
  const auto* same = std::get_if<ReplayQuery>(&again);
  require(same != nullptr && same->topics == query.topics && same->after == query.after &&
          same->since_ms == query.since_ms && same->from == query.from && same->limit == query.limit);
}

void fuzz_answer(std::span<const zmq::message_t> parts) {
  const auto answer = parse_answer(parts);
  if (!answer) return;
  if (const auto* page = std::get_if<ReplayPage>(&*answer)) {
    require(page->events.size() == (parts.size() - 1) / kMessageParts);
    for (std::size_t i = 0; i < page->events.size(); ++i) {
      require(page->events[i].topic == view_of(parts[1 + i * kMessageParts]));
      require(page->events[i].body == view_of(parts[4 + i * kMessageParts]));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'q') {
    fuzz_query(rest);
  } else {
    fuzz_answer(vigil::testing::parts_of(rest));
  }
  return 0;
}
