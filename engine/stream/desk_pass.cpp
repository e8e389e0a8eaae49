// The part of the desk that computes: what goes into the next pass, and what comes of it.
#include <algorithm>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"
#include "engine/stream/desk_draft.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {
namespace {

/// Passes are not made smaller than this.
constexpr std::int64_t kFewestRows = 64;
/// Patches that passes without outputs may be reading.
constexpr std::size_t kMostInFlight = 1024;
/// So many passes in a row as large as allowed, before larger ones are tried again.
constexpr int kFullPasses = 16;

}  // namespace

std::optional<base::Clock::TimePoint> StreamDesk::due() const {
  std::optional<base::Clock::TimePoint> earliest;
  const auto consider = [&](base::Clock::TimePoint time) {
    if (!earliest || time < *earliest) earliest = time;
  };
  for (const TextRef& ref : going_) consider(windows_.find(ref.window)->second.asking.due);
  // Not their ranks, which may be those of windows that they overtook: then what makes a window newer would
  // wait for it.
  for (const Key key : placed_) consider(windows_.find(key)->second.asking.due);
  if (may_admit())
    for (const Key key : waiting_) consider(windows_.find(key)->second.asking.due);
  if (earliest) return earliest;
  // It comes after what was asked, so it must not call for that earlier than that is due.
  std::int64_t rows_ahead = 0;
  const std::vector<const Window*> next = ahead();
  for (const Window* each : next) rows_ahead += each->rows - each->filled;
  if (rows_ahead >= limits_.rows_ahead)
    for (const Window* each : next) consider(each->asking.due);
  return earliest;
}

void StreamDesk::work(const run::Turn& turn) {
  now_ = turn.now;
  expire(now_);
  // What windows that are over have shown is nobody's but a memory's.
  settle_memories();
  admit();
  const Candidates work = candidates(turn.until);
  if (!look(work.windows)) return;
  Draft next = draft(work);
  last_rows_ = next.rows();
  // Of a window without questions all may have been computed ahead.
  if (last_rows_ == 0) return answer_complete();
  try {
    passes_.run(next.pass);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::bad_alloc& error) {
    return failed(next, error, true);
  } catch (const std::exception& error) {
    return failed(next, error, false);
  }
  if (!next.outputs.empty()) {
    in_flight_.clear();
  } else if (in_flight_.size() > kMostInFlight) {
    settle();
  }
  commit(next);
}

void StreamDesk::settle() {
  passes_.settle();
  in_flight_.clear();
}

// --- What goes in
// -------------------------------------------------------------------------------------------

StreamDesk::Candidates StreamDesk::candidates(base::Clock::TimePoint until) const {
  if (!texts_alone_.empty()) return {{}, {texts_alone_.front()}};
  if (!windows_alone_.empty()) return {{windows_alone_.front()}, {}};
  std::vector<Key> keys = placed_;
  // Texts that are late must not bring windows that are not, or these come before what makes newer ones, and
  // under overload wait in a row instead of being overtaken.
  std::vector<const Window*> next = ahead();
  const auto waits = [until](const Window& each) { return each.asking.due > until; };
  const auto is_late = [&](const TextRef& ref) { return !waits(windows_.find(ref.window)->second); };
  if (std::any_of(going_.begin(), going_.end(), is_late) &&
      std::all_of(keys.begin(), keys.end(), [&](Key key) { return waits(windows_.find(key)->second); })) {
    keys.clear();
    std::erase_if(next, [&](const Window* each) { return waits(*each); });
  }
  std::stable_sort(next.begin(), next.end(),
                   [](const Window* a, const Window* b) { return a->asking.due < b->asking.due; });
  for (const Window* each : next) keys.push_back({each->id.epoch, each->id.number});
  return {std::move(keys), going_};
}

