// Attention of a pass in which sequences may have a past: to the keys in their pages, and to what each layer
// and KV head chooses of what lies before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/language/attend.h"
#include "engine/past/past.h"

namespace vigil::past {

/// out = attention of a layer's queries to the keys of their plan and to the fetched ones of their segment's
/// past, in one softmax (kernels::listed_attention); of a segment without a past, to the plan's alone. Each
/// layer is asked when its queries are there; or, where a past wants that (`PastOptions::ahead`), all but the
/// first one layer ahead by what these are guessed to be (`model::Attend::ahead`): it is chosen on the pass's
/// stream, and brought on one of its own while the layer before computes; what the first one needs, by its
/// own queries, before it attends. What a row sees depends on the rows of its segment that go with it.
///
/// What is fetched lies in lists of one length for all segments of a pass that have a past. Made for one pass
/// after the other: `clear`, `add`, and then whoever runs it. Each part of a model has a list of pasts and
/// working memory of its own, so that the parts may run at once; otherwise not thread-safe.
class PastAttend final : public model::Attend {
 public:
  /// Of a GPU, what brings keys ahead: as many as keep the bus busy
  /// (docs/experiments/2026-11-29-resv-in-a-pass.md). Whoever runs a pass that looks ahead leaves them to it
  /// (kernels::LimitedMultiprocessors), or each waits for the other's end.
  static constexpr int kMultiprocessorsBeside = 8;

  /// How many parts share the model. `room`: tokens that a list has room for at most; 0: as many as the
  /// longest past has. A past that chooses more is cut off: the newest clusters that find no room are left
  /// out, in each list by itself.
  explicit PastAttend(int ranks = 1, std::int64_t room = 0);
  ~PastAttend() override;

  /// Nobody has a past. After an exception, not before `settle`.
  void clear();
  /// The segments of the pass whose keys begin at `keys` have this past, a part of it for each part of the
  /// model; they are borrowed until the pass was run, and laid (`Past::lay`). now: as in `Past::choose`.
  /// Other segments have none. Throws std::invalid_argument for another number of parts, and for no keys.
  void add(std::span<const std::int32_t> keys, std::span<Past* const> parts, std::int32_t now);

  void attend(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
              const kernels::KvLayer& kv, const kernels::PagedPlan& plan, float scale,
              kernels::Matrix out) const override;
  bool looks_ahead() const override;
  void ahead(kernels::Stream& stream, int rank, int layer, kernels::ConstMatrix q,
             const kernels::PagedPlan& plan, float scale) const override;

  /// Waits for what it has brought, for whoever gives pasts away after an exception. Throws DeviceError.
  void settle() const;

  /// Tokens over all layers, KV heads and segments with a past, since it was made, of one part.
  struct Counted {
    std::int64_t chosen = 0, fetched = 0, of = 0;
    double share() const { return of == 0 ? 0 : static_cast<double>(fetched) / static_cast<double>(of); }
  };
  /// From now on counts what is fetched, for which each layer waits: for measuring.
  void count() { counts_ = true; }
  const Counted& counted(int rank) const;
  /// What the lists of one part take of its device.
  std::int64_t list_bytes(int rank) const;

 private:
  struct Sequence {
    const std::int32_t* keys = nullptr;
    std::vector<Past*> parts;
    std::int32_t now = 0;
  };
  /// What was fetched for a layer.
  struct Lists;
  /// Of one part.
  struct Work;

  const Sequence* find(const kernels::AttentionSegment& segment) const;
  /// Tokens that the lists of these segments have room for; 0: none has a past.
  std::int64_t capacity_of(std::span<const kernels::AttentionSegment> segments, int rank) const;
  /// Calls `visit` for each segment of the plan that has a past, with what is its own of the lists.
  template <typename Visit>
  void each(Lists& lists, int rank, const kernels::PagedPlan& plan, const Visit& visit) const;
  /// What these queries choose, and where it will lie.
  void choose(kernels::Stream& stream, Work& work, Lists& to, int rank, int layer, kernels::ConstMatrix q,
              const kernels::PagedPlan& plan, float scale) const;
  /// Brings it.
  void bring(kernels::Stream& stream, Lists& lists, int rank, const kernels::PagedPlan& plan) const;
  static void tally(const kernels::Stream& stream, Work& work, const std::int32_t* fetched, const Past& past,
                    const Past::Choice& choice, std::int64_t kv_heads);

  std::int64_t room_;
  bool counts_ = false;
  std::vector<Sequence> sequences_;
  std::vector<std::unique_ptr<Work>> works_;
};

}  // namespace vigil::past
