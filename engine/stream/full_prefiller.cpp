#include "engine/stream/full_prefiller.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/convert/convert.h"

namespace vigil::stream {
namespace {

std::int64_t visual_tokens(const WindowRequest& request) {
  std::int64_t count = 0;
  for (const model::VisualTokensPtr& patch : request.patches) count += patch->count();
  return count;
}

void check(const WindowRequest& request) {
  if (request.patches.empty()) throw std::invalid_argument("a window without frames cannot be asked");
  const model::VisualTokens& first = *request.patches.front();
  for (const model::VisualTokensPtr& patch : request.patches)
    if (patch->grid_height != first.grid_height || patch->grid_width != first.grid_width)
      throw std::invalid_argument("the frames of a window differ in size");
  for (const Question& question : request.questions) {
    if (question.max_tokens < 1) throw std::invalid_argument("an answer needs room for at least one token");
    model::validate(question.sampling);
  }
}

/// The rows of one pass, gathered from parts of windows.
struct Rows {
  std::vector<model::Position> positions;
  std::vector<std::int32_t> own;
  std::vector<kernels::AttentionSegment> segments;

  explicit Rows(std::int64_t most) { own.reserve(static_cast<std::size_t>(most)); }
  void clear() {
    positions.clear();
    own.clear();
    segments.clear();
  }
};

}  // namespace

FullPrefiller::FullPrefiller(std::shared_ptr<run::CachedModel> model,
                             const std::vector<kernels::Stream>& streams, const Options& options)
    : model_(std::move(model)), options_(options), words_(*model_->folder), runner_(*model_, streams) {}

std::int64_t FullPrefiller::room() const {
  return model_->book.tokens();
}

std::int64_t FullPrefiller::max_visual_tokens() const {
  // Room for the frame, and for one question and its answer of ordinary length.
  constexpr std::int64_t kText = 512;
  return room() - kText;
}

std::int64_t FullPrefiller::room_for(const WindowRequest& request) const {
  check(request);
  const model::PromptBuilder& prompts = model_->prompts;
  std::int64_t pages = model_->book.pages_for(prompts.before() + visual_tokens(request));
  for (const Question& question : request.questions) {
    const auto text = static_cast<std::int64_t>(prompts.after(question.text).size());
    // A fork begins a page of its own.
    pages += model_->book.pages_for(text + question.max_tokens);
  }
  return pages * model_->book.page_tokens();
}

std::vector<AskedWindowPtr> FullPrefiller::ask(std::span<const WindowRequest> requests) {
  std::int64_t needed = 0;
  for (const WindowRequest& request : requests) needed += room_for(request);
  const std::int64_t free = model_->book.free_pages() * model_->book.page_tokens();
  if (needed > free)
    throw std::invalid_argument(std::to_string(requests.size()) + " windows need " + std::to_string(needed) +
                                " tokens of KV cache, " + std::to_string(free) + " are free");

  Asked asked;
  try {
    compute(requests, asked);
  } catch (...) {
    // Its pages are others' from here on.
    runner_.passes().settle();
    throw;
  }
  std::vector<AskedWindowPtr> windows;
  for (auto& window : asked.windows) {
    for (const Turn& turn : window->turns) window->begun.push_back(turn.answer);
    windows.push_back(std::move(window));
  }
  return windows;
}

void FullPrefiller::compute(std::span<const WindowRequest> requests, Asked& asked) {
  for (const WindowRequest& request : requests) asked.placed.push_back(place(request));
  fill(asked.placed);

  std::vector<Turn*> turns;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Placed& placed = asked.placed[i];
    auto& window = asked.windows.emplace_back(std::make_unique<CachedWindow>(model_));
    window->turns.reserve(requests[i].questions.size());
    for (const Question& question : requests[i].questions)
      turns.push_back(&window->turns.emplace_back(*model_, question, placed.view.fork(), placed.positions));
  }
  ask_questions(turns);
}

