// How a past is kept, and chosen from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/kv/retrieval/resv_settings.h"
#include "kernels/packed_kv/packed_kv.h"

namespace vigil::past {

struct PastOptions {
  /// A form of ReSV (`retrieval::resv_named`) or a control (`retrieval::kControls`).
  std::string method = "resv-pooled";
  /// Of ReSV, in place of its form's own.
  std::optional<retrieval::ResvSettings> settings = std::nullopt;
  /// Of a control: what a KV head may have of all tokens, from 0 to 1.
  double share = 0.33;
  /// In which keys and values lie in the host's memory.
  kernels::PackedForm form = kernels::PackedForm::bf16;
  /// Bytes of the host's memory that they may take; the oldest block goes when there is no room. Of one block
  /// alone, that is all of it. What is not needed yet is not taken: there are as many slabs as are full, and
  /// one more.
  std::int64_t host_bytes = std::int64_t{64} << 20U;
  /// Patches whose keys form clusters with each other; 0: all, which is what the paper has.
  int block_patches = 0;
  /// What a layer needs is chosen by a guess of its queries and brought while the layer before computes, as
  /// the paper has it (PastAttend). Each layer's queries are projected twice then, and of all pasts of a pass
  /// of which one wants that.
  bool ahead = false;
};

}  // namespace vigil::past
