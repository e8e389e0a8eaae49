#include "engine/kv/retrieval/hc_table.h"

#include <stdexcept>

#include "kernels/convert/convert.h"
#include "kernels/rope/rope.h"

namespace vigil::retrieval {
namespace {

const ResvSettings& checked(const ResvSettings& settings) {
  check(settings);
  return settings;
}

}  // namespace

HcTable::HcTable(const kernels::Stream& stream, const KeyShape& shape, const ResvSettings& settings,
                 const FirstRoom& room)
    : settings_(checked(settings)), store_(stream, shape, settings.n_hp, settings.bits, room) {
  if (settings.keys == HashedKeys::still && shape.head_dim % 2 != 0)
    throw std::invalid_argument("keys: heads of an odd width have no angles that could stand still");
  planes_.assign(stream, kernels::hyperplanes(settings.n_hp, shape.cols(), settings.seed));
}

void HcTable::append(kernels::Stream& stream, const NewKeys& keys) {
  const KeyShape& shape = store_.shape();
  kernels::ConstMatrix hashed = keys.keys;
  if (hashed.cols != shape.cols() || hashed.rows % shape.layers != 0)
    throw std::invalid_argument("keys do not fit their table");
  const std::int64_t count = hashed.rows / shape.layers;
  if (count == 0) return;
  if (settings_.keys == HashedKeys::still) {
    if (keys.cos == nullptr || keys.sin == nullptr)
      throw std::invalid_argument("keys that stand still need the angles of their times");
    still_.reserve(stream, static_cast<std::size_t>(hashed.rows * hashed.cols) * sizeof(float));
    const kernels::Matrix still =
        kernels::dense(still_.data(), kernels::DType::f32, hashed.rows, hashed.cols);
    kernels::convert_rows(stream, hashed, still);
    for (std::int64_t layer = 0; layer < shape.layers; ++layer)
      kernels::rope(stream, still.rows_from(layer * count, count), shape.head_dim, keys.cos, keys.sin);
    hashed = still;
  }
  hashes_.reserve(stream, static_cast<std::size_t>(hashed.rows) * sizeof(std::uint64_t));
  projections_.reserve(stream, static_cast<std::size_t>(hashed.rows * settings_.n_hp) * sizeof(float));
  kernels::hash_keys(stream, hashed, planes_.data(), settings_.n_hp, projections_.as<float>(),
                     hashes_.as<std::uint64_t>());
  store_.append(stream, hashed, hashes_.as<std::uint64_t>(), projections_.as<float>(), settings_.th_hp);
}

void HcTable::select(kernels::Stream& stream, int layer, kernels::ConstMatrix q, float scale,
                     const kernels::ClusterSelection& to) const {
  kernels::select_clusters(stream, q, store_.keys(layer), scale, choice(), to);
}

}  // namespace vigil::retrieval
