// The implementations behind wicsum.h, which has checked what they are given.
#pragma once

#include "kernels/wicsum/wicsum.h"

namespace vigil::kernels {
namespace cpu {
void select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                     const WicsumChoice& choice, const ClusterSelection& to);
}
namespace cuda {
void select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                     const WicsumChoice& choice, const ClusterSelection& to);
}
}  // namespace vigil::kernels
