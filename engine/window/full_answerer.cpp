#include "engine/window/full_answerer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/error.h"
#include "engine/model/sampler.h"

namespace vigil::window {
namespace {

/// Adds the seconds of its own life to a counter.
class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(seconds) {}
  ~Timer() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::int64_t visual_tokens(const WindowRequest& request) {
  std::int64_t count = 0;
  for (const model::VisualTokensPtr& patch : request.patches) count += patch->count();
  return count;
}

kv::PageLayout layout_of(const model::TextConfig& text, const FullAnswerer::Options& options) {
  return {text.num_hidden_layers, text.num_key_value_heads, text.head_dim, options.page_tokens,
          options.compute};
}

/// The ids of a word in the spellings that the vocabulary has as one token.
std::vector<std::int32_t> spellings(const model::Tokenizer& tokenizer,
                                    std::initializer_list<const char*> words) {
  std::vector<std::int32_t> ids;
  for (const char* word : words) {
    const std::vector<std::int32_t> tokens = tokenizer.encode(word);
    if (tokens.size() == 1 && std::find(ids.begin(), ids.end(), tokens[0]) == ids.end())
      ids.push_back(tokens[0]);
  }
  if (ids.empty())
    throw model::ModelError(tokenizer.name() + ": no single token says \"" + *words.begin() + "\"");
  return ids;
}

/// P(one of yes) / (P(one of yes) + P(one of no))
float probability_yes(std::span<const float> logits, std::span<const std::int32_t> yes,
                      std::span<const std::int32_t> no) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const auto ids : {yes, no})
    for (const std::int32_t id : ids) largest = std::max(largest, logits[static_cast<std::size_t>(id)]);
  const auto mass = [&](std::span<const std::int32_t> ids) {
    float sum = 0;
    for (const std::int32_t id : ids) sum += std::exp(logits[static_cast<std::size_t>(id)] - largest);
    return sum;
  };
  const float of_yes = mass(yes);
  return of_yes / (of_yes + mass(no));
}

}  // namespace

struct FullAnswerer::Turn {
  const Question* question;
  Answer* answer;
  kv::View view;
  model::PositionBuilder positions;
  std::vector<std::int32_t> pending;
  model::Sampler sampler;
  model::StopStrings stops;
  model::StreamDecoder text;
  /// Row of `logits_` that belongs to the next token.
  std::size_t row = 0;
  bool done = false;
};

FullAnswerer::FullAnswerer(std::shared_ptr<const model::ModelFolder> folder, const Options& options)
    : folder_(std::move(folder)),
      options_(options),
      stream_(kernels::Stream::cpu(options.threads)),
      decoder_(folder_->config.text, model::Parameters(folder_->weights, stream_, options.compute)),
      pages_(
          stream_, layout_of(folder_->config.text, options),
          options.kv_tokens / options.page_tokens + (options.kv_tokens % options.page_tokens != 0 ? 1 : 0)),
      prompts_(*folder_),
      yes_(spellings(folder_->text(), {"Yes", "yes", "YES", " Yes", " yes"})),
      no_(spellings(folder_->text(), {"No", "no", "NO", " No", " no"})) {}

std::int64_t FullAnswerer::max_visual_tokens() const {
  // Room for the frame, and for one question and its answer of ordinary length.
  constexpr std::int64_t kText = 512;
  return std::max<std::int64_t>(0, pages_.pages() * options_.page_tokens - kText);
}

void FullAnswerer::check(const WindowRequest& request) const {
  if (request.patches.empty()) throw std::invalid_argument("a window without frames cannot be asked");
  const model::VisualTokens& first = *request.patches.front();
  for (const model::VisualTokensPtr& patch : request.patches)
    if (patch->grid_height != first.grid_height || patch->grid_width != first.grid_width)
      throw std::invalid_argument("the frames of a window differ in size");
  for (const Question& question : request.questions)
    if (question.max_tokens < 1) throw std::invalid_argument("an answer needs room for at least one token");
}

