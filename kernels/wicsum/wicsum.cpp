#include "kernels/wicsum/wicsum.h"

#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/wicsum/wicsum_backends.h"

namespace vigil::kernels {

void select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                     const WicsumChoice& choice, const ClusterSelection& to) {
  if (keys.kv_heads < 1 || keys.head_dim < 1 || keys.capacity < 1)
    throw std::invalid_argument("select_clusters: a table without room");
  if ((q.dtype != DType::f32 && q.dtype != DType::bf16) || q.cols < 1 ||
      q.cols % (keys.kv_heads * keys.head_dim) != 0)
    throw std::invalid_argument("select_clusters: queries do not fit the table's keys");
  if (!(choice.ratio >= 0 && choice.ratio <= 1))
    throw std::invalid_argument("select_clusters: a ratio of " + std::to_string(choice.ratio) +
                                " is not from 0 to 1");
  if (choice.tokens < 0) throw std::invalid_argument("select_clusters: fewer than no tokens");
  if (choice.scores == WicsumScores::raw && choice.rows == WicsumRows::pooled)
    throw std::invalid_argument("select_clusters: raw scores have no shares that could be pooled");
  VIGIL_ON_DEVICE(stream, select_clusters(stream, q, keys, scale, choice, to));
}

}  // namespace vigil::kernels
