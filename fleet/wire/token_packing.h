// Visual tokens on their way to the node that has their stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/wire.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"

namespace vigil::fleet {

/// model::VisualTokens without their embeddings.
struct TokensForm {
  /// bf16, otherwise f32.
  bool is_half = false;
  std::int32_t width = 0;
  actors::MaskForm kept;
  /// Of those, if somebody said.
  bool has_standing_out = false;
  actors::MaskForm standing_out;
  double seconds = 0;
  double duration = 0;
  bool is_intra = false;
  std::int64_t encoded = 0;
  friend bool operator==(const TokensForm&, const TokensForm&) = default;
};

/// Of an audited patch: nothing; that all of it was encoded anyway; or tokens of their own.
enum class WholeTokens : std::uint8_t { none, same, own };

/// actors::VisualPatch without its embeddings.
struct VisualForm {
  actors::WatchRef watch;
  std::uint32_t generation = 0;
  std::uint64_t sequence = 0;
  /// In which of its sender's sessions of this camera (`tokens_actor`).
  std::uint32_t session = 0;
  std::int32_t frames = 0;
  actors::CaptureForm captured;
  actors::WorkForm encoded;
  bool is_audited = false;
  double audit = 0;
  TokensForm tokens;
  WholeTokens has_whole = WholeTokens::none;
  TokensForm whole;
  /// Over whose they are and how large, so that numbers are never taken for those of another shape.
  std::uint64_t sum = 0;
  friend bool operator==(const VisualForm&, const VisualForm&) = default;
};

/// A patch that was taken apart: its form, and the embeddings, [tokens, width] in their own type; then those
/// of all of its groups, if it has some of its own.
struct PackedTokens {
  VisualForm form;
  std::vector<cluster::Bytes> embeddings;
};

/// Tokens in the host's memory, which the parts share.
PackedTokens pack(const actors::VisualPatch& patch, std::uint32_t session, const base::Clock& clock);

/// Null if the bytes are not those of the form, or no numbers, or not of a model of this width (0: any).
actors::VisualPatchPtr unpack(const PackedTokens& packed, std::int64_t width, const base::Clock& clock);

}  // namespace vigil::fleet
