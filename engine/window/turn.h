// A question on its way to an answer, and the passes that take many of them a step further.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/decoder.h"
#include "engine/model/positions.h"
#include "engine/model/sampler.h"
#include "engine/model/tokenizer.h"
#include "engine/window/answerer.h"
#include "engine/window/cached_model.h"
#include "kernels/device/matrix.h"
#include "kernels/device/replay.h"

namespace vigil::window {

/// Owns its part of the cache. Not thread-safe.
struct Turn {
  /// `asked` goes on in `view`, a fork of its window's, after `positions`. Throws std::invalid_argument for
  /// a question that the sampler or the prompt refuses.
  Turn(const CachedModel& model, Question asked, kv::View view, model::PositionBuilder positions);

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
  /// The whole answer was handed out.
  bool completed = false;
};

/// A window that was asked by FullPrefiller.
struct CachedWindow final : AskedWindow {
  explicit CachedWindow(std::shared_ptr<CachedModel> owner) : model(std::move(owner)) {}

  std::span<const Answer> answers() const override { return begun; }

  /// First, since the turns' views lie in its pages.
  std::shared_ptr<CachedModel> model;
  std::vector<Turn> turns;
  /// The answers as they were when the window had been asked.
  std::vector<Answer> begun;
};

/// Runs passes on a stream and with working memory of its own. Not thread-safe.
class TurnRunner {
 public:
  TurnRunner(CachedModel& model, kernels::Stream stream);

  const kernels::Stream& stream() const { return stream_; }

  /// The embeddings of tokens: f32 [tokens, hidden_size] at `to`, on the stream's device.
  void embed(std::span<const std::int32_t> tokens, float* to);

  /// Rows without results: keys and values of a part of a prompt. `hidden`: f32 [rows, hidden_size] on the
  /// stream's device.
  void fill(float* hidden, std::span<const model::Position> positions,
            std::span<const kernels::AttentionSegment> segments);

  /// Computes the pending tokens of all turns in one pass. Afterwards `logits(i)` are those that choose the
  /// next token of turns[i], until the next pass.
  void advance(std::span<Turn* const> turns);
  /// On the host; the first call after a pass brings all of them there.
  std::span<const float> logits(std::size_t i);

  /// Takes the next token of turns[i] of the last pass: it is done, or the token is pending.
  void choose(Turn& turn, std::size_t i);

 private:
  CachedModel& model_;
  kernels::Stream stream_;
  model::Decoder::Workspace workspace_;
  kernels::Buffer hidden_, largest_;
  /// Of passes with one token of each turn, by how many there are.
  kernels::Replay steps_;
  /// Of the last pass: on the device, on the host once somebody asked, and where the largest of each are.
  kernels::Matrix logits_there_;
  std::vector<float> logits_;
  std::vector<std::int32_t> likeliest_;
};

}  // namespace vigil::window
