// A part of a still or a clip on its way from the node that has it to one that was asked for it.
#pragma once

#include <cstdint>
#include <optional>

#include "cluster/bulk/bulk.h"

namespace vigil::fleet {

struct EvidenceChunk {
  /// Of whoever asked.
  std::uint64_t ticket = 0;
  /// Where in the file it begins, and how long that is in all.
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  cluster::Bytes bytes;
};

cluster::BulkMessage write(const EvidenceChunk& chunk);
/// Nothing if it is none: what a link sends is another message.
std::optional<EvidenceChunk> read_chunk(const cluster::BulkMessage& message);
/// By its header alone.
bool is_chunk(const cluster::BulkMessage& message);

}  // namespace vigil::fleet
