// Which products are computed in 8 bits.
#pragma once

#include <string_view>

#include "config/values/quantization.h"

namespace vigil::model {

/// `fp8`: the large products of the decoder's layers (query, key, value, output; gate, value and down of the
/// MLP) in E4M3, weights with a scale a row, rounded once when they are loaded, and activations with a scale
/// a token (kernels/quantize). `fp8_all`: those of the vision tower's blocks too. What stays in the type of
/// computation: embeddings and head, which make or rank single tokens and are read for few rows only, what
/// makes patches and merges them, keys and values, attention, norms and the residual stream.
using config::Quantization;

/// What of it holds for one part of a model: none or fp8.
constexpr Quantization of_decoder(Quantization quantization) {
  return quantization == Quantization::none ? Quantization::none : Quantization::fp8;
}
constexpr Quantization of_vision(Quantization quantization) {
  return quantization == Quantization::fp8_all ? Quantization::fp8 : Quantization::none;
}

/// As users write it.
constexpr std::string_view name_of(Quantization quantization) {
  for (const auto& [name, each] : config::kQuantizationNames)
    if (each == quantization) return name;
  return "?";
}

}  // namespace vigil::model
