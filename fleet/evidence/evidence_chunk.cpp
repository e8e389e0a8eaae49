#include "fleet/evidence/evidence_chunk.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

namespace vigil::fleet {
namespace {

constexpr std::string_view kHead = "evidence";
/// Little-endian, as all that runs this is.
using Numbers = std::array<std::uint64_t, 3>;

}  // namespace

cluster::BulkMessage write(const EvidenceChunk& chunk) {
  const Numbers numbers{chunk.ticket, chunk.offset, chunk.size};
  std::string header(kHead);
  header.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  return {std::move(header), {chunk.bytes}};
}

bool is_chunk(const cluster::BulkMessage& message) {
  return message.header.starts_with(kHead);
}

std::optional<EvidenceChunk> read_chunk(const cluster::BulkMessage& message) {
  Numbers numbers{};
  if (!is_chunk(message) || message.header.size() != kHead.size() + sizeof numbers ||
      message.parts.size() != 1)
    return std::nullopt;
  std::memcpy(numbers.data(), message.header.data() + kHead.size(), sizeof numbers);
  return EvidenceChunk{numbers[0], numbers[1], numbers[2], message.parts[0]};
}

}  // namespace vigil::fleet
