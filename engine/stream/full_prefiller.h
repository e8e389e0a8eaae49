// Prefill by full computation: every window from its first token. The yardstick of everything that saves
// work.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/run/cached_model.h"
#include "engine/stream/turn.h"
#include "engine/stream/yes_no.h"

namespace vigil::stream {

class FullPrefiller final : public WindowPrefiller {
 public:
  struct Options {
    /// Rows of one forward pass: enough to keep the matrix products busy, few enough for their results to
    /// stay in a cache.
    std::int64_t chunk_rows = 1024;
  };

  /// Works on `streams`, one for each part of the model. Throws ModelError for a tokenizer that has no token
  /// for "Yes" or "No".
  FullPrefiller(std::shared_ptr<run::CachedModel> model, const std::vector<kernels::Stream>& streams,
                const Options& options);

  std::int64_t max_visual_tokens() const override;
  std::int64_t room() const override;
  std::int64_t room_for(const WindowRequest& request) const override;
  std::vector<AskedWindowPtr> ask(std::span<const WindowRequest> requests) override;

 private:
  /// A window whose frames have a place in the cache, and where its text goes on.
  struct Placed {
    kv::View view;
    model::PositionBuilder positions;
    /// f32 [rows, hidden_size] on the stream's device: what enters the first layer.
    kernels::Buffer hidden;
  };

  /// What a call of `ask` makes.
  struct Asked {
    std::vector<Placed> placed;
    std::vector<std::unique_ptr<CachedWindow>> windows;
  };

  void compute(std::span<const WindowRequest> requests, Asked& asked);
  Placed place(const WindowRequest& request);
  /// Computes all rows of all windows, in passes of `chunk_rows` rows of one or several windows.
  void fill(std::span<Placed> windows);
  void ask_questions(std::span<Turn* const> turns);

  std::shared_ptr<run::CachedModel> model_;
  Options options_;
  YesNo words_;
  TurnRunner runner_;
  /// The rows of one pass.
  kernels::Buffer pass_;
};

}  // namespace vigil::stream
