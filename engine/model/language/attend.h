// What the queries of a layer see of the keys that they might: the place where attention may become sparse.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Immutable while a pass runs, and shared by all parts of a model that run it.
class Attend {
 public:
  virtual ~Attend() = default;

  /// One layer, counted from 0, of this part's heads. `q`, rotated, and `out`: [rows, heads * head_dim] of
  /// the layer's type; `kv`: the layer's pages, in which the keys and values of the rows are by now; `plan`:
  /// which keys each row may see. Submits to the stream, and waits for nothing. Throws as
  /// kernels::paged_attention.
  virtual void attend(kernels::Stream& stream, int layer, kernels::ConstMatrix q, const kernels::KvLayer& kv,
                      const kernels::PagedPlan& plan, float scale, kernels::Matrix out) const = 0;
};

/// All keys of the plan: what every other way is compared with.
const Attend& full_attention();

}  // namespace vigil::model
