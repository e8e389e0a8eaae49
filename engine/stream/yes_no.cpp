#include "engine/stream/yes_no.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "engine/model/files/error.h"

namespace vigil::stream {
namespace {

std::vector<std::int32_t> spellings(const model::Tokenizer& tokenizer,
                                    std::initializer_list<const char*> words) {
  std::vector<std::int32_t> ids;
  for (const char* word : words) {
    const std::vector<std::int32_t> tokens = tokenizer.encode(word);
    if (tokens.size() == 1 && std::find(ids.begin(), ids.end(), tokens[0]) == ids.end())
      ids.push_back(tokens[0]);
  }
  if (ids.empty())
    throw model::ModelError(tokenizer.name() + ": no single token says \"" + *words.begin() + "\"");
  return ids;
}

/// The logarithm of the sum of their probabilities, up to what all tokens share.
double log_mass(std::span<const float> logits, std::span<const std::int32_t> ids) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::int32_t id : ids) largest = std::max<double>(largest, logits[static_cast<std::size_t>(id)]);
  double sum = 0;
  for (const std::int32_t id : ids) sum += std::exp(logits[static_cast<std::size_t>(id)] - largest);
  return largest + std::log(sum);
}

}  // namespace

YesNo::YesNo(const model::ModelFolder& folder)
    : yes_(spellings(folder.text(), {"Yes", "yes", "YES", " Yes", " yes"})),
      no_(spellings(folder.text(), {"No", "no", "NO", " No", " no"})),
      calibration_(folder.calibration.value_or(model::Calibration{})) {}

float YesNo::probability(std::span<const float> logits) const {
  return static_cast<float>(calibration_.probability(log_mass(logits, yes_) - log_mass(logits, no_)));
}

}  // namespace vigil::stream
