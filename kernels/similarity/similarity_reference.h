// `token_similarity` as its formulas say it, in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/device/element.h"
#include "kernels/similarity/similarity.h"

namespace vigil::kernels::reference {

struct Similarity {
  std::vector<double> to_before, spread;
};

/// NaN where either has no direction.
inline double cosine(ConstMatrix a, std::int64_t i, ConstMatrix b, std::int64_t k) {
  double product = 0, first = 0, second = 0;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    product += double{element(a, i, j)} * double{element(b, k, j)};
    first += std::pow(double{element(a, i, j)}, 2);
    second += std::pow(double{element(b, k, j)}, 2);
  }
  const bool both = first >= 1e-30 && first <= 1e30 && second >= 1e-30 && second <= 1e30;
  return both ? product / (std::sqrt(first) * std::sqrt(second)) : std::numeric_limits<double>::quiet_NaN();
}

inline Similarity token_similarity(const PlacedTokens& tokens, const PlacedTokens& before,
                                   std::int64_t columns) {
  const auto crop = [columns](std::int32_t place) {
    return place / columns / kCropEdge * columns + place % columns / kCropEdge;
  };
  Similarity all;
  for (std::int64_t i = 0; i < tokens.embeddings.rows; ++i) {
    all.to_before.push_back(std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t k = 0; k < before.embeddings.rows; ++k)
      if (before.places[k] == tokens.places[i])
        all.to_before.back() = cosine(tokens.embeddings, i, before.embeddings, k);
    std::vector<double> alike;
    for (std::int64_t k = 0; k < tokens.embeddings.rows; ++k)
      if (crop(tokens.places[k]) == crop(tokens.places[i]))
        if (const double one = cosine(tokens.embeddings, i, tokens.embeddings, k); !std::isnan(one))
          alike.push_back(one);
    double mean = 0, squares = 0;
    for (const double one : alike) mean += one / static_cast<double>(alike.size());
    for (const double one : alike) squares += (one - mean) * (one - mean);
    // Nothing divided by nothing is what one without a direction has.
    all.spread.push_back(squares / static_cast<double>(alike.size()));
  }
  return all;
}

}  // namespace vigil::kernels::reference
