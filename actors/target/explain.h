// The texts of answers that are worth telling.
#pragma once

#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "engine/window/answerer.h"

namespace vigil::actors {

struct Explained {
  /// texts[i] belongs to requests[i]; empty where `failures[i]` says why.
  std::vector<std::string> texts;
  std::vector<std::string> failures;
  std::int64_t tokens = 0;
};

/// Completes the answers together. If that fails, each is tried alone, so that one takes no other with it.
Explained explain(window::AnswerGenerator& generator, const std::vector<ExplainRequest>& requests);

}  // namespace vigil::actors
