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

  /// One layer, counted from 0, of the heads that the part `rank` has. `q`, rotated, and `out`: [rows, heads
  /// * head_dim] of the layer's type; `kv`: the layer's pages, in which the keys and values of the rows are
  /// by now; `plan`: which keys each row may see. Submits to the stream, and waits for nothing. Throws as
  /// kernels::paged_attention.
  virtual void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
                      const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
                      kernels::Matrix out) const = 0;

  /// Whether `ahead` is to be called, for which each layer computes the next one's queries twice.
  virtual bool looks_ahead() const { return false; }
  /// Before a layer attends: what the queries of the next one, `layer`, may be, which are the next layer's
  /// own projections of what has entered this one; and before that, of the first layer, what they are. `q`
  /// and `plan` as above, for all rows of the pass; not for a last layer that computes some of them alone.
  /// What is chosen by them can come while this layer computes.
  virtual void ahead(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
                     const kernels::PagedPlan& plan, float scale) const {
    static_cast<void>(stream), static_cast<void>(rank), static_cast<void>(layer), static_cast<void>(q);
    static_cast<void>(plan), static_cast<void>(scale);
  }
};

/// All keys of the plan: what every other way is compared with.
const Attend& full_attention();

}  // namespace vigil::model
