// The texts of answers that are worth telling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

struct Explained {
  /// texts[i] belongs to requests[i]; empty where `failures[i]` says why.
  std::vector<std::string> texts;
  std::vector<std::string> failures;
  std::int64_t tokens = 0;
  /// Passes of the generator, and the tokens that it made: an answer's first token was there before.
  std::int64_t passes = 0;
  std::int64_t later = 0;
  /// Why the answers did not fit into one batch; empty if they did.
  std::string too_many;
};

/// Completes the answers together. One that fails takes no other with it; an error of a whole pass is the
/// failure of all, since what was begun cannot be begun again. Throws window::DeviceLost alone.
Explained explain(stream::AnswerGenerator& generator, const std::vector<ExplainRequest>& requests);

}  // namespace vigil::actors
