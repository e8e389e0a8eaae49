#include "fleet/wire/token_packing.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/fnv1a.h"
#include "engine/run/token_transfer.h"

namespace vigil::fleet {
namespace {

/// Wider than any decoder.
constexpr std::int32_t kMostWidth = 1 << 16;

template <class Number>
void add(std::uint64_t& sum, Number number) {
  const auto wide = static_cast<std::uint64_t>(number);
  sum = base::fnv1a({reinterpret_cast<const char*>(&wide), sizeof wide}, sum);
}

void add(std::uint64_t& sum, const actors::MaskForm& form) {
  add(sum, form.height);
  add(sum, form.width);
  add(sum, form.cells.size());
  for (const std::int32_t cell : form.cells) add(sum, cell);
}

void add(std::uint64_t& sum, const TokensForm& form) {
  add(sum, form.is_half);
  add(sum, form.width);
  add(sum, form.kept);
  if (form.has_standing_out) add(sum, form.standing_out);
  add(sum, form.encoded);
}

std::uint64_t sum_of(const PackedTokens& packed) {
  const VisualForm& form = packed.form;
  std::uint64_t sum = base::fnv1a(form.watch.camera);
  add(sum, form.watch.version);
  add(sum, form.generation);
  add(sum, form.sequence);
  add(sum, form.session);
  add(sum, form.tokens);
  add(sum, static_cast<std::uint8_t>(form.has_whole));
  if (form.has_whole == WholeTokens::own) add(sum, form.whole);
  for (const cluster::Bytes& part : packed.embeddings) add(sum, part.size());
  return sum;
}

TokensForm form_of(const model::VisualTokens& tokens) {
  TokensForm form;
  form.is_half = tokens.dtype == kernels::DType::bf16;
  form.width = static_cast<std::int32_t>(tokens.width);
  form.kept = actors::form_of(tokens.kept);
  form.has_standing_out = tokens.standing_out.has_value();
  if (tokens.standing_out) form.standing_out = actors::form_of(*tokens.standing_out);
  form.seconds = tokens.seconds;
  form.duration = tokens.duration;
  form.is_intra = tokens.intra;
  form.encoded = tokens.encoded;
  return form;
}

cluster::Bytes bytes_of(const model::VisualTokensPtr& tokens) {
  return {{tokens, static_cast<const std::byte*>(tokens->embeddings.data())}, tokens->bytes()};
}

/// Whether each is a number: one that is none would spoil its camera's stream for as long as it is kept.
template <class Bits>
bool are_numbers(const cluster::Bytes& bytes, Bits exponent) {
  bool all = true;
  for (std::size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits = 0;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    all = all && (bits & exponent) != exponent;
  }
  return all;
}

model::VisualTokensPtr tokens_of(const TokensForm& form, const cluster::Bytes& bytes, std::int64_t width) {
  if (form.duration <= 0 || form.width < 1 || form.width > kMostWidth || (width > 0 && form.width != width))
    return nullptr;
  std::optional<base::GridMask> kept = actors::mask_of(form.kept);
  if (!kept || form.encoded < 0 || form.encoded > kept->cells()) return nullptr;
  std::optional<base::GridMask> standing_out;
  if (form.has_standing_out) {
    standing_out = actors::mask_of(form.standing_out);
    if (!standing_out || standing_out->height() != kept->height() || standing_out->width() != kept->width() ||
        !kept->has(*standing_out))
      return nullptr;
  }
  model::VisualTokens tokens;
  tokens.dtype = form.is_half ? kernels::DType::bf16 : kernels::DType::f32;
  tokens.width = form.width;
  tokens.kept = *std::move(kept);
  tokens.standing_out = std::move(standing_out);
  tokens.seconds = form.seconds;
  tokens.duration = form.duration;
  tokens.intra = form.is_intra;
  tokens.encoded = form.encoded;
  const bool fits =
      bytes.size() == tokens.bytes() && (form.is_half ? are_numbers<std::uint16_t>(bytes, 0x7f80)
                                                      : are_numbers<std::uint32_t>(bytes, 0x7f800000));
  return fits ? run::host_tokens(std::move(tokens), bytes.span()) : nullptr;
}

}  // namespace

PackedTokens pack(const actors::VisualPatch& patch, std::uint32_t session, const base::Clock& clock) {
  PackedTokens packed;
  VisualForm& form = packed.form;
  form.watch = patch.watch;
  form.generation = patch.generation;
  form.sequence = patch.sequence;
  form.session = session;
  form.frames = patch.frames;
  form.captured = actors::form_of(patch.captured, clock);
  form.encoded = actors::form_of(patch.encoded, clock);
  form.is_audited = patch.audit.has_value();
  form.audit = patch.audit.value_or(0);
  form.tokens = form_of(*patch.tokens);
  packed.embeddings.push_back(bytes_of(patch.tokens));
  if (patch.whole == patch.tokens) {
    form.has_whole = WholeTokens::same;
  } else if (patch.whole) {
    form.has_whole = WholeTokens::own;
    form.whole = form_of(*patch.whole);
    packed.embeddings.push_back(bytes_of(patch.whole));
  }
  form.sum = sum_of(packed);
  return packed;
}

actors::VisualPatchPtr unpack(const PackedTokens& packed, std::int64_t width, const base::Clock& clock) {
  const VisualForm& form = packed.form;
  const std::size_t parts = form.has_whole == WholeTokens::own ? 2 : 1;
  if (packed.embeddings.size() != parts || form.frames < 1 || form.sum != sum_of(packed)) return nullptr;
  auto patch = std::make_shared<actors::VisualPatch>();
  patch->tokens = tokens_of(form.tokens, packed.embeddings[0], width);
  if (!patch->tokens) return nullptr;
  if (form.has_whole == WholeTokens::same) patch->whole = patch->tokens;
  if (form.has_whole == WholeTokens::own) {
    patch->whole = tokens_of(form.whole, packed.embeddings[1], width);
    if (!patch->whole) return nullptr;
  }
  patch->watch = form.watch;
  patch->generation = form.generation;
  patch->sequence = form.sequence;
  patch->frames = form.frames;
  patch->captured = actors::time_of(form.captured, clock);
  patch->encoded = actors::span_of(form.encoded, clock);
  if (form.is_audited) patch->audit = form.audit;
  return patch;
}

}  // namespace vigil::fleet
