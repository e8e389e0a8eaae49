// A question on its way to an answer, and the passes that take many of them a step further.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/kv/handover.h"
#include "engine/kv/view.h"
#include "engine/model/language/positions.h"
#include "engine/model/language/sampler.h"
#include "engine/model/text/tokenizer.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "engine/stream/answerer.h"

namespace vigil::stream {

/// Owns its part of the cache. Not thread-safe.
struct Turn {
  /// `asked` goes on in `view`, a fork of its window's, after `positions`. Throws std::invalid_argument for
  /// a question that the sampler or the prompt refuses.
  Turn(const run::CachedModel& model, Question asked, kv::View view, model::PositionBuilder positions);

  Question question;
  Answer answer;
  kv::View view;
  model::PositionBuilder positions;
  /// Tokens whose keys and values are still to be computed.
  std::vector<std::int32_t> pending;
  model::Sampler sampler;
  model::StopStrings stops;
  model::StreamDecoder text;
  /// No token follows.
  bool done = false;
  /// A generator took it up, which is done once: what a pass that failed has left of it is unknown.
  bool continued = false;
};

/// A window that was asked by FullPrefiller.
struct CachedWindow final : AskedWindow {
  explicit CachedWindow(std::shared_ptr<run::CachedModel> owner) : model(std::move(owner)) {}

  std::span<const Answer> answers() const override { return begun; }

  /// First, since the turns' views lie in its pages; those of turns that another model has taken over lie in
  /// that one's.
  std::shared_ptr<run::CachedModel> model;
  std::shared_ptr<run::CachedModel> taken_by;
  std::unique_ptr<kv::Handover> handover;
  /// What the turns held before: their room is given back with the window's, as it was counted.
  std::vector<kv::View> left;
  std::vector<Turn> turns;
  /// The answers as they were when the window had been asked.
  std::vector<Answer> begun;
};

/// Takes turns further. Not thread-safe.
class TurnRunner {
 public:
  /// A stream for each part of the model, on its device.
  TurnRunner(run::CachedModel& model, const std::vector<kernels::Stream>& streams)
      : model_(model), passes_(model, streams) {}

  run::PassRunner& passes() { return passes_; }

  /// Computes the pending tokens of all turns in one pass. Afterwards `logits(i)` are those that choose the
  /// next token of turns[i], until the next pass.
  void advance(std::span<Turn* const> turns);
  std::span<const float> logits(std::size_t i) { return passes_.logits(i); }

  /// Takes the next token of turns[i] of the last pass: it is done, or the token is pending.
  void choose(Turn& turn, std::size_t i);

 private:
  /// Chosen from as little as the turn's sampling needs: the likeliest token, the likeliest few, or all
  /// logits.
  std::int32_t next_token(Turn& turn, std::size_t i);

  run::CachedModel& model_;
  run::PassRunner passes_;
};

}  // namespace vigil::stream
