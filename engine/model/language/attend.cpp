#include "engine/model/language/attend.h"

namespace vigil::model {
namespace {

class FullAttention final : public Attend {
 public:
  void attend(kernels::Stream& stream, int /*rank*/, int /*layer*/, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override {
    kernels::paged_attention(stream, q, kv, plan, scale, out);
  }
};

}  // namespace

const Attend& full_attention() {
  static const FullAttention all;
  return all;
}

}  // namespace vigil::model
