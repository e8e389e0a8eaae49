// The memory of one stream's clusters, in all layers, which grows with them and forgets nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"
#include "kernels/hash_clusters/hash_clusters.h"
#include "kernels/wicsum/wicsum.h"

namespace vigil::retrieval {

/// The shape of a stream's keys, and the type that the cache has them in.
struct KeyShape {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  kernels::DType dtype = kernels::DType::bf16;

  std::int64_t cols() const { return std::int64_t{kv_heads} * head_dim; }
  /// Of the key and the value of a token in one layer.
  std::int64_t kv_bytes() const { return 2 * cols() * static_cast<std::int64_t>(kernels::size_of(dtype)); }
};

/// Room that a store begins with; it has more whenever it needs more.
struct FirstRoom {
  std::int64_t clusters = 1024;
  std::int64_t tokens = 4096;
};

/// On one device, whose stream is handed in each time and is the same. Adding waits for the device only where
/// the store may have to grow, choosing on the device never does. Move-only, not thread-safe. What a call
/// throws besides is std::bad_alloc (OutOfDeviceMemory): then the store is to be given up.
class ClusterStore {
 public:
  /// Throws std::invalid_argument for a shape or a room of nothing.
  ClusterStore(const kernels::Stream& stream, const KeyShape& shape, std::int64_t planes,
               kernels::ClusterBits compared, const FirstRoom& room = {});

  /// `join_clusters` (kernels/hash_clusters) of the next tokens. keys: [layers * count, cols], layer after
  /// layer.
  void append(kernels::Stream& stream, kernels::ConstMatrix keys, const std::uint64_t* hashes,
              const float* projections, int threshold);

  const KeyShape& shape() const { return shape_; }
  std::int64_t tokens() const { return tokens_; }
  /// Clusters that a layer has room for now.
  std::int64_t capacity() const { return capacity_; }
  /// On the device, all of it.
  std::int64_t bytes() const;

  /// One layer's as `select_clusters` takes them, valid until the store grows.
  kernels::ClusterKeys keys(int layer) const;

  /// What is in one layer, on the host: waits for the device.
  std::int64_t clusters(const kernels::Stream& stream, int layer) const;
  std::vector<std::int32_t> counts(const kernels::Stream& stream, int layer) const;
  std::vector<std::int32_t> assigned(const kernels::Stream& stream, int layer) const;

  /// `select_clusters` with all that `keys` has, brought to the host: a list a KV head, ascending.
  std::vector<std::vector<std::int32_t>> choose(kernels::Stream& stream, const kernels::ClusterKeys& keys,
                                                kernels::ConstMatrix q, float scale,
                                                const kernels::WicsumChoice& choice);

 private:
  /// [layers, rows of some bytes].
  struct Rows {
    kernels::Buffer memory;
    std::int64_t row_bytes = 0;
  };

  void make_room(const kernels::Stream& stream, std::int64_t count);
  void move(const kernels::Stream& stream, Rows& rows, std::int64_t used, std::int64_t from,
            std::int64_t to) const;
  void grow_clusters(const kernels::Stream& stream, std::int64_t to);
  kernels::HashClusters view() const;

  KeyShape shape_;
  std::int64_t planes_;
  kernels::ClusterBits compared_;
  std::int64_t tokens_ = 0;
  std::int64_t token_room_ = 0;
  std::int64_t capacity_ = 0;
  /// No layer has more clusters.
  std::int64_t at_most_ = 0;
  Rows sums_, projections_, bits_, counts_, assigned_;
  kernels::Buffer clusters_;
  kernels::Buffer lists_;
};

}  // namespace vigil::retrieval
