// What of a camera's pictures is computed: two choices, and presets of both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vigil::config {

/// How what of a camera's frames is worth encoding is chosen (engine/prune/pruning_policy.h).
enum class Pruning : std::uint8_t { none, codecsight, reference, dtd, scene, changes };

/// Which keys of a camera's window are computed anew when it slides (engine/stream/refresh.h).
enum class Refresh : std::uint8_t { all, none, codecsight, first_k, random_k, topk };

/// Those of both that go together.
enum class Preset : std::uint8_t { exact, balanced, cheap };

struct PresetMeaning {
  std::string_view name;
  Pruning policy;
  Refresh refresh;
};

/// In the order of Preset.
inline constexpr std::array<PresetMeaning, 3> kPresets = {{{"exact", Pruning::none, Refresh::all},
                                                           {"balanced", Pruning::scene, Refresh::none},
                                                           {"cheap", Pruning::changes, Refresh::none}}};

constexpr const PresetMeaning& meaning(Preset preset) {
  return kPresets.at(static_cast<std::size_t>(preset));
}

/// Of cameras and commands that say nothing. config/vigil.schema.json states it, too (its test compares).
inline constexpr Preset kDefaultPreset = Preset::balanced;

}  // namespace vigil::config