std::int64_t FullAnswerer::pages_for(const WindowRequest& request) const {
  const auto pages = [&](std::int64_t tokens) {
    return (tokens + options_.page_tokens - 1) / options_.page_tokens;
  };
  std::int64_t sum = pages(prompts_.before() + visual_tokens(request));
  for (const Question& question : request.questions) {
    const auto text = static_cast<std::int64_t>(prompts_.after(question.text).size());
    // A fork begins a page of its own.
    sum += pages(text + question.max_tokens);
  }
  return sum;
}

std::vector<std::vector<Answer>> FullAnswerer::answer(std::span<const WindowRequest> requests) {
  std::vector<std::int64_t> needs;
  for (const WindowRequest& request : requests) {
    check(request);
    needs.push_back(pages_for(request));
    if (needs.back() > pages_.pages())
      throw std::invalid_argument("a window of " + std::to_string(visual_tokens(request)) +
                                  " visual tokens and " + std::to_string(request.questions.size()) +
                                  " questions needs " + std::to_string(needs.back() * options_.page_tokens) +
                                  " tokens of KV cache, there are " +
                                  std::to_string(pages_.pages() * options_.page_tokens));
  }

  std::vector<std::vector<Answer>> answers;
  for (const WindowRequest& request : requests) answers.emplace_back(request.questions.size());
  for (std::size_t begin = 0; begin < requests.size();) {
    // As many windows together as the cache has room for.
    std::size_t end = begin;
    for (std::int64_t room = pages_.pages(); end < requests.size() && needs[end] <= room; ++end)
      room -= needs[end];
    std::vector<Turn> turns;
    for (std::size_t i = begin; i < end; ++i) {
      Prefilled window = prefill(requests[i]);
      for (std::size_t j = 0; j < requests[i].questions.size(); ++j) {
        const Question& question = requests[i].questions[j];
        const model::Sampling& sampling = question.sampling;
        std::vector<std::int32_t> after = prompts_.after(question.text);
        turns.push_back({.question = &question,
                         .answer = &answers[i][j],
                         .view = window.view.fork(),
                         .positions = window.positions,
                         .pending = after,
                         .sampler = model::Sampler(sampling, prompt_ids(after)),
                         .stops = model::StopStrings(sampling.stop),
                         .text = model::StreamDecoder(folder_->text(), true)});
      }
    }
    ask(turns);
    decode(turns);
    begin = end;
  }
  return answers;
}

