#include "bench/floor.h"

#include <optional>
#include <stdexcept>
#include <string>

namespace vigil::bench {

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
