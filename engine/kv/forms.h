// The forms that keys and values outside of the pages are kept in, and what they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/kv/page_store.h"
#include "kernels/packed_kv/packed_kv.h"

namespace vigil::kv {

/// kernels/packed_kv/packed_kv.h says what each of the first three is. `embeddings`: what the decoder got, in
/// bf16, of which keys and values have to be computed again. `sketch`: as int4, of the few tokens that stand
/// out alone (`VisualTokens::standing_out`). Their numbers are those of what is kept on a disk.
enum class Form : std::uint8_t { bf16, fp8, int4, embeddings, sketch };

/// As the configuration has them.
inline constexpr std::array<std::pair<std::string_view, Form>, 5> kFormNames = {
    {{"bf16", Form::bf16},
     {"fp8", Form::fp8},
     {"int4", Form::int4},
     {"embeddings", Form::embeddings},
     {"sketch", Form::sketch}}};

constexpr std::string_view name_of(Form form) {
  return kFormNames[static_cast<std::size_t>(form)].first;
}

/// How so many tokens lie in a form of keys and values. `layout` has the KV heads of all devices, and the
/// layers that are packed together. Throws std::invalid_argument for embeddings.
constexpr kernels::PackedShape packed_shape(Form form, const PageLayout& layout, std::int64_t tokens) {
  constexpr std::array kForms{kernels::PackedForm::bf16, kernels::PackedForm::fp8, kernels::PackedForm::int4};
  if (form == Form::embeddings) throw std::invalid_argument("embeddings are no packed keys and values");
  const Form packed = form == Form::sketch ? Form::int4 : form;
  return {kForms[static_cast<std::size_t>(packed)], layout.layers, layout.kv_heads, layout.head_dim, tokens};
}

/// Bytes of so many tokens in a form; `hidden`: the width of an embedding.
constexpr std::int64_t form_bytes(Form form, const PageLayout& layout, std::int64_t hidden,
                                  std::int64_t tokens) {
  return form == Form::embeddings ? 2 * hidden * tokens : packed_shape(form, layout, tokens).bytes();
}

}  // namespace vigil::kv
