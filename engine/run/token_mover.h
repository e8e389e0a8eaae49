// The seam by which what is remembered of tokens leaves a device and comes back, beside its passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "engine/kv/forms.h"
#include "engine/model/language/positions.h"
#include "engine/model/vision/visual_tokens.h"
#include "kernels/device/host_buffer.h"
#include "kernels/device/mark.h"

namespace vigil::run {

/// What is kept of some tokens in the host's memory: keys and values of all layers and KV heads as
/// kernels::PackedShape says, whatever shares the model; or embeddings, bf16 [tokens, hidden_size].
struct MovedTokens {
  kv::Form form = kv::Form::bf16;
  std::int64_t tokens = 0;
  /// `size` of them; null if there are none.
  kernels::HostBytes bytes;
  std::size_t size = 0;
  /// When they have come there: nobody reads them before.
  kernels::Mark arrived;

  /// Another handle on the same bytes, once they have arrived.
  MovedTokens shared() const {
    MovedTokens other;
    other.form = form;
    other.tokens = tokens;
    other.bytes = bytes;
    other.size = size;
    return other;
  }
};

/// Called by whoever runs the passes, whose order it keeps to. Not thread-safe.
class TokenMover {
 public:
  virtual ~TokenMover() = default;

  /// Memory of the host as copies from and to these devices want it, so many bytes of it at most.
  virtual std::unique_ptr<kernels::HostMemory> make_memory(std::uint64_t most) const = 0;

  /// Bytes of so many tokens in this form.
  virtual std::size_t bytes_of(kv::Form form, std::int64_t tokens) const = 0;

  /// Packs the keys and values in these slots, which passes before it have written; those that follow may
  /// write to them again. Absent, and nothing was done, where there is no room: none in `to`, or too much is
  /// under way. Throws DeviceLost.
  virtual std::optional<MovedTokens> pack(std::span<const std::int32_t> slots, kv::Form form,
                                          kernels::HostMemory& to) = 0;
  /// The embeddings of these patches, one after the other. As `pack`.
  virtual std::optional<MovedTokens> pack_embeddings(std::span<const model::VisualTokensPtr> patches,
                                                     kernels::HostMemory& to) = 0;

  /// Some tokens of a packed page, or of some layers of it, and where they go.
  struct Unpacking {
    kv::Form form = kv::Form::bf16;
    /// Of the packed page.
    std::int64_t tokens = 0;
    /// Those of the layers [layer, layer + layers); 0: of all of them.
    std::span<const std::byte> bytes;
    std::int64_t layer = 0, layers = 0;
    /// Of its tokens [first, first + slots.size()).
    std::int64_t first = 0;
    std::span<const std::int32_t> slots;
    /// By how much each is turned to another position; empty: it stays where it was.
    std::span<const model::Position> by;
  };
  /// Writes them into the cache, after all passes before and ahead of those that follow. The bytes may go
  /// when it returns. Throws std::invalid_argument for bytes that are not as many as the form has,
  /// DeviceLost.
  virtual void unpack(const Unpacking& page) = 0;
};

}  // namespace vigil::run
