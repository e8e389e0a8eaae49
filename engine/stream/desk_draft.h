// A pass that the desk puts together, and whose its rows are. For the desk alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/run/passes.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {

struct StreamDesk::Draft {
  run::Pass pass;
  /// What the segments' `own` point into; never grows beyond what was reserved.
  std::vector<std::int32_t> own;
  struct Part {
    Key window;
    std::int64_t rows = 0;
    std::size_t questions = 0;
  };
  std::vector<Part> windows;
  std::vector<TextRef> texts;
  /// Whose next tokens the outputs are from this one on: one, and one more for each that was proposed.
  struct Output {
    TextRef text;
    std::size_t first = 0;
  };
  std::vector<Output> outputs;

  std::int64_t rows() const { return static_cast<std::int64_t>(pass.positions.size()); }
};

}  // namespace vigil::stream