std::vector<std::int64_t> StreamDesk::rows_of_texts(std::span<const TextRef> texts) {
  std::vector<std::int64_t> rows;
  rows.reserve(texts.size());
  // Windows come into a pass beside whatever is proposed.
  auto left = static_cast<std::size_t>(std::min(limits_.proposed, limits_.rows / 4));
  for (const TextRef& ref : texts) {
    Text& text = window(ref.window).texts.at(ref.question).text;
    text.keep_proposed(left);
    left -= std::min(left, text.outputs() - 1);
    rows.push_back(static_cast<std::int64_t>(text.pending().size()));
  }
  return rows;
}

StreamDesk::Draft StreamDesk::draft(const Candidates& candidates) {
  const auto& [keys, texts] = candidates;
  std::vector<WindowWork> work;
  for (const Key key : keys) {
    const Window& each = window(key);
    WindowWork& left = work.emplace_back();
    left.rows = each.rows - each.filled;
    left.is_asked = find(each.id.camera).ahead != key;
    if (!left.is_asked) continue;
    for (std::size_t i = each.asked; i < each.asking.questions.size(); ++i)
      left.questions.push_back(static_cast<std::int64_t>(each.asking.questions[i].question->tokens.size()));
  }
  const std::vector<std::int64_t> text_rows = rows_of_texts(texts);
  const PassShares shares = plan_pass(limits_, text_rows, work);

  Draft draft;
  std::int64_t rows = std::accumulate(
      text_rows.begin(), text_rows.begin() + static_cast<std::ptrdiff_t>(shares.texts), std::int64_t{0});
  for (const WindowShare& share : shares.windows) {
    const auto& questions = work[share.window].questions;
    rows += share.rows + std::accumulate(questions.begin(),
                                         questions.begin() + static_cast<std::ptrdiff_t>(share.questions),
                                         std::int64_t{0});
  }
  draft.own.reserve(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < shares.texts; ++i) {
    draft.texts.push_back(texts[i]);
    add_text(draft, texts[i]);
  }
  for (const WindowShare& share : shares.windows)
    add_window(draft, keys[share.window], share.rows, share.questions);
  return draft;
}

void StreamDesk::add_rows(Draft& draft, const PlacedWindow& placed, std::span<const RowRun> runs,
                          std::int64_t skipped, std::int64_t rows) {
  const std::size_t first = draft.own.size();
  // Runs lie one after the other; the rows that are computed end somewhere in one of them.
  std::int64_t left = rows;
  for (const RowRun& run : runs) {
    const std::int64_t begin = std::min(skipped, run.count);
    skipped -= begin;
    const std::int64_t count = std::min(left, run.count - begin);
    if (count == 0) continue;
    left -= count;
    if (run.patch) {
      draft.pass.rows.push_back({{}, run.patch->rows(run.first + begin, count)});
      in_flight_.push_back(run.patch);
    } else {
      draft.pass.rows.push_back(
          {prompts_.before_tokens().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
           {}});
    }
    const auto at = placed.positions.begin() + run.at + begin;
    draft.pass.positions.insert(draft.pass.positions.end(), at, at + count);
    for (std::int64_t i = 0; i < count; ++i)
      draft.own.push_back(static_cast<std::int32_t>(run.at + begin + i));
  }
  if (rows > 0)
    draft.pass.segments.push_back({placed.view.slots().first(static_cast<std::size_t>(draft.own.back()) + 1),
                                   std::span(draft.own).subspan(first), static_cast<std::int64_t>(first)});
}

void StreamDesk::add_window(Draft& draft, Key key, std::int64_t rows, std::size_t questions) {
  Window& window = this->window(key);
  if (window.is_asked && !window.begun) window.begun = now_;
  const PlacedWindow& placed = *window.placed;
  draft.windows.push_back({key, rows, questions});
  draft.pass.is_far = draft.pass.is_far || window.is_far;
  add_rows(draft, placed, placed.rows, window.filled, rows);
  for (std::size_t i = 0; i < questions; ++i) {
    const std::size_t question = window.asked + i;
    const Asking::Item& item = window.asking.questions[question];
    if (!window.texts.contains(question))
      window.texts.emplace(
          question, OpenText{Text(folder_, item.question, item.on_text, placed.view.fork(), placed.cursor),
                             window.claim.split(tail_pages(*item.question))});
    add_text(draft, {key, question});
  }
}

