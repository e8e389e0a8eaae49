#include "kernels/similarity/similarity.h"

#include <limits>
#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/similarity/similarity_backends.h"

namespace vigil::kernels {

void token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                      std::int64_t rows, std::int64_t columns, float* to_before, float* spread) {
  constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();
  if (rows < 0 || columns < 0 || (columns > 0 && rows > kMostPlaces / columns))
    throw std::invalid_argument("token_similarity: there is no grid of that size");
  const ConstMatrix& now = tokens.embeddings;
  if ((now.dtype != DType::f32 && now.dtype != DType::bf16) || now.rows < 0 || now.rows > rows * columns ||
      now.stride < now.cols)
    throw std::invalid_argument("token_similarity: the tokens do not fit the grid");
  const ConstMatrix& past = before.embeddings;
  if (past.rows != 0 && (past.dtype != now.dtype || past.cols != now.cols || past.stride < past.cols ||
                         past.rows < 0 || past.rows > rows * columns))
    throw std::invalid_argument("token_similarity: the tokens before do not fit these");
  if (now.rows == 0) return;
  VIGIL_ON_DEVICE(stream, token_similarity(stream, tokens, before, rows, columns, to_before, spread));
}

}  // namespace vigil::kernels