FullPrefiller::Placed FullPrefiller::place(const WindowRequest& request) {
  const model::ModelConfig& config = model_->folder->config;
  const auto width = static_cast<std::size_t>(config.text.hidden_size);
  const model::PromptBuilder& prompts = model_->prompts;
  const model::VisualTokens& first = *request.patches.front();
  const std::int64_t rows = prompts.before() + visual_tokens(request);

  Placed window{kv::View(model_->book), {}, {}};
  window.positions.text(prompts.before());
  window.positions.grid(static_cast<std::int64_t>(request.patches.size()), first.grid_height,
                        first.grid_width, model::time_interval(config.vision, first.duration));
  if (!window.view.append(rows)) throw std::logic_error("the KV cache has less room than was counted");

  const kernels::Stream& stream = runner_.passes().stream();
  window.hidden = kernels::Buffer(stream, static_cast<std::size_t>(rows) * width * sizeof(float));
  auto* next = window.hidden.as<float>();
  runner_.passes().embed(prompts.before_tokens(), next);
  next += static_cast<std::size_t>(prompts.before()) * width;
  for (const model::VisualTokensPtr& patch : request.patches) {
    const auto values = static_cast<std::size_t>(patch->count()) * width;
    kernels::Stream to = stream;
    kernels::convert_rows(
        to, patch->rows(0, patch->count()),
        kernels::dense(next, kernels::DType::f32, patch->count(), static_cast<std::int64_t>(width)));
    next += values;
  }
  return window;
}

void FullPrefiller::fill(std::span<Placed> windows) {
  const auto width = static_cast<std::size_t>(model_->folder->config.text.hidden_size);
  const kernels::Stream& stream = runner_.passes().stream();
  pass_.reserve(stream, static_cast<std::size_t>(options_.chunk_rows) * width * sizeof(float));
  Rows rows(options_.chunk_rows);
  const auto run = [&] {
    if (rows.own.empty()) return;
    runner_.passes().fill(pass_.as<float>(), rows.positions, rows.segments);
    rows.clear();
  };
  for (Placed& window : windows) {
    const auto count = static_cast<std::size_t>(window.view.size());
    const auto& positions = window.positions.positions();
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t first = rows.own.size();
      const std::size_t end = std::min(count, begin + static_cast<std::size_t>(options_.chunk_rows) - first);
      kernels::copy(stream, pass_.as<float>() + first * width, window.hidden.as<float>() + begin * width,
                    (end - begin) * width * sizeof(float));
      rows.positions.insert(rows.positions.end(), positions.begin() + static_cast<std::ptrdiff_t>(begin),
                            positions.begin() + static_cast<std::ptrdiff_t>(end));
      rows.own.resize(first + end - begin);
      std::iota(rows.own.begin() + static_cast<std::ptrdiff_t>(first), rows.own.end(),
                static_cast<std::int32_t>(begin));
      rows.segments.push_back({window.view.slots().first(end), std::span(rows.own).subspan(first),
                               static_cast<std::int64_t>(first)});
      begin = end;
      if (rows.own.size() == static_cast<std::size_t>(options_.chunk_rows)) run();
    }
  }
  run();
}

void FullPrefiller::ask_questions(std::span<Turn* const> turns) {
  for (std::size_t begin = 0; begin < turns.size();) {
    // Whole questions, so that each has its logits in this pass.
    std::size_t end = begin;
    for (std::int64_t rows = 0; end < turns.size(); ++end) {
      rows += static_cast<std::int64_t>(turns[end]->pending.size());
      if (end > begin && rows > options_.chunk_rows) break;
    }
    const auto batch = turns.subspan(begin, end - begin);
    runner_.advance(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i]->answer.probability_yes = words_.probability(runner_.logits(i));
      runner_.choose(*batch[i], i);
    }
    begin = end;
  }
}

}  // namespace vigil::stream