void StreamDesk::add_text(Draft& draft, const TextRef& ref) {
  Window& of = window(ref.window);
  draft.pass.is_far = draft.pass.is_far || of.is_far;
  OpenText& open = of.texts.at(ref.question);
  if (of.is_answered && !open.begun) open.begun = now_;
  open.text.extend(open.claim);
  const auto pending = open.text.pending();
  const auto positions = open.text.positions();
  const std::size_t first = draft.own.size();
  const std::int64_t before = open.text.view().size() - static_cast<std::int64_t>(pending.size());
  for (std::size_t i = 0; i < pending.size(); ++i)
    draft.own.push_back(static_cast<std::int32_t>(before) + static_cast<std::int32_t>(i));
  draft.pass.rows.push_back({pending, {}});
  draft.pass.positions.insert(draft.pass.positions.end(), positions.begin(), positions.end());
  draft.pass.segments.push_back({open.text.view().slots(),
                                 std::span(draft.own).subspan(first, pending.size()),
                                 static_cast<std::int64_t>(first)});
  see_before(draft, of, positions.front());
  draft.outputs.push_back({ref, draft.pass.outputs.size()});
  for (std::size_t i = open.text.outputs(); i > 0; --i)
    draft.pass.outputs.push_back(static_cast<std::int32_t>(draft.own.size() - i));
}

// --- What comes out
// -----------------------------------------------------------------------------------------

void StreamDesk::commit(Draft& draft) {
  for (const Draft::Part& part : draft.windows) {
    Window& window = this->window(part.window);
    window.filled += part.rows;
    Stream& stream = find(window.id.camera);
    if (window.filled == window.rows && stream.placing == part.window) {
      stream.stream.computed(*window.placed);
      stream.placing.reset();
    }
    std::erase(windows_alone_, part.window);
  }
  for (const TextRef& ref : draft.texts) std::erase(texts_alone_, ref);
  for (const Draft::Output& output : draft.outputs) choose(output.text, output.first);
  answer_complete();
  grow(draft);
}

void StreamDesk::answer_complete() {
  const std::vector<Key> placed = placed_;
  for (const Key key : placed) {
    const Window& window = this->window(key);
    if (window.filled < window.rows || window.asked < window.asking.questions.size()) continue;
    Stream& stream = find(window.id.camera);
    if (stream.placing == key) {
      stream.stream.computed(*window.placed);
      stream.placing.reset();
    }
    answer(key);
  }
}

void StreamDesk::choose(const TextRef& ref, std::size_t output) {
  const auto entry = windows_.find(ref.window);
  if (entry == windows_.end()) return;  // another of its questions has failed
  Window& window = entry->second;
  OpenText& open = window.texts.at(ref.question);
  const bool is_first = !window.is_answered;
  try {
    if (is_first) open.text.set_probability(words_.probability(passes_.logits(output)));
    take(ref, open, output);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    // It concerns this one alone: logits that no token can be chosen from, no room for what its sampling
    // wants.
    const bool out_of_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    if (out_of_memory && open.text.withdraw(open.claim)) return;
    if (is_first) return fail(ref.window, error.what(), out_of_memory);
    return fail_text(ref, std::current_exception());
  }
  if (is_first) {
    ++window.asked;
  } else if (open.text.done()) {
    news_.told.push_back({window.id, ref.question, open.text.answer(), nullptr, open.begun});
    close_text(ref);
  }
}

