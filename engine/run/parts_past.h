// A sequence's past in as many parts as its model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/past/past.h"
#include "engine/run/cached_model.h"
#include "engine/run/sequence_past.h"
#include "kernels/device/stream.h"

namespace vigil::run {

/// `past::Past` for each part of a model, on the streams of its passes.
class PartsPast final : public SequencePast {
 public:
  /// streams: one a part, as the passes have them; the model has to outlive it. What options says of bytes is
  /// of all parts together. Throws as past::Past does.
  PartsPast(const CachedModel& model, std::vector<kernels::Stream> streams, past::PastOptions options);
  /// Waits for what is still written to its memory.
  ~PartsPast() override;

  void append(std::span<const std::int32_t> slots, std::span<const std::int32_t> times) override;
  void lay() override;
  void forget_block() override;
  void resize(std::int64_t host_bytes) override;
  std::int64_t tokens() const override { return parts_.front()->tokens(); }
  std::vector<int> patches() const override { return parts_.front()->patches(); }
  std::int64_t host_bytes() const override;
  std::int64_t device_bytes() const override;

  /// In the order of the model's parts.
  std::span<past::Past* const> parts() const { return borrowed_; }

 private:
  /// Clusters differ from part to part, and so does what has no room: all forget what one has.
  bool forgets_alike();

  const CachedModel& model_;
  std::vector<kernels::Stream> streams_;
  std::vector<std::unique_ptr<past::Past>> parts_;
  std::vector<past::Past*> borrowed_;
};

}  // namespace vigil::run
