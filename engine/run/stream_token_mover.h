// What moves tokens between the pages of a model, whatever shares it, and the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "engine/run/cached_model.h"
#include "engine/run/token_mover.h"
#include "kernels/device/buffer.h"
#include "kernels/device/device_table.h"
#include "kernels/device/mark.h"
#include "kernels/rope/rope.h"

namespace vigil::run {

/// Packs on the streams of the passes, so that nobody holds a page of the cache meanwhile, into memory of the
/// devices; from there copies of their own bring it to the host, beside the passes. Under way may be what
/// `most_staged` bytes of each device hold, and `kFewestStages` of any size: a camera's window leaves several
/// pages at once, each in several forms. What has been taken of a device is kept for the next pages, and
/// embeddings until the next one comes.
class StreamTokenMover final : public TokenMover {
 public:
  static constexpr std::size_t kMostStaged = std::size_t{256} << 20U, kFewestStages = 4;

  /// `streams`: those of the passes, one for each part of the model. The model has to outlive it.
  StreamTokenMover(CachedModel& model, const std::vector<kernels::Stream>& streams,
                   std::size_t most_staged = kMostStaged);
  ~StreamTokenMover() override;
  StreamTokenMover(const StreamTokenMover&) = delete;
  StreamTokenMover& operator=(const StreamTokenMover&) = delete;

  std::unique_ptr<kernels::HostMemory> make_memory(std::uint64_t most) const override;
  std::size_t bytes_of(kv::Form form, std::int64_t tokens) const override;
  std::optional<MovedTokens> pack(std::span<const std::int32_t> slots, kv::Form form,
                                  kernels::HostMemory& to) override;
  std::optional<MovedTokens> pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                             kernels::HostMemory& to) override;
  void unpack(const Unpacking& page) override;

 private:
  /// What is on its way from a device.
  struct Stage {
    kernels::Buffer memory;
    kernels::Mark copied;
    /// What it is made of, where others' memory is read: that goes in the order of another stream.
    std::vector<model::VisualTokensPtr> from = {};
  };
  struct Lane {
    ModelPart* part;
    kernels::Stream passes, copies;
    /// The first of its KV heads.
    std::int64_t head = 0;
    kernels::DeviceTable table = {};
    kernels::Buffer cos = {}, sin = {};
    std::list<Stage> out = {};
    kernels::Buffer in = {};
    const kernels::RopeFrequency* frequencies = nullptr;
    kernels::Buffer frequency_memory = {};
  };

  /// Of pages with the heads of all parts.
  kv::PageLayout whole_layout() const;
  /// One of a lane's that nothing is under way in, with so much room; null if there can be none.
  Stage* free_stage(Lane& lane, std::size_t bytes) const;
  bool is_on_host() const { return lanes_.front().passes.kind() == kernels::DeviceKind::cpu; }

  CachedModel& model_;
  std::size_t most_staged_;
  std::vector<Lane> lanes_;
};

}  // namespace vigil::run
