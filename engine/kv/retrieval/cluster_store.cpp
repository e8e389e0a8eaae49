#include "engine/kv/retrieval/cluster_store.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace vigil::retrieval {

using kernels::Buffer;
using kernels::ClusterBits;
using kernels::Stream;

namespace {

std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

ClusterStore::ClusterStore(const Stream& stream, const KeyShape& shape, std::int64_t planes,
                           ClusterBits compared, const FirstRoom& room)
    : shape_(shape), planes_(planes), compared_(compared) {
  if (shape.layers < 1 || shape.kv_heads < 1 || shape.head_dim < 1)
    throw std::invalid_argument("clusters of keys without layers, heads or elements");
  if (room.clusters < 1 || room.clusters > kernels::kMostClusters || room.tokens < 1)
    throw std::invalid_argument("clusters without room");
  sums_.row_bytes = shape.cols() * 4;
  projections_.row_bytes = compared == ClusterBits::mean ? planes * 4 : 0;
  bits_.row_bytes = 8;
  counts_.row_bytes = 4;
  assigned_.row_bytes = 4;
  clusters_ = Buffer(stream, bytes_of(std::int64_t{4} * shape.layers));
  const std::vector<std::int32_t> none(static_cast<std::size_t>(shape.layers));
  kernels::upload(stream, clusters_.data(), none.data(), clusters_.bytes());
  grow_clusters(stream, room.clusters);
  move(stream, assigned_, 0, 0, room.tokens);
  token_room_ = room.tokens;
}

void ClusterStore::move(const Stream& stream, Rows& rows, std::int64_t used, std::int64_t from,
                        std::int64_t to) const {
  Buffer larger(stream, bytes_of(shape_.layers * to * rows.row_bytes));
  for (std::int64_t layer = 0; layer < shape_.layers && used * rows.row_bytes > 0; ++layer)
    kernels::copy(stream, larger.data() + layer * to * rows.row_bytes,
                  rows.memory.data() + layer * from * rows.row_bytes, bytes_of(used * rows.row_bytes));
  rows.memory = std::move(larger);
}

void ClusterStore::grow_clusters(const Stream& stream, std::int64_t to) {
  for (Rows* rows : {&sums_, &projections_, &bits_}) move(stream, *rows, at_most_, capacity_, to);
  // Clusters that have not begun have no tokens.
  Buffer counts(stream, bytes_of(shape_.layers * to * 4));
  const std::vector<std::int32_t> none(static_cast<std::size_t>(shape_.layers * to));
  kernels::upload(stream, counts.data(), none.data(), counts.bytes());
  for (std::int64_t layer = 0; layer < shape_.layers && at_most_ > 0; ++layer)
    kernels::copy(stream, counts.data() + layer * to * 4, counts_.memory.data() + layer * capacity_ * 4,
                  bytes_of(at_most_ * 4));
  counts_.memory = std::move(counts);
  capacity_ = to;
}

void ClusterStore::make_room(const Stream& stream, std::int64_t count) {
  if (tokens_ + count > token_room_) {
    const std::int64_t to = std::max(tokens_ + count, 2 * token_room_);
    move(stream, assigned_, tokens_, token_room_, to);
    token_room_ = to;
  }
  if (at_most_ + count <= capacity_) return;
  std::vector<std::int32_t> there(static_cast<std::size_t>(shape_.layers));
  kernels::download(stream, there.data(), clusters_.data(), clusters_.bytes());
  at_most_ = *std::max_element(there.begin(), there.end());
  // With a quarter left, it is some time until the next look.
  if (4 * (at_most_ + count) <= 3 * capacity_) return;
  const std::int64_t to =
      std::min(std::max(capacity_ * 3 / 2, 2 * (at_most_ + count)), kernels::kMostClusters);
  if (to > capacity_) grow_clusters(stream, to);
}

void ClusterStore::append(Stream& stream, kernels::ConstMatrix keys, const std::uint64_t* hashes,
                          const float* projections, int threshold) {
  if (keys.rows % shape_.layers != 0) throw std::invalid_argument("keys of a part of the layers");
  const std::int64_t count = keys.rows / shape_.layers;
  make_room(stream, count);
  kernels::join_clusters(stream, keys, hashes, projections, tokens_, threshold, view());
  tokens_ += count;
  at_most_ = std::min(at_most_ + count, capacity_);
}

kernels::HashClusters ClusterStore::view() const {
  return {shape_.layers,
          shape_.cols(),
          planes_,
          capacity_,
          token_room_,
          compared_,
          sums_.memory.as<float>(),
          projections_.memory.as<float>(),
          bits_.memory.as<std::uint64_t>(),
          counts_.memory.as<std::int32_t>(),
          clusters_.as<std::int32_t>(),
          assigned_.memory.as<std::int32_t>()};
}

std::int64_t ClusterStore::bytes() const {
  std::size_t bytes = clusters_.bytes();
  for (const Rows* rows : {&sums_, &projections_, &bits_, &counts_, &assigned_})
    bytes += rows->memory.bytes();
  return static_cast<std::int64_t>(bytes);
}

kernels::ClusterKeys ClusterStore::keys(int layer) const {
  return {sums_.memory.as<float>() + layer * capacity_ * shape_.cols(),
          counts_.memory.as<std::int32_t>() + layer * capacity_,
          clusters_.as<std::int32_t>() + layer,
          capacity_,
          shape_.kv_heads,
          shape_.head_dim};
}

std::int64_t ClusterStore::clusters(const Stream& stream, int layer) const {
  std::int32_t count = 0;
  kernels::download(stream, &count, clusters_.as<std::int32_t>() + layer, sizeof(count));
  return count;
}

std::vector<std::int32_t> ClusterStore::counts(const Stream& stream, int layer) const {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(clusters(stream, layer)));
  if (counts.empty()) return counts;
  kernels::download(stream, counts.data(), counts_.memory.as<std::int32_t>() + layer * capacity_,
                    counts.size() * sizeof(std::int32_t));
  return counts;
}

std::vector<std::int32_t> ClusterStore::assigned(const Stream& stream, int layer) const {
  std::vector<std::int32_t> assigned(static_cast<std::size_t>(tokens_));
  if (assigned.empty()) return assigned;
  kernels::download(stream, assigned.data(), assigned_.memory.as<std::int32_t>() + layer * token_room_,
                    assigned.size() * sizeof(std::int32_t));
  return assigned;
}

std::vector<std::vector<std::int32_t>> ClusterStore::choose(Stream& stream, const kernels::ClusterKeys& keys,
                                                            kernels::ConstMatrix q, float scale,
                                                            const kernels::WicsumChoice& choice) {
  const std::int64_t heads = keys.kv_heads;
  lists_.reserve(stream, bytes_of((heads * keys.capacity + 2 * heads) * 4));
  auto* counts = lists_.as<std::int32_t>();
  std::int32_t* lists = counts + 2 * heads;
  kernels::select_clusters(stream, q, keys, scale, choice, {lists, counts, counts + heads});
  std::vector<std::int32_t> count(static_cast<std::size_t>(heads));
  kernels::download(stream, count.data(), counts, count.size() * sizeof(std::int32_t));
  std::vector<std::vector<std::int32_t>> chosen;
  for (std::int64_t head = 0; head < heads; ++head) {
    chosen.emplace_back(static_cast<std::size_t>(count[static_cast<std::size_t>(head)]));
    if (!chosen.back().empty())
      kernels::download(stream, chosen.back().data(), lists + head * keys.capacity,
                        chosen.back().size() * sizeof(std::int32_t));
  }
  return chosen;
}

}  // namespace vigil::retrieval