void StreamDesk::take(const TextRef& ref, OpenText& open, std::size_t output) {
  const std::size_t before = open.text.answer().tokens.size(), proposed = open.text.outputs() - 1;
  const std::size_t accepted = open.text.take(passes_, output, open.claim);
  if (!tells_tokens_) return;
  const std::vector<std::int32_t>& tokens = open.text.answer().tokens;
  news_.spoken.push_back({window(ref.window).id,
                          ref.question,
                          {tokens.begin() + static_cast<std::ptrdiff_t>(before), tokens.end()},
                          before,
                          proposed,
                          accepted,
                          open.text.done()});
}

void StreamDesk::answer(Key key) {
  Window& window = this->window(key);
  DeskNews::Answered answered{window.id, {}, window.placed->tokens, window.begun.value_or(now_)};
  for (auto& [question, open] : window.texts) {
    answered.answers.push_back(open.text.answer());
    if (!open.text.done()) continue;
    open.text.let_go();
    open.claim.give_back();
  }
  news_.answered.push_back(std::move(answered));
  window.placed.reset();
  window.claim.give_back();
  window.is_answered = true;
  std::erase(placed_, key);
  if (allowed_ > 0) --allowed_;
  is_full_ = false;
  Stream& stream = find(window.id.camera);
  std::erase(stream.open, key);
  if (window.texts.empty()) windows_.erase(key);
  slide(stream);
}

// --- What does not
// ------------------------------------------------------------------------------------------

void StreamDesk::failed(const Draft& draft, const std::exception& error, bool out_of_memory) {
  // Its pages may be others' from here on.
  settle();
  // What was proposed ends no answer: first it is tried without.
  bool was_more = false;
  for (const Draft::Output& output : draft.outputs) {
    OpenText& open = window(output.text.window).texts.at(output.text.question);
    was_more = open.text.withdraw(open.claim) || was_more;
  }
  if (was_more) return;
  // The present goes on without what lies before it. What is of another kind is one piece's fault.
  const bool is_alone = draft.windows.size() + draft.texts.size() <= 1;
  if ((out_of_memory || is_alone) && forget_memories(draft, error.what())) return;
  full_passes_ = 0;
  if (out_of_memory && shrink(draft)) {
    news_.pressed = {limits_.rows, error.what()};
    return;
  }
  if (!is_alone) {
    for (const Draft::Part& part : draft.windows)
      if (std::find(windows_alone_.begin(), windows_alone_.end(), part.window) == windows_alone_.end())
        windows_alone_.push_back(part.window);
    for (const TextRef& ref : draft.texts)
      if (std::find(texts_alone_.begin(), texts_alone_.end(), ref) == texts_alone_.end())
        texts_alone_.push_back(ref);
    return;
  }
  if (!draft.windows.empty()) {
    const Key key = draft.windows.front().window;
    Stream& stream = find(window(key).id.camera);
    // If that was not its fault, it is told when it is asked.
    return stream.ahead == key ? drop_ahead(stream) : fail(key, error.what(), out_of_memory);
  }
  fail_text(draft.texts.front(), std::current_exception());
}

bool StreamDesk::shrink(const Draft& draft) {
  const std::int64_t rows = std::max(kFewestRows, draft.rows() / 2);
  if (!draft.windows.empty() && rows < limits_.rows) {
    limits_.rows = rows;
    return true;
  }
  if (draft.texts.size() < 2) return false;
  limits_.texts = draft.texts.size() / 2;
  return true;
}

void StreamDesk::grow(const Draft& draft) {
  const PassLimits& most = options_.limits;
  const bool has_all_rows = limits_.rows == most.rows || draft.rows() < limits_.rows;
  const bool has_all_texts = limits_.texts == most.texts || draft.texts.size() < limits_.texts;
  if ((has_all_rows && has_all_texts) || ++full_passes_ < kFullPasses) return;
  full_passes_ = 0;
  limits_.rows = std::min(most.rows, 2 * limits_.rows);
  limits_.texts = std::min(most.texts, 2 * limits_.texts);
}

}  // namespace vigil::stream
