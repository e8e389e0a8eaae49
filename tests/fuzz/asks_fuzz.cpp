// Two readers by the first byte. 'q': any bytes as a request, which is refused in one line, or means the same
// when it is written down and read again. Else: any parts as a reply, which is none, or is the same when it
// is written down and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/asks/answer.h"
#include "cluster/asks/request.h"
#include "tests/fuzz/parts.h"

namespace {

using namespace vigil::cluster;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_line(const std::string& text) {
  require(text.size() < 2000);
  for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20U && c != 0x7f);
}

void fuzz_request(std::string_view text) {
  const auto read = parse_request(text);
  if (const auto* bad = std::get_if<BadRequest>(&read)) {
    require(!bad->reason.empty());
    require_line(bad->reason);
    return;
  }
  if (const auto* cancel = std::get_if<AskCancel>(&read)) {
    require(!cancel->tag.empty() && cancel->tag.size() <= kAskTagBytes);
    const auto again = parse_request(to_text(*cancel));
    require(std::holds_alternative<AskCancel>(again) && std::get<AskCancel>(again) == *cancel);
    return;
  }
  const auto& request = std::get<AskRequest>(read);
  if (const auto camera = camera_of(request)) {
    require(!camera->empty());
    require_line(std::string(*camera));
  }
  if (const auto tenant = tenant_of(request)) {
    require(!tenant->empty());
    require_line(std::string(*tenant));
  }
  if (const auto* question = std::get_if<AskQuestion>(&request)) {
    require(!question->question.empty() && question->question.size() <= kAskQuestionBytes);
    require(!question->about || (!question->about->empty() && question->about->size() <= kAskQuestionBytes));
    require(0 <= question->from_ms && question->from_ms <= question->to_ms);
    require(!question->max_tokens || *question->max_tokens > 0);
    require(!question->timeout || question->timeout->count() > 0);
  }
  const std::string written = to_text(request);
  require(written.size() <= kAskRequestBytes);
  const auto again = parse_request(written);
  require(std::holds_alternative<AskRequest>(again) && std::get<AskRequest>(again) == request);
}

void fuzz_reply(std::span<const zmq::message_t> parts) {
  const auto reply = parse_reply(parts);
  if (!reply) return;
  if (const auto* refusal = std::get_if<AskRefusal>(&*reply)) {
    for (const char c : refusal->message) require(static_cast<unsigned char>(c) >= 0x20U && c != 0x7f);
  } else {
    require(parts.size() == 2);
  }
  std::vector<zmq::message_t> again;
  for (const std::string& part : to_parts(*reply)) again.emplace_back(part.data(), part.size());
  require(parse_reply(again) == reply);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'q') {
    fuzz_request(rest);
  } else {
    fuzz_reply(vigil::testing::parts_of(rest));
  }
  return 0;
}
