#include "bench/floor.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/duration.h"

namespace vigil::bench {

int floor_tokens(const config::CameraSettings& camera, bool tell_all) {
  int tokens = 1;
  for (const config::RuleSettings& rule : camera.rules)
    if (rule.explain && tell_all) tokens = std::max(tokens, rule.max_tokens);
  return tokens;
}

EngineBenchOptions floor_bench(const config::CameraSettings& camera, int width, int height, int tokens) {
  const double frames = base::seconds(camera.stream.window.length) * camera.stream.fps;
  EngineBenchOptions alone;
  alone.frames = std::max(1, static_cast<int>(std::lround(frames)));
  alone.width = width;
  alone.height = height;
  // A token beside the first one at least, to time it.
  alone.tokens = std::max(2, tokens);
  alone.sequences = 1;
  alone.runs = 5;
  return alone;
}

Floor floor_of(const Figures& figures, double length, double stride, int tokens) {
  const auto median = [&](const std::string& name) -> std::optional<double> {
    for (const Figure& figure : figures.all())
      if (figure.name == name) return figure.median();
    return std::nullopt;
  };
  const auto vision = median("vision");
  const auto prefill = median("prefill");
  if (!vision || !prefill) throw std::invalid_argument("no window was measured");
  Floor floor;
  floor.window = *vision * stride / length + *prefill;
  // The first token comes with the window.
  floor.answer = (tokens - 1) * median("decode_token").value_or(0);
  return floor;
}

}  // namespace vigil::bench
