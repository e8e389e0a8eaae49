// Pages as the cameras of a demo leave them: what a day of memory is made of without a model that looks at
// anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/duration.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"
#include "engine/kv/page_store.h"
#include "engine/memory/page_maker.h"
#include "engine/model/files/config.h"
#include "engine/run/token_mover.h"

namespace vigil::bench {

/// What each camera sees: a patch of `rows` x `columns` tokens every `patch`, each of which is kept with a
/// probability of `kept`; of those that are kept `standing_out` stand out.
struct MadeShape {
  kv::PageLayout layout;
  /// The width of an embedding.
  std::int64_t hidden = 0;
  std::int64_t rows = 8, columns = 8;
  double kept = 0.28;
  double standing_out = 0.02;
  base::Duration patch = std::chrono::seconds(1);
  /// How far two patches lie apart in positions.
  std::int64_t step = 2;

  /// Of a model that sees pictures of this size, in pixels.
  static MadeShape of(const model::ModelConfig& model, int width, int height);
};

/// The bytes of pages, which all share them: made up, but numbers in every form (bf16 below 2), so that a
/// model can compute with them.
class MadeBytes {
 public:
  explicit MadeBytes(const MadeShape& shape, std::uint64_t seed = 1);

  /// Of at most as many tokens as a page has. Throws std::invalid_argument for more.
  run::MovedTokens of(kv::Form form, std::int64_t tokens) const;

 private:
  MadeShape shape_;
  std::int64_t most_tokens_;
  kernels::HostBytes bytes_;
};

/// A camera that goes on without a gap; its pages are as memory::PageMaker makes them. Not thread-safe.
class MadeCamera {
 public:
  MadeCamera(history::CameraId id, const MadeShape& shape, std::uint64_t seed);

  const history::CameraId& id() const { return id_; }

  /// It sees the patch that begins then (wall time in nanoseconds). A page in these forms, if that completes
  /// one or begins another hour.
  std::optional<memory::FreshPage> see(std::int64_t from, std::span<const kv::Form> forms,
                                       const MadeBytes& bytes);

 private:
  std::optional<memory::FreshPage> complete(std::span<const kv::Form> forms, const MadeBytes& bytes);

  history::CameraId id_;
  MadeShape shape_;
  std::mt19937_64 random_;
  std::int64_t seen_ = 0;
  history::PageInfo page_;
  /// Of each of its patches, what stands out.
  std::vector<base::GridMask> standing_out_;
};

}  // namespace vigil::bench
