#include "actors/target/explanations.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace vigil::actors {

Explanations::Told Explanations::tell(const stream::DeskNews::Told& told, base::Clock::TimePoint now) {
  Told result;
  auto node = tickets_.extract({told.window, told.question});
  if (node) result.explanation.ticket = node.mapped();
  if (told.failure) {
    try {
      std::rethrow_exception(told.failure);
    } catch (const std::exception& error) {
      result.explanation.failure = error.what();
    }
    return result;
  }
  result.explanation.text = told.answer.text;
  result.tokens = static_cast<std::int64_t>(told.answer.tokens.size());
  if (!told.begun) return result;
  // The pass that ends an answer has no token for it.
  result.later = std::max<std::int64_t>(result.tokens - 1, 0);
  result.seconds = std::chrono::duration<double>(now - *told.begun).count();
  return result;
}

}  // namespace vigil::actors
