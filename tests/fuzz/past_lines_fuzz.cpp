// Any bytes as what is told about the past: lines without control characters, or nothing; and JSON that stays
// the same when it is indented, or nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fleet/asks/past_lines.h"

namespace {

using namespace vigil::fleet;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_plain(const std::optional<std::string>& text, bool is_line) {
  if (!text) return;
  for (const char c : *text) {
    const auto byte = static_cast<unsigned char>(c);
    require((byte >= 0x20 && byte != 0x7f) || (c == '\n' && !is_line));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  if (const auto answer = answer_line(body)) require_plain(answer->text, true);
  require_plain(erasure_line(body), true);
  require_plain(progress_line(body), true);
  require_plain(memory_table(body), false);
  if (const auto verified = verified_table(body)) require_plain(verified->text, false);
  if (const auto text = indented(body)) require(nlohmann::json::parse(*text) == nlohmann::json::parse(body));
  return 0;
}
