// The seam between whoever has a sequence and what it has outside of the pages (engine/past/), over all parts
// of a model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vigil::run {

/// Belongs to the passes that made it (`Passes::make_past`), and is used in their thread, between passes;
/// those have to outlive it. Appending waits for what the passes have submitted. Its functions throw what
/// those of past::Past do, and DeviceLost; it is of no use after that.
class SequencePast {
 public:
  virtual ~SequencePast() = default;

  /// The next patch, whose keys and values lie in these slots of the cache, which may be given away as soon
  /// as it returns: what is written there is written by later passes. times: of each token, its position on
  /// the axes of time.
  virtual void append(std::span<const std::int32_t> slots, std::span<const std::int32_t> times) = 0;
  /// Lays what was appended since: whoever puts it into a pass has called it.
  virtual void lay() = 0;
  /// The oldest block of patches goes; what is left is to be laid again.
  virtual void forget_block() = 0;

  /// It may take so many bytes of the host's memory from now on, on all devices. Where it has more, its
  /// oldest blocks go, for which it waits for what the passes have submitted; what is left is to be laid
  /// again, which throws where the newest block has no room by itself.
  virtual void resize(std::int64_t host_bytes) = 0;

  /// The one that these passes know, if this is one around it.
  virtual SequencePast& underlying() { return *this; }

  virtual std::int64_t tokens() const = 0;
  /// The patches of each block, the oldest first.
  virtual std::vector<int> patches() const = 0;
  /// On all devices.
  virtual std::int64_t host_bytes() const = 0;
  virtual std::int64_t device_bytes() const = 0;
};

}  // namespace vigil::run
