// Any parts as messages of topics: those that are none are left out, and what the others say is shown as a
// line, and goes through the ledger, which shows a topic's events once each and in order, whatever comes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "actors/alerts/event_text.h"
#include "cluster/topics/event_ledger.h"
#include "cluster/topics/message.h"
#include "tests/fuzz/parts.h"

namespace {

using namespace vigil::cluster;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_line(const std::string& body) {
  const auto text = vigil::actors::event_text(body);
  if (!text) return;
  for (const char c : *text) require(static_cast<unsigned char>(c) >= 0x20U && c != 0x7f);
}

/// A part is "0" or more digits alone, as others would write them.
void require_number(const zmq::message_t& part, std::uint64_t number) {
  std::string_view digits = view_of(part);
  require(!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  require(digits == std::to_string(number));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = vigil::testing::parts_of({reinterpret_cast<const char*>(data), size});
  (void)parse_message(parts);
  EventLedger ledger({});
  ledger.page({.outbox = "a", .events = {}, .cursor = 0, .more = false, .newest = 0});
  for (std::size_t i = 0; i + kMessageParts <= parts.size(); i += kMessageParts) {
    const auto of_message = std::span(parts).subspan(i, kMessageParts);
    auto message = parse_message(of_message);
    if (!message) continue;
    require(message->topic == view_of(of_message[0]) && message->body == view_of(of_message[3]));
    require_number(of_message[1], message->sequence);
    require_number(of_message[2], message->position);
    require_line(message->body);
    ledger.live(std::move(*message));
  }
  ledger.give_up();
  std::map<std::string, std::uint64_t> last;
  while (const auto entry = ledger.take()) {
    const auto* message = std::get_if<TopicMessage>(&*entry);
    if (message == nullptr) continue;
    const auto [known, first] = last.emplace(message->topic, message->sequence);
    require(first || known->second < message->sequence);
    known->second = message->sequence;
  }
  return 0;
}
