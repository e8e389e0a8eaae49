#include "engine/model/language/attend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override {
    layers.push_back(layer);
    rows.push_back(q.rows);
    if (layer != blind_) return full_attention().attend(stream, rank, layer, q, kv, plan, scale, out);
    for (std::int64_t row = 0; row < out.rows; ++row) std::fill_n(out.row<float>(row), out.cols, 0.0F);
  }
  mutable std::vector<int> layers;
  mutable std::vector<std::int64_t> rows;

 private:
  int blind_;
};

/// The logits after five tokens.
std::vector<float> logits(const Attend& attend, int layers = 3) {
  run::CachedModel model(
      stream::testing::made_up_model(layers),
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

/// Writes down who is told what, and when. `blind`: the layer that sees nothing.
class Ahead final : public Attend {
 public:
  explicit Ahead(int blind) : blind_(blind) {}
  void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override {
    told.push_back("layer " + std::to_string(layer) + " of " + std::to_string(q.rows));
    if (layer == 0)
      for (std::int64_t row = 0; row < q.rows; ++row)
        first.insert(first.end(), q.row<float>(row), q.row<float>(row) + q.cols);
    blind_.attend(stream, rank, layer, q, kv, plan, scale, out);
  }
  bool looks_ahead() const override { return true; }
  void ahead(kernels::Stream&, int rank, int layer, kernels::ConstMatrix q, const kernels::PagedPlan& plan,
             float scale) const override {
    told.push_back("ahead " + std::to_string(layer) + " of " + std::to_string(q.rows));
    EXPECT_EQ(rank, 0);
    EXPECT_EQ(plan.rows(), q.rows);
    EXPECT_EQ(scale, 1 / std::sqrt(20.0F));
    for (std::int64_t row = 0; row < q.rows; ++row)
      guesses.at(static_cast<std::size_t>(layer))
          .insert(guesses.at(static_cast<std::size_t>(layer)).end(), q.row<float>(row),
                  q.row<float>(row) + q.cols);
  }
  mutable std::vector<std::string> told;
  /// The first layer's queries.
  mutable std::vector<float> first;
  mutable std::array<std::vector<float>, 3> guesses;

 private:
  Blind blind_;
};

TEST(Attend, TheNextLayersQueriesCanBeGuessedByWhatEnteredThisOne) {
  const Ahead sees(-1), first(0), second(1);
  EXPECT_EQ(logits(sees, 4), logits(full_attention(), 4)) << "nothing depends on it";
  EXPECT_EQ(sees.told,
            (std::vector<std::string>{"ahead 0 of 5", "ahead 1 of 5", "layer 0 of 5", "ahead 2 of 5",
                                      "layer 1 of 5", "layer 2 of 5", "layer 3 of 1"}))
      << "the last one asks for fewer rows, and is not guessed";
  logits(first, 4);
  logits(second, 4);
  EXPECT_EQ(sees.guesses[0], sees.first) << "the first layer's are no guess";
  EXPECT_EQ(sees.guesses[1].size(), 5U * 240);
  EXPECT_EQ(first.guesses[1], sees.guesses[1]) << "what the first layer adds comes later";
  EXPECT_NE(first.guesses[2], sees.guesses[2]) << "the second one knows it";
  EXPECT_EQ(second.guesses[2], sees.guesses[2]);
  EXPECT_NE(sees.guesses[1], sees.guesses[2]);
}

TEST(Attend, WhatItLeavesOutIsNotSeen) {
  EXPECT_NE(logits(Blind(1)), logits(full_attention()));
  EXPECT_NE(logits(Blind(1)), logits(Blind(2)));
}

}  // namespace
}  // namespace vigil::model