std::vector<std::int32_t> FullAnswerer::prompt_ids(std::span<const std::int32_t> after) const {
  std::vector<std::int32_t> ids(prompts_.before_tokens().begin(), prompts_.before_tokens().end());
  ids.push_back(folder_->config.video_token_id);
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

FullAnswerer::Prefilled FullAnswerer::prefill(const WindowRequest& request) {
  const Timer timer(times_.prefill);
  const auto width = static_cast<std::size_t>(folder_->config.text.hidden_size);
  const model::VisualTokens& first = *request.patches.front();
  const std::int64_t rows = prompts_.before() + visual_tokens(request);

  Prefilled window{kv::View(pages_), {}};
  window.positions.text(prompts_.before());
  window.positions.grid(static_cast<std::int64_t>(request.patches.size()), first.grid_height,
                        first.grid_width, model::time_interval(folder_->config.vision, first.duration));
  if (!window.view.append(rows)) throw std::logic_error("the KV cache has less room than was counted");

  hidden_.resize(static_cast<std::size_t>(rows) * width);
  decoder_.embed(prompts_.before_tokens(), hidden_.data());
  float* next = hidden_.data() + static_cast<std::size_t>(prompts_.before()) * width;
  for (const model::VisualTokensPtr& patch : request.patches)
    next = std::copy(patch->embeddings.begin(), patch->embeddings.end(), next);

  std::vector<std::int32_t> own(static_cast<std::size_t>(rows));
  std::iota(own.begin(), own.end(), 0);
  const std::span<const model::Position> positions = window.positions.positions();
  for (std::int64_t begin = 0; begin < rows; begin += options_.chunk_rows) {
    const auto from = static_cast<std::size_t>(begin);
    const auto end = static_cast<std::size_t>(std::min(begin + options_.chunk_rows, rows));
    const kernels::AttentionSegment segment{window.view.slots().first(end),
                                            std::span(own).subspan(from, end - from), 0};
    decoder_.forward(
        stream_,
        {hidden_.data() + from * width, positions.subspan(from, end - from), std::span(&segment, 1), {}},
        pages_);
  }
  return window;
}

void FullAnswerer::advance(std::span<Turn* const> turns) {
  const auto width = static_cast<std::size_t>(folder_->config.text.hidden_size);
  const auto vocabulary = static_cast<std::size_t>(folder_->config.text.vocab_size);
  std::size_t rows = 0;
  for (const Turn* turn : turns) rows += turn->pending.size();

  hidden_.resize(rows * width);
  std::vector<model::Position> positions;
  std::vector<std::int32_t> own;
  std::vector<std::int32_t> outputs;
  std::vector<kernels::AttentionSegment> segments;
  own.reserve(rows);
  for (Turn* turn : turns) {
    const std::size_t count = turn->pending.size();
    const std::size_t first = own.size();
    decoder_.embed(turn->pending, hidden_.data() + first * width);
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
    turn->row = outputs.size() - 1;
    turn->pending.clear();
  }
  decoder_.forward(stream_, {hidden_.data(), positions, segments, outputs}, pages_);
  logits_.resize(outputs.size() * vocabulary);
  decoder_.logits(stream_, hidden_.data(), static_cast<std::int64_t>(outputs.size()), logits_.data());
}

void FullAnswerer::ask(std::vector<Turn>& turns) {
  const auto vocabulary = static_cast<std::size_t>(folder_->config.text.vocab_size);
  for (std::size_t begin = 0; begin < turns.size();) {
    const Timer timer(times_.prefill);
    std::vector<Turn*> batch;
    for (std::int64_t rows = 0; begin < turns.size(); ++begin) {
      Turn& turn = turns[begin];
      const auto count = static_cast<std::int64_t>(turn.pending.size());
      if (!batch.empty() && rows + count > options_.chunk_rows) break;
      rows += count;
      turn.positions.text(count);
      turn.answer->prompt_tokens = turn.view.size() + count;
      batch.push_back(&turn);
    }
    advance(batch);
    for (Turn* turn : batch) {
      turn->answer->probability_yes =
          probability_yes(std::span(logits_).subspan(turn->row * vocabulary, vocabulary), yes_, no_);
      choose(*turn);
    }
  }
}

void FullAnswerer::decode(std::vector<Turn>& turns) {
  const Timer timer(times_.decode);
  while (true) {
    std::vector<Turn*> going_on;
    for (Turn& turn : turns)
      if (!turn.done) going_on.push_back(&turn);
    if (going_on.empty()) return;
    advance(going_on);
    for (Turn* turn : going_on) choose(*turn);
  }
}

void FullAnswerer::choose(Turn& turn) {
  const auto vocabulary = static_cast<std::size_t>(folder_->config.text.vocab_size);
  Answer& answer = *turn.answer;
  const auto finish = [&](FinishReason reason, std::string rest) {
    rest = turn.stops.push(rest) + turn.stops.finish();
    answer.text += rest;
    if (turn.question->on_text && !rest.empty()) turn.question->on_text(rest);
    answer.finish = reason;
    turn.done = true;
  };
  const std::int32_t token = turn.sampler.next(std::span(logits_).subspan(turn.row * vocabulary, vocabulary));
  if (folder_->generation.ends(token)) return finish(FinishReason::end_of_turn, turn.text.finish());

  answer.tokens.push_back(token);
  const std::string piece = turn.stops.push(turn.text.push(token));
  answer.text += piece;
  if (turn.question->on_text && !piece.empty()) turn.question->on_text(piece);
  if (turn.stops.stopped()) {
    answer.finish = FinishReason::stop;
    turn.done = true;
    return;
  }
  if (static_cast<int>(answer.tokens.size()) == turn.question->max_tokens)
    return finish(FinishReason::length, turn.text.finish());
  turn.pending = {token};
  turn.positions.generated();
}

}  // namespace vigil::window
