// Passes of a model over all devices that share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/language/decoder.h"
#include "engine/model/language/positions.h"
#include "engine/model/language/sampler.h"
#include "engine/past/past_attend.h"
#include "engine/run/cached_model.h"
#include "engine/run/passes.h"
#include "engine/run/rank_team.h"
#include "kernels/attention/attention.h"
#include "kernels/device/matrix.h"
#include "kernels/device/replay.h"
#include "kernels/rope/rope.h"

namespace vigil::run {

/// Runs passes on streams and with working memory of its own: all parts of the model at once, each on its
/// stream and, but for the first, on a thread of its own. Not thread-safe; several may run over one model at
/// the same time. After an exception it is as good as new, and what the pass was to write is undefined; of
/// one device, what was submitted before may still be running (`settle`).
class PassRunner final : public Passes {
 public:
  /// A stream for each part of the model, on its device. `other`: the model whose windows go on here, the
  /// same in as many parts with pages of the same size; null: none. Throws std::invalid_argument otherwise.
  PassRunner(CachedModel& model, const std::vector<kernels::Stream>& streams,
             const CachedModel* other = nullptr);

  /// Of the first part, where what enters a pass is put together.
  const kernels::Stream& stream() const { return lanes_.front().stream; }

  /// Waits for all that was submitted. For whoever gives pages back after an exception: passes that were
  /// submitted before it may still be writing them. An error of a device is told by the next pass.
  void settle() noexcept override;

  void run(const Pass& pass) override;
  std::span<const float> key_distances(const Pass& pass) override;
  void copy_pages(std::span<const kv::PageCopy> copies) override;
  void take_pages(std::span<const kv::PageCopy> copies) override;
  std::unique_ptr<SequencePast> make_past(const past::PastOptions& options) override;
  /// A page's parts lie one behind the other, in the order of the model's.
  std::size_t page_bytes() const override { return static_cast<std::size_t>(model_.page_bytes()); }
  std::uint64_t pages_form() const override;
  void read_pages(std::span<const kv::PageId> pages, std::byte* to) override;
  void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) override;

  std::int32_t likeliest(std::size_t i) const override { return likeliest_[i]; }
  /// The first call after a pass, and one that asks for more than those before, brings those of all outputs
  /// from the devices.
  std::span<const model::Candidate> likeliest(std::size_t i, std::size_t count) override;
  /// Brings them from the devices.
  std::span<const float> logits(std::size_t i) override;

  /// Numbers of sequences whose step is kept as a recording on each device; 0 on the CPU.
  std::size_t recorded_steps() const { return lanes_.front().steps.recorded(); }

 private:
  /// What one part of the model works with.
  struct Lane {
    ModelPart* part;
    kernels::Stream stream;
    /// Of passes with rows of windows, and of those with a token of each sequence: what these send to the
    /// device of their few rows would else be as long as the largest pass.
    model::Decoder::Workspace large = {}, small = {};
    /// The one of the pass that was prepared last.
    bool is_small = false;
    model::Decoder::Workspace& workspace() { return is_small ? small : large; }
    kernels::Buffer hidden = {};
    /// Of the last pass, on the device and on the host: the columns of the largest of this part's logits,
    /// then these logits.
    kernels::Buffer largest = {};
    std::vector<std::int32_t> columns = {};
    std::vector<float> values = {};
    /// Of the last pass, on the device.
    kernels::ConstMatrix logits = {};
    /// The likeliest few of each output: their logits, then their columns.
    kernels::Buffer candidates = {};
    model::Decoder::Prepared prepared = {};
    /// Of the last probe, on the device and on the host: what this part's heads add to the distances.
    const float* probed = nullptr;
    std::vector<float> distances = {};
    /// Of passes with one token of each sequence, by how many there are.
    kernels::Replay steps = {};
  };

  bool shared() const { return lanes_.size() > 1; }
  /// Calls `body` for all lanes at once; if one fails, the others do not wait for it.
  void on_all(const std::function<void(Lane& lane)>& body);
  /// Held while a pass is submitted to several devices.
  std::unique_lock<std::mutex> submission();
  /// On all devices before anything runs on one of them: what the host does meanwhile may wait for a device,
  /// where others would wait for it. (A lane's thread that waits within a pass waits for what all lanes have
  /// submitted by then.) `pass.hidden` is the first lane's.
  void prepare(const model::Decoder::Pass& pass, bool one_of_each);
  /// How the rows of a pass attend.
  const model::Attend& attend_of(const Pass& pass);
  /// What enters a pass, but for one of tokens that has results: f32 [rows, hidden_size] on the first lane's
  /// device.
  float* compose(const Pass& pass);
  /// Of f32 [rows, hidden_size].
  std::size_t bytes_of(std::size_t rows) const;
  /// The same on the other lanes'.
  void spread(const float* hidden, std::size_t rows);
  void reserve_largest(std::size_t outputs);
  /// Brings the likeliest tokens of a pass.
  void fetch_outputs(std::size_t outputs);
  /// A pass with results.
  static void submit_step(Lane& lane, bool one_of_each);
  static void fetch_largest(Lane& lane);
  /// Adds the `count` largest of the lane's logits to each output's candidates.
  void fetch_candidates(Lane& lane, std::size_t count);

  CachedModel& model_;
  const CachedModel* other_;
  std::vector<Lane> lanes_;
  RankTeam team_;
  past::PastAttend past_attend_;
  kernels::Buffer composed_;
  /// Of a pass that has no other rows.
  std::vector<std::int32_t> tokens_;
  /// Those that were asked for last.
  std::vector<float> logits_;
  /// Of the last pass.
  std::vector<std::int32_t> likeliest_;
  /// Of each output as many as were asked for, and that number.
  std::vector<std::vector<model::Candidate>> candidates_;
  std::size_t asked_ = 0;
  /// Of the last probe.
  std::vector<float> distances_;
};

}  // namespace vigil::run
