#include "engine/stream/stream_desk.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace vigil::stream {

using base::Clock;

StreamDesk::StreamDesk(const model::ModelFolder& folder, const model::PromptBuilder& prompts, kv::Book& book,
                       run::Passes& passes, Options options)
    : folder_(folder),
      prompts_(prompts),
      book_(book),
      passes_(passes),
      options_(options),
      limits_(options.limits),
      words_(folder) {}

// --- Streams
// ------------------------------------------------------------------------------------------------

StreamDesk::Stream& StreamDesk::find(const std::string& camera) {
  const auto entry = streams_.find(camera);
  if (entry == streams_.end()) throw std::invalid_argument("no stream of camera " + camera + " is open");
  return entry->second;
}

const StreamDesk::Stream& StreamDesk::find(const std::string& camera) const {
  return const_cast<StreamDesk*>(this)->find(camera);
}

void StreamDesk::open(const std::string& camera, RefreshPolicyPtr policy) {
  if (is_open(camera)) throw std::invalid_argument("the stream of camera " + camera + " is open");
  streams_.try_emplace(
      camera, CameraStream(book_, folder_.config.vision, prompts_.before_tokens(), std::move(policy)));
}

std::int64_t StreamDesk::append(const std::string& camera, model::VisualTokensPtr patch) {
  return find(camera).stream.append(std::move(patch));
}

void StreamDesk::slide(const std::string& camera, std::int64_t first) {
  Stream& stream = find(camera);
  stream.wanted_from = std::max(stream.wanted_from, first);
  slide(camera, stream);
}

void StreamDesk::slide(const std::string& camera, Stream& stream) {
  std::int64_t from = stream.wanted_from;
  for (auto entry = windows_.lower_bound({camera, 0, 0});
       entry != windows_.end() && entry->first.camera == camera; ++entry)
    if (!entry->second.is_answered) from = std::min(from, entry->second.asking.patches.first);
  stream.stream.slide(from);
  is_full_ = false;
}

void StreamDesk::close(const std::string& camera) {
  find(camera);
  std::vector<WindowId> left;
  for (auto entry = windows_.lower_bound({camera, 0, 0});
       entry != windows_.end() && entry->first.camera == camera; ++entry)
    if (!entry->second.is_answered) left.push_back(entry->first);
  for (const WindowId& id : left) fail(id, "its stream has ended", false);
  streams_.erase(camera);
  is_full_ = false;
}

// --- Windows
// ------------------------------------------------------------------------------------------------

std::int64_t StreamDesk::tail_pages(const CompiledQuestion& question) const {
  // It begins a page of its own.
  return book_.pages_for(static_cast<std::int64_t>(question.tokens.size()) + question.max_tokens);
}

std::int64_t StreamDesk::pages_for(std::int64_t visual_tokens,
                                   std::span<const CompiledQuestionPtr> questions) const {
  std::int64_t pages = book_.pages_for(prompts_.before() + visual_tokens);
  for (const CompiledQuestionPtr& question : questions) pages += tail_pages(*question);
  return pages;
}

WindowId StreamDesk::ask(const std::string& camera, Asking asking) {
  Stream& stream = find(camera);
  std::int64_t most = stream.stream.most_pages_for(asking.patches);
  for (const Asking::Item& item : asking.questions) most += tail_pages(*item.question);
  if (most > book_.pages())
    throw std::invalid_argument("a window and its " + std::to_string(asking.questions.size()) +
                                " questions need " + std::to_string(most * book_.page_tokens()) +
                                " tokens of KV cache, there are " + std::to_string(book_.tokens()));

  WindowId id{camera, options_.epoch, asked_++};
  Window window;
  window.rank = asking.due;
  window.asking = std::move(asking);
  if (window.asking.overtakes) {
    for (std::size_t i = 0; i < waiting_.size();) {
      if (waiting_[i].camera != camera) {
        ++i;
        continue;
      }
      const WindowId older = waiting_[i];
      window.rank = std::min(window.rank, this->window(older).rank);
      news_.overtaken.push_back(older);
      forget(older);
    }
  }
  const auto place = std::find_if(waiting_.begin(), waiting_.end(), [&](const WindowId& other) {
    return window.rank < this->window(other).rank;
  });
  waiting_.insert(place, id);
  windows_.emplace(id, std::move(window));
  is_full_ = false;
  return id;
}

