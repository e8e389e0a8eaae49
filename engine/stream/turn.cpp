#include "engine/stream/turn.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/top_k/top_k.h"

namespace vigil::stream {
namespace {

/// Every id of the prompt at least once, which is all that the repetition penalty asks for.
std::vector<std::int32_t> prompt_ids(const run::CachedModel& model, std::span<const std::int32_t> after) {
  const auto before = model.prompts.before_tokens();
  std::vector<std::int32_t> ids(before.begin(), before.end());
  ids.push_back(model.folder->config.video_token_id);
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

}  // namespace

Turn::Turn(const run::CachedModel& model, Question asked, kv::View fork, model::PositionBuilder so_far)
    : question(std::move(asked)),
      view(std::move(fork)),
      positions(std::move(so_far)),
      pending(model.prompts.after(question.text)),
      sampler(question.sampling, prompt_ids(model, pending)),
      stops(question.sampling.stop),
      text(model.folder->text(), true) {
  const auto count = static_cast<std::int64_t>(pending.size());
  positions.text(count);
  answer.prompt_tokens = view.size() + count;
  answer.shared_tokens = view.size();
}

void TurnRunner::advance(std::span<Turn* const> turns) {
  std::size_t rows = 0;
  for (const Turn* turn : turns) rows += turn->pending.size();

  std::vector<std::int32_t> tokens;
  std::vector<model::Position> positions;
  std::vector<std::int32_t> own;
  std::vector<std::int32_t> outputs;
  std::vector<kernels::AttentionSegment> segments;
  own.reserve(rows);  // segments hold spans into it
  for (Turn* turn : turns) {
    const std::size_t count = turn->pending.size();
    const std::size_t first = own.size();
    tokens.insert(tokens.end(), turn->pending.begin(), turn->pending.end());
    const std::int64_t before = turn->view.size();
    if (!turn->view.append(static_cast<std::int64_t>(count)))
      throw std::logic_error("the KV cache has less room than was counted");
    const auto& known = turn->positions.positions();
    positions.insert(positions.end(), known.end() - static_cast<std::ptrdiff_t>(count), known.end());
    for (std::size_t i = 0; i < count; ++i)
      own.push_back(static_cast<std::int32_t>(before) + static_cast<std::int32_t>(i));
    segments.push_back(
        {turn->view.slots(), std::span(own).subspan(first, count), static_cast<std::int64_t>(first)});
    outputs.push_back(static_cast<std::int32_t>(own.size() - 1));
    turn->pending.clear();
  }
  passes_.step(tokens, positions, segments, outputs);
}

std::int32_t TurnRunner::next_token(Turn& turn, std::size_t i) {
  if (turn.sampler.takes_likeliest()) return turn.sampler.take(passes_.likeliest(i));
  const std::size_t wanted = turn.sampler.wanted();
  if (wanted > 0 && wanted <= kernels::kMostTopK) {
    const std::optional<std::int32_t> token = turn.sampler.next_of(passes_.likeliest(i, wanted));
    if (token) return *token;
  }
  return turn.sampler.next(passes_.logits(i));
}

void TurnRunner::choose(Turn& turn, std::size_t i) {
  Answer& answer = turn.answer;
  const auto finish = [&](FinishReason reason, std::string rest) {
    rest = turn.stops.push(rest) + turn.stops.finish();
    answer.text += rest;
    if (turn.question.on_text && !rest.empty()) turn.question.on_text(rest);
    answer.finish = reason;
    turn.done = true;
  };
  const std::int32_t token = next_token(turn, i);
  if (model_.folder->generation.ends(token)) return finish(FinishReason::end_of_turn, turn.text.finish());

  answer.tokens.push_back(token);
  const std::string piece = turn.stops.push(turn.text.push(token));
  answer.text += piece;
  if (turn.question.on_text && !piece.empty()) turn.question.on_text(piece);
  if (turn.stops.stopped()) {
    answer.finish = FinishReason::stop;
    turn.done = true;
    return;
  }
  if (static_cast<int>(answer.tokens.size()) == turn.question.max_tokens)
    return finish(FinishReason::length, turn.text.finish());
  turn.pending = {token};
  turn.positions.generated();
}

}  // namespace vigil::stream
