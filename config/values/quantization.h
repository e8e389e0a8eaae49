// Which products of a model are computed in 8 bits: a setting that the engine takes as it is.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace vigil::config {

/// engine/model/layers/quantization.h says what each comprises.
enum class Quantization : std::uint8_t { none, fp8, fp8_all };

inline constexpr std::array<std::pair<std::string_view, Quantization>, 3> kQuantizationNames = {
    {{"none", Quantization::none}, {"fp8", Quantization::fp8}, {"fp8-all", Quantization::fp8_all}}};

}  // namespace vigil::config