void StreamDesk::forget(const WindowId& id) {
  const auto entry = windows_.find(id);
  if (entry == windows_.end()) return;
  const bool was_on_its_way = entry->second.placed.has_value();
  const bool was_answered = entry->second.is_answered;
  std::erase_if(going_, [&](const TextRef& ref) { return ref.window == id; });
  std::erase_if(texts_alone_, [&](const TextRef& ref) { return ref.window == id; });
  std::erase(placed_, id);
  std::erase(waiting_, id);
  std::erase(windows_alone_, id);
  windows_.erase(entry);
  is_full_ = false;
  const auto stream = streams_.find(id.camera);
  if (stream == streams_.end() || was_answered) return;
  if (was_on_its_way) {
    // What there is of its keys is nothing that others could go on from.
    stream->second.stream.evict();
    stream->second.is_placing = false;
  }
  slide(id.camera, stream->second);
}

void StreamDesk::fail(const WindowId& id, const std::string& reason, bool out_of_memory) {
  news_.failed.push_back({id, reason, out_of_memory});
  forget(id);
}

bool StreamDesk::explain(const WindowId& id, std::size_t question) {
  const auto entry = windows_.find(id);
  if (entry == windows_.end() || !entry->second.is_answered || !entry->second.texts.contains(question))
    return false;
  OpenText& open = entry->second.texts.at(question);
  if (open.state != TextState::idle) return false;
  if (open.text.done()) {
    news_.told.push_back({id, question, open.text.answer(), nullptr});
    close_text({id, question});
    return true;
  }
  open.state = TextState::goes_on;
  going_.push_back({id, question});
  return true;
}

std::optional<StreamDesk::Loan> StreamDesk::lend(const WindowId& id, std::size_t question) {
  const auto entry = windows_.find(id);
  if (entry == windows_.end() || !entry->second.is_answered || !entry->second.texts.contains(question))
    return std::nullopt;
  const Window& window = entry->second;
  OpenText& open = entry->second.texts.at(question);
  if (open.state != TextState::idle) return std::nullopt;
  open.state = TextState::lent;
  open.lent.emplace(open.text.view().fork());
  return Loan{id, question, std::move(open.text), window.asking.due, window.asking.deadline, window.is_far};
}

void StreamDesk::adopt(Loan loan) {
  Window& window = windows_[loan.window];
  if (!window.handover) {
    window.handover = std::make_unique<kv::Handover>(book_);
    window.asking.due = loan.due;
    window.asking.deadline = loan.deadline;
    window.is_far = loan.is_far;
    window.is_answered = true;
  }
  const TextRef ref{loan.window, loan.question};
  std::vector<kv::PageCopy> copies;
  // What is there of its tail is copied.
  auto claim = book_.claim(loan.text.view().pages_to_append(loan.text.question().max_tokens));
  if (!claim) throw std::logic_error("the KV cache of generation has less room than was counted");
  OpenText& open =
      window.texts.emplace(loan.question, OpenText{std::move(loan.text), std::move(*claim)}).first->second;
  open.text.move_to(*window.handover, copies);
  passes_.take_pages(copies);
  explain(ref.window, ref.question);
}

void StreamDesk::close_text(const TextRef& ref) {
  Window& window = this->window(ref.window);
  OpenText& open = window.texts.at(ref.question);
  open.lent.reset();
  if (open.state != TextState::lent) open.text.let_go();
  open.state = TextState::closed;
  open.claim.give_back();
  std::erase(going_, ref);
  std::erase(texts_alone_, ref);
  is_full_ = false;
  if (std::all_of(window.texts.begin(), window.texts.end(),
                  [](const auto& each) { return each.second.state == TextState::closed; }))
    windows_.erase(ref.window);
}

