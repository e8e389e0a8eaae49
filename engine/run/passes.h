// The seam between what is to be computed and what computes it: a pass of the language model, wherever it
// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/language/attend.h"
#include "engine/model/language/positions.h"
#include "engine/model/language/sampler.h"
#include "engine/run/sequence_past.h"
#include "kernels/attention/attention.h"
#include "kernels/device/matrix.h"

namespace vigil::past {
struct PastOptions;
}

namespace vigil::run {

/// One pass over any rows of any sequences.
struct Pass {
  /// What enters, in the order of the rows: tokens, or rows that are embedded already.
  struct Rows {
    std::span<const std::int32_t> tokens;
    /// [rows, hidden_size], f32 or bf16, on the model's first device; none where there are tokens.
    kernels::ConstMatrix embedded;

    std::int64_t count() const {
      return tokens.empty() ? embedded.rows : static_cast<std::int64_t>(tokens.size());
    }
  };
  std::vector<Rows> rows;
  /// One a row.
  std::vector<model::Position> positions;
  /// They may be far from zero: a camera's stream goes on for ever.
  bool is_far = false;
  /// What the rows see of the keys of their segments; has to live until the pass was run.
  const model::Attend* attend = &model::full_attention();
  /// Whose rows these are, in order, and which keys each sees; they cover all rows.
  std::vector<kernels::AttentionSegment> segments;
  /// What lies before the keys of a segment and is in no page: its rows see of it what each layer and KV head
  /// chooses by all of them together (past::PastAttend), so that rows of one pass may see what these rows in
  /// passes of their own would not. Not beside another `attend`, nor where keys are looked at
  /// (`key_distances`).
  struct Before {
    std::size_t segment = 0;
    /// Of these passes, and laid.
    SequencePast* past = nullptr;
    /// The rows' position on the axes of time, as of past::Past::choose.
    std::int32_t now = 0;
  };
  std::vector<Before> before;
  /// Ascending: the rows that choose what follows.
  std::vector<std::int32_t> outputs;
};

/// Runs passes one after the other. Not thread-safe.
class Passes {
 public:
  virtual ~Passes() = default;

  /// Writes keys and values of all rows into their slots. May return before that is done if nothing comes out
  /// of it. Throws std::bad_alloc where there is no room, DeviceLost, and std::invalid_argument for rows that
  /// do not fit each other; what the pass was to write is undefined then, and may still be written
  /// (`settle`).
  virtual void run(const Pass& pass) = 0;

  // Of the last pass, until the next one:

  /// The likeliest token after outputs[i], the first of equal ones; -1 if no logit is above -infinity.
  virtual std::int32_t likeliest(std::size_t i) const = 0;
  /// The `count` likeliest tokens after outputs[i], or all that are possible if these are fewer: the largest
  /// logits first, equal ones by id. `count` is at most kernels::kMostTopK.
  virtual std::span<const model::Candidate> likeliest(std::size_t i, std::size_t count) = 0;
  /// The logits after outputs[i], on the host, until the next call.
  virtual std::span<const float> logits(std::size_t i) = 0;

  /// How far the second layer's keys that are in the cache are from what they would be, of each row of
  /// `pass.outputs`: squared differences summed over all KV heads, in f32, on the host until the next call
  /// (model::Decoder::prepare_probe says how, which rows are which, and what is written: nothing of these). A
  /// row costs about a layer. None is far in a model of one layer. Waits for what comes out. What the last
  /// pass has told is gone. Throws as `run` does.
  virtual std::span<const float> key_distances(const Pass& pass) = 0;

  /// Copies whole pages of the cache to others, after all passes before and ahead of those that follow.
  virtual void copy_pages(std::span<const kv::PageCopy> copies) = 0;

  /// Copies pages of another model's cache, whose windows go on here, into this one's, in the same order.
  /// Throws std::logic_error where there is no other model.
  virtual void take_pages(std::span<const kv::PageCopy> copies) = 0;

  /// The past of one sequence, empty. Throws as past::Past does, and std::logic_error of passes that know
  /// none.
  virtual std::unique_ptr<SequencePast> make_past(const past::PastOptions& options);

  // Pages on their way to another process, in the host's memory.

  /// Of a page on all devices together, in bytes; and a sum over what pages have to have in common to go from
  /// one to the other: the model's sizes, theirs, their number format, and how devices share them. Of two
  /// models of one kind, weights are not compared.
  virtual std::size_t page_bytes() const = 0;
  virtual std::uint64_t pages_form() const = 0;
  /// Page i goes to to[i * page_bytes()], after all passes before. Complete when it returns.
  virtual void read_pages(std::span<const kv::PageId> pages, std::byte* to) = 0;
  /// Page i is from[i], which has page_bytes(); after all passes before and ahead of those that follow. What
  /// it was read from may change afterwards.
  virtual void write_pages(std::span<const kv::PageId> pages, std::span<const std::byte* const> from) = 0;

  /// Waits for all that was submitted, for whoever gives pages away after an exception.
  virtual void settle() noexcept = 0;
};

}  // namespace vigil::run
