// A table of clusters for tests, with guards around each of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/hash_clusters/hash_clusters.h"
#include "kernels/wicsum/wicsum.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {

/// Values of the host, mirrored to the stream's device.
template <typename T>
class Values {
 public:
  Values(const Stream& stream, std::vector<T> values)
      : values_(std::move(values)), mirror_(stream, std::as_writable_bytes(std::span(values_))) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  T* data() const { return reinterpret_cast<T*>(mirror_.data()); }
  const std::vector<T>& fetch() {
    mirror_.fetch();
    return values_;
  }

 private:
  std::vector<T> values_;
  Mirror mirror_;
};

class ClusterTable {
 public:
  ClusterTable(const Stream& stream, std::int64_t layers, std::int64_t cols, std::int64_t planes,
               std::int64_t capacity, std::int64_t tokens, ClusterBits compared)
      : shape_{layers, cols, planes, capacity, tokens, compared},
        sums_(stream, std::vector<float>(size(layers * capacity * cols), -7)),
        projections_(stream, std::vector<float>(
                                 size(compared == ClusterBits::mean ? layers * capacity * planes : 0), -7)),
        bits_(stream, std::vector<std::uint64_t>(size(layers * capacity), 0x5555)),
        counts_(stream, std::vector<std::int32_t>(size(layers * capacity))),
        clusters_(stream, std::vector<std::int32_t>(size(layers))),
        assigned_(stream, std::vector<std::int32_t>(size(layers * tokens), -7)) {}

  HashClusters view() const {
    HashClusters view = shape_;
    view.sums = sums_.data();
    view.projections = shape_.compared == ClusterBits::mean ? projections_.data() : nullptr;
    view.bits = bits_.data();
    view.counts = counts_.data();
    view.clusters = clusters_.data();
    view.assigned = assigned_.data();
    return view;
  }
  /// Of one layer.
  ClusterKeys keys(std::int64_t layer, std::int64_t kv_heads) const {
    return {sums_.data() + layer * shape_.capacity * shape_.cols,
            counts_.data() + layer * shape_.capacity,
            clusters_.data() + layer,
            shape_.capacity,
            kv_heads,
            shape_.cols / kv_heads};
  }

  std::vector<float> sums(std::int64_t layer) {
    return part(sums_.fetch(), layer * shape_.capacity * shape_.cols, count(layer) * shape_.cols);
  }
  std::vector<std::uint64_t> bits(std::int64_t layer) {
    return part(bits_.fetch(), layer * shape_.capacity, count(layer));
  }
  std::vector<std::int32_t> counts(std::int64_t layer) {
    return part(counts_.fetch(), layer * shape_.capacity, count(layer));
  }
  /// Of all tokens that it has room for.
  std::vector<std::int32_t> assigned(std::int64_t layer) {
    return part(assigned_.fetch(), layer * shape_.tokens, shape_.tokens);
  }
  std::int64_t count(std::int64_t layer) { return clusters_.fetch()[size(layer)]; }

 private:
  static std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }
  template <typename T>
  static std::vector<T> part(const std::vector<T>& all, std::int64_t first, std::int64_t count) {
    return {all.begin() + first, all.begin() + first + count};
  }

  HashClusters shape_;
  Values<float> sums_, projections_;
  Values<std::uint64_t> bits_;
  Values<std::int32_t> counts_, clusters_, assigned_;
};

}  // namespace vigil::kernels