void StreamDesk::fail_text(const TextRef& ref, std::exception_ptr why) {
  DeskNews::Told& told = news_.told.emplace_back();
  told.window = ref.window;
  told.question = ref.question;
  told.failure = std::move(why);
  close_text(ref);
}

void StreamDesk::done(const WindowId& id, std::size_t question) {
  const auto entry = windows_.find(id);
  if (entry == windows_.end() || !entry->second.is_answered || !entry->second.texts.contains(question))
    return;
  if (entry->second.texts.at(question).state != TextState::closed) close_text({id, question});
}

void StreamDesk::done(const WindowId& id) {
  forget(id);
}

// Who has lent a text keeps its pages until it is told that it is done.
bool StreamDesk::can_expire(const Window& window) {
  return window.is_answered && std::none_of(window.texts.begin(), window.texts.end(), [](const auto& each) {
           return each.second.state == TextState::lent;
         });
}

void StreamDesk::expire(Clock::TimePoint now) {
  std::vector<WindowId> over;
  for (const auto& [id, window] : windows_)
    if (can_expire(window) && window.asking.deadline <= now) over.push_back(id);
  for (const WindowId& id : over) {
    const std::vector<TextRef> texts = going_;
    for (const TextRef& ref : texts)
      if (ref.window == id) fail_text(ref, std::make_exception_ptr(std::runtime_error("its time is over")));
    forget(id);
  }
}

std::optional<Clock::TimePoint> StreamDesk::next_deadline() const {
  std::optional<Clock::TimePoint> next;
  for (const auto& [id, window] : windows_)
    if (can_expire(window) && (!next || window.asking.deadline < *next)) next = window.asking.deadline;
  return next;
}

// --- Room
// ---------------------------------------------------------------------------------------------------

void StreamDesk::admit() {
  for (std::size_t i = 0; i < waiting_.size() && placed_.size() < limits_.windows;) {
    const WindowId id = waiting_[i];
    Stream& stream = find(id.camera);
    // Windows of a stream are computed one after the other.
    if (stream.is_placing) {
      ++i;
      continue;
    }
    if (!place(id, window(id), stream)) {
      // None that is smaller goes before it, or it would never have its turn.
      is_full_ = true;
      return;
    }
    // It failed, or has its place.
    if (i < waiting_.size() && waiting_[i] == id)
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool StreamDesk::place(const WindowId& id, Window& window, Stream& stream) {
  std::int64_t tails = 0;
  for (const Asking::Item& item : window.asking.questions) tails += tail_pages(*item.question);
  // Its own pages last: without them it needs more.
  std::vector<Stream*> keeping;
  for (auto& [camera, each] : streams_)
    if (each.stream.keeps_pages() && !each.is_placing) keeping.push_back(&each);
  std::sort(keeping.begin(), keeping.end(), [&](const Stream* a, const Stream* b) {
    return std::pair(a == &stream, a->used) < std::pair(b == &stream, b->used);
  });
  const auto needed = [&] { return stream.stream.pages_for(window.asking.patches) + tails; };
  for (Stream* each : keeping) {
    if (needed() <= book_.free_pages()) break;
    each->stream.evict();
  }
  auto claim = book_.claim(needed());
  if (!claim) return false;
  try {
    window.placed.emplace(stream.stream.place(window.asking.patches, *claim));
  } catch (const std::invalid_argument& error) {
    claim.reset();
    fail(id, error.what(), false);
    return true;
  }
  window.claim = std::move(*claim);
  window.is_far = window.placed->is_far;
  window.rows = 0;
  for (const RowRun& run : window.placed->rows) window.rows += run.count;
  if (!window.placed->copies.empty()) passes_.copy_pages(window.placed->copies);
  stream.is_placing = true;
  stream.used = ++turn_;
  placed_.push_back(id);
  return true;
}

}  // namespace vigil::stream
