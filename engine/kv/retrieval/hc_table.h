// The HC table of one stream: its keys' hash clusters in all layers (section IV.B of V-Rex).
#pragma once

#include <cstdint>

#include "engine/kv/retrieval/cluster_store.h"
#include "engine/kv/retrieval/resv_settings.h"

namespace vigil::retrieval {

/// Keys of the next tokens of a stream, on its device.
struct NewKeys {
  /// f32 or bf16 [layers * count, kv_heads * head_dim], layer after layer, as they lie in the cache.
  kernels::ConstMatrix keys;
  /// f32 [count, head_dim / 2], dense: the angles (kernels/rope/rope.h) that turn a token's keys back to time
  /// 0. Only HashedKeys::still needs them.
  const float* cos = nullptr;
  const float* sin = nullptr;
};

/// As ClusterStore, what it says of waiting, threads and errors too.
class HcTable {
 public:
  /// Throws std::invalid_argument for settings that no table can have (`check`), for a shape of nothing, and
  /// for keys that stand still in heads of an odd width.
  HcTable(const kernels::Stream& stream, const KeyShape& shape, const ResvSettings& settings,
          const FirstRoom& room = {});

  /// Hashes them, and lets them join clusters in their order. Throws std::invalid_argument for keys that do
  /// not fit the shape, and where angles are needed and missing.
  void append(kernels::Stream& stream, const NewKeys& keys);

  /// The clusters that these queries of a layer need, by the settings; stays on the device. q: f32 or bf16
  /// [rows, heads * head_dim]. Where keys stand still, queries are to be turned to the time at which keys are
  /// to be seen: to 0, say, as if all were there at once.
  void select(kernels::Stream& stream, int layer, kernels::ConstMatrix q, float scale,
              const kernels::ClusterSelection& to) const;

  const ResvSettings& settings() const { return settings_; }
  kernels::WicsumChoice choice() const { return {settings_.scores, settings_.rows, settings_.th_wics, 0}; }
  ClusterStore& store() { return store_; }
  const ClusterStore& store() const { return store_; }

 private:
  ResvSettings settings_;
  ClusterStore store_;
  kernels::DeviceArray<float> planes_;
  kernels::Buffer hashes_, projections_, still_;
};

}  // namespace vigil::retrieval
