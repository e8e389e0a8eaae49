// Windows of many cameras through prefill and decode in one batch.
#pragma once

#include <string>
#include <vector>

#include "actors/answer/window_assembler.h"
#include "actors/messages/data.h"
#include "engine/window/answerer.h"

namespace vigil::actors {

struct Answered {
  /// In the order of the windows, without those that failed.
  std::vector<WindowAnswersPtr> windows;
  struct Failure {
    CameraPtr camera;
    std::string reason;
  };
  std::vector<Failure> failures;
};

/// Asks every window the rules of its camera. If the batch fails, each window is tried alone, so that one
/// that cannot be answered takes no other with it.
Answered answer(window::WindowAnswerer& answerer, const std::vector<DueWindow>& windows);

}  // namespace vigil::actors
