#include "engine/model/language/attend.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/view.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "tests/engine/made_up_model.h"

namespace vigil::model {
namespace {

/// Counts layers, and leaves out what one of them sees.
class Blind final : public Attend {
 public:
  explicit Blind(int layer) : blind_(layer) {}
  void attend(kernels::Stream& stream, int layer, kernels::ConstMatrix q, const kernels::KvLayer& kv,
              const kernels::PagedPlan& plan, float scale, kernels::Matrix out) const override {
    layers.push_back(layer);
    rows.push_back(q.rows);
    if (layer != blind_) return full_attention().attend(stream, layer, q, kv, plan, scale, out);
    for (std::int64_t row = 0; row < out.rows; ++row) std::fill_n(out.row<float>(row), out.cols, 0.0F);
  }
  mutable std::vector<int> layers;
  mutable std::vector<std::int64_t> rows;

 private:
  int blind_;
};

/// The logits after five tokens.
std::vector<float> logits(const Attend& attend) {
  run::CachedModel model(
      stream::testing::made_up_model(),
      {.memory = {kernels::Stream::cpu(1)}, .compute = kernels::DType::f32, .kv_tokens = 128});
  run::PassRunner passes(model, {kernels::Stream::cpu(1)});
  kv::View view(model.book);
  view.append(5);
  const std::vector<std::int32_t> tokens{5, 6, 7, 8, 2050}, own{0, 1, 2, 3, 4};
  run::Pass pass;
  pass.rows.push_back({tokens, {}});
  for (std::int32_t i = 0; i < 5; ++i) pass.positions.push_back({i, i, i});
  pass.segments.push_back({view.slots(), own, 0});
  pass.outputs.push_back(4);
  pass.attend = &attend;
  passes.run(pass);
  const auto found = passes.logits(0);
  return {found.begin(), found.end()};
}

TEST(Attend, EachLayerAsksItForItsRows) {
  const Blind nobody(-1);
  EXPECT_EQ(logits(nobody), logits(full_attention())) << "the same arithmetic";
  EXPECT_EQ(nobody.layers, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(nobody.rows, (std::vector<std::int64_t>{5, 5, 1})) << "the last one for those that are wanted";
}

TEST(Attend, WhatItLeavesOutIsNotSeen) {
  EXPECT_NE(logits(Blind(1)), logits(full_attention()));
  EXPECT_NE(logits(Blind(1)), logits(Blind(2)));
}

}  // namespace
}  // namespace vigil::model
