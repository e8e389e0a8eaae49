// The part of `Past` that chooses by a layer's queries, and brings what they chose.
#include <cmath>
#include <stdexcept>
#include <vector>

#include "engine/past/past.h"
#include "kernels/convert/convert.h"

namespace vigil::past {

using kernels::ConstMatrix;
using kernels::DType;
using kernels::Matrix;
using kernels::Stream;

namespace {

std::size_t to_size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

ConstMatrix Past::still(Stream& stream, ConstMatrix q, std::int32_t now) {
  const std::vector<std::int32_t> back(to_size(q.rows), -now);
  angles(stream, back, query_turn_);
  turned_queries_.reserve(stream, to_size(q.rows * q.cols) * sizeof(float));
  const Matrix turned = kernels::dense(turned_queries_.data(), DType::f32, q.rows, q.cols);
  kernels::convert_rows(stream, q, turned);
  kernels::rope(stream, turned, shape_.head_dim, query_turn_.as<float>(),
                query_turn_.as<float>() + q.rows * (shape_.head_dim / 2));
  return turned;
}

kernels::ClusterSelection Past::selection(const Choice& choice) const {
  const std::int64_t heads = shape_.kv_heads;
  auto* lists = choice.lists.as<std::int32_t>();
  return {lists, lists + heads * capacity_, lists + heads * capacity_ + heads};
}

kernels::ClusterPieces Past::pieces(int layer) const {
  return {counted_from_,
          begins_.as<std::int64_t>() + layer * capacity_,
          counts_.as<std::int32_t>() + layer * capacity_,
          options_.form,
          shape_.kv_heads,
          shape_.head_dim};
}

void Past::choose(Stream& stream, int layer, ConstMatrix q, float scale, std::int32_t now, Choice& to) {
  if (!is_laid_) throw std::logic_error("a past is asked before it was laid");
  const std::int64_t heads = shape_.kv_heads;
  to.layer = layer;
  to.lists.reserve(stream, to_size(heads * capacity_ + 2 * heads) * sizeof(std::int32_t));
  const kernels::ClusterSelection clusters = selection(to);
  if (is_resv()) {
    if (settings_->keys == retrieval::HashedKeys::still) q = still(stream, q, now);
    kernels::select_clusters(stream, q,
                             {sums_.as<float>() + layer * capacity_ * shape_.cols(),
                              counts_.as<std::int32_t>() + layer * capacity_,
                              clusters_.as<std::int32_t>() + layer, capacity_, heads, shape_.head_dim},
                             scale, {settings_->scores, settings_->rows, settings_->th_wics, 0}, clusters);
    return;
  }
  const auto tokens = static_cast<std::int64_t>(std::llround(options_.share * static_cast<double>(tokens_)));
  const retrieval::ChosenTokens chosen = control_->choose(stream, {layer, q, scale, tokens});
  std::vector<std::int32_t> values(to_size(heads * capacity_ + 2 * heads));
  for (std::int64_t head = 0; head < heads; ++head) {
    std::int32_t count = 0;
    for (const retrieval::TokenRange& range : chosen[to_size(head)])
      for (std::int64_t i = 0; i < range.count; ++i)
        values[to_size(head * capacity_ + count++)] = static_cast<std::int32_t>(range.first + i);
    values[to_size(heads * capacity_ + head)] = values[to_size(heads * capacity_ + heads + head)] = count;
  }
  kernels::upload(stream, to.lists.data(), values.data(), values.size() * sizeof(std::int32_t));
}

void Past::place(Stream& stream, Choice& choice, kernels::FetchedLists to) const {
  choice.places.reserve(stream, to_size(shape_.kv_heads * capacity_) * sizeof(std::int32_t));
  to.places = choice.places.as<std::int32_t>();
  kernels::place_clusters(stream, selection(choice), capacity_, pieces(choice.layer), to);
}

void Past::bring(Stream& stream, const Choice& choice, kernels::FetchedLists to) const {
  to.places = choice.places.as<std::int32_t>();
  kernels::ClusterTurn turn;
  if (turn_rows_ > 0)
    turn = {turn_.as<float>(), turn_.as<float>() + turn_rows_ * (shape_.head_dim / 2),
            angle_rows_.as<std::int32_t>() + choice.layer * capacity_};
  kernels::fetch_clusters(stream, pieces(choice.layer), selection(choice), capacity_, turn, to);
}

}  // namespace vigil::past
