#include "actors/target/explain.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"

namespace vigil::actors {

Explained explain(stream::AnswerGenerator& generator, const std::vector<ExplainRequest>& requests) {
  Explained result;
  result.texts.resize(requests.size());
  result.failures.resize(requests.size());
  std::vector<stream::Continuation> continuations;
  std::vector<std::size_t> begun;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ExplainRequest& request = requests[i];
    if (request.window->lease) {
      continuations.push_back({&request.window->lease->window(), request.rule});
      begun.push_back(i);
    } else {
      result.failures[i] = "the window has left the cache";
    }
  }
  std::vector<stream::Completion> completions;
  try {
    completions = generator.generate(continuations);
    if (completions.size() != begun.size())
      throw std::logic_error("the generator returned another number of answers");
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) result.too_many = error.what();
    for (const std::size_t i : begun) result.failures[i] = error.what();
    return result;
  }
  for (std::size_t i = 0; i < begun.size(); ++i) {
    try {
      stream::Answer answer = std::move(completions[i]).take();
      const auto tokens = static_cast<std::int64_t>(answer.tokens.size());
      result.tokens += tokens;
      // The pass that ends an answer has no token for it.
      const std::int64_t later = std::max<std::int64_t>(tokens - 1, 0);
      result.later += later;
      result.passes = std::max(result.passes, later);
      result.texts[begun[i]] = std::move(answer.text);
    } catch (const std::exception& error) {
      result.failures[begun[i]] = error.what();
    }
  }
  return result;
}

}  // namespace vigil::actors
