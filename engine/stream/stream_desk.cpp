#include "engine/stream/stream_desk.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"

namespace vigil::stream {

using base::Clock;

namespace {

std::int64_t rows_of(const PlacedWindow& window) {
  std::int64_t rows = 0;
  for (const RowRun& run : window.rows) rows += run.count;
  return rows;
}

}  // namespace

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

void StreamDesk::follow(const std::string& camera, RefreshPolicyPtr policy) {
  Stream& stream = find(camera);
  if (stream.ahead) drop_ahead(stream);
  stream.next_policy = std::move(policy);
  follow_next(stream);
  is_full_ = false;
}

std::int64_t StreamDesk::append(const std::string& camera, model::VisualTokensPtr patch) {
  return find(camera).stream.append(std::move(patch));
}

void StreamDesk::slide(const std::string& camera, std::int64_t first) {
  Stream& stream = find(camera);
  stream.wanted_from = std::max(stream.wanted_from, first);
  slide(stream);
}

void StreamDesk::slide(Stream& stream) {
  std::int64_t from = stream.wanted_from;
  for (const Key key : stream.open) from = std::min(from, window(key).asking.patches.first);
  if (stream.ahead && window(*stream.ahead).placed->patches.first < from) drop_ahead(stream);
  stream.stream.slide(from);
  is_full_ = false;
}

void StreamDesk::close(const std::string& camera) {
  Stream& stream = find(camera);
  if (stream.ahead) drop_ahead(stream);
  const std::vector<Key> left = stream.open;
  for (const Key key : left) fail(key, "its stream has ended", false);
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
    throw std::invalid_argument("a window with " + std::to_string(asking.questions.size()) +
                                (asking.questions.size() == 1 ? " question needs " : " questions need ") +
                                std::to_string(most * book_.page_tokens()) +
                                " tokens of KV cache, there are " + std::to_string(book_.tokens()));

  const bool is_begun = stream.ahead && begins(window(*stream.ahead), asking.patches);
  if (stream.ahead && !is_begun && !window(*stream.ahead).is_asked) drop_ahead(stream);
  const Key key = is_begun ? *stream.ahead : next_key();
  Window& window = windows_[key];
  window.id = {camera, key.epoch, key.number};
  window.is_asked = true;
  window.rank = asking.due;
  window.asking = std::move(asking);
  // Before any other goes: the stream keeps what it shows.
  stream.open.push_back(key);
  if (window.asking.overtakes) {
    for (std::size_t i = 0; i < waiting_.size();) {
      const Key older = waiting_[i];
      const Window& other = this->window(older);
      if (other.id.camera != camera) {
        ++i;
        continue;
      }
      window.rank = std::min(window.rank, other.rank);
      news_.overtaken.push_back(other.id);
      forget(older);
    }
  }
  insert_by_rank(waiting_, key);
  is_full_ = false;
  return window.id;
}

void StreamDesk::insert_by_rank(std::vector<Key>& into, Key key) {
  const auto rank = window(key).rank;
  into.insert(std::find_if(into.begin(), into.end(), [&](Key other) { return rank < window(other).rank; }),
              key);
}

StreamDesk::Window* StreamDesk::find_window(const WindowId& id) {
  const auto entry = windows_.find({id.epoch, id.number});
  return entry == windows_.end() || entry->second.id.camera != id.camera ? nullptr : &entry->second;
}

StreamDesk::OpenText* StreamDesk::find_text(const WindowId& id, std::size_t question) {
  Window* window = find_window(id);
  if (window == nullptr || !window->is_answered) return nullptr;
  const auto entry = window->texts.find(question);
  return entry == window->texts.end() ? nullptr : &entry->second;
}

void StreamDesk::forget(Key key) {
  const auto entry = windows_.find(key);
  if (entry == windows_.end()) return;
  const std::string camera = std::move(entry->second.id.camera);
  const bool was_answered = entry->second.is_answered;
  std::erase_if(going_, [&](const TextRef& ref) { return ref.window == key; });
  std::erase_if(texts_alone_, [&](const TextRef& ref) { return ref.window == key; });
  std::erase(placed_, key);
  std::erase(waiting_, key);
  std::erase(windows_alone_, key);
  windows_.erase(entry);
  is_full_ = false;
  const auto stream = streams_.find(camera);
  if (stream == streams_.end() || was_answered) return;
  std::erase(stream->second.open, key);
  if (stream->second.ahead == key) stream->second.ahead.reset();
  if (stream->second.placing == key) {
    // What there is of its keys is nothing that others could go on from.
    stream->second.stream.evict();
    stream->second.placing.reset();
  }
  slide(stream->second);
}

void StreamDesk::fail(Key key, const std::string& reason, bool out_of_memory) {
  news_.failed.push_back({window(key).id, reason, out_of_memory});
  forget(key);
}

bool StreamDesk::explain(const WindowId& id, std::size_t question) {
  OpenText* open = find_text(id, question);
  if (open == nullptr || open->state != TextState::idle) return false;
  const TextRef ref{{id.epoch, id.number}, question};
  if (open->text.done()) {
    news_.told.push_back({id, question, open->text.answer(), nullptr, std::nullopt});
    close_text(ref);
    return true;
  }
  open->state = TextState::goes_on;
  const auto due = window(ref.window).asking.due;
  going_.insert(std::find_if(going_.begin(), going_.end(),
                             [&](const TextRef& other) { return due < window(other.window).asking.due; }),
                ref);
  return true;
}

std::optional<StreamDesk::Loan> StreamDesk::lend(const WindowId& id, std::size_t question) {
  OpenText* open = find_text(id, question);
  if (open == nullptr || open->state != TextState::idle) return std::nullopt;
  const Window& window = *find_window(id);
  open->state = TextState::lent;
  open->lent.emplace(open->text.view().fork());
  // Nothing is added to it here.
  open->claim.give_back();
  return Loan{
      id,           question, std::move(open->text), window.asking.due, window.deadline, window.asking.keep,
      window.is_far};
}

void StreamDesk::adopt(Loan loan) {
  // What is there of its tail is copied.
  const kv::View& view = loan.text.view();
  auto claim = book_.claim(loan.text.done() ? 0 : view.pages_to_append(loan.text.question().max_tokens));
  if (!claim) throw std::logic_error("the KV cache of generation has less room than was counted");
  Window& window = windows_[{loan.window.epoch, loan.window.number}];
  if (!window.handover) {
    window.handover = std::make_unique<kv::Handover>(book_);
    window.id = loan.window;
    window.asking.due = loan.due;
    window.deadline = loan.deadline;
    window.asking.keep = loan.keep;
    window.is_far = loan.is_far;
    window.is_answered = true;
  }
  std::vector<kv::PageCopy> copies;
  OpenText& open =
      window.texts.emplace(loan.question, OpenText{std::move(loan.text), std::move(*claim)}).first->second;
  try {
    open.text.move_to(*window.handover, copies);
    passes_.take_pages(copies);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (...) {
    settle();
    close_text({{loan.window.epoch, loan.window.number}, loan.question});
    throw;
  }
  explain(loan.window, loan.question);
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
  told.window = window(ref.window).id;
  told.question = ref.question;
  told.failure = std::move(why);
  close_text(ref);
}

void StreamDesk::done(const WindowId& id, std::size_t question) {
  const OpenText* open = find_text(id, question);
  if (open != nullptr && open->state != TextState::closed) close_text({{id.epoch, id.number}, question});
}

void StreamDesk::done(const WindowId& id) {
  if (find_window(id) != nullptr) forget({id.epoch, id.number});
}

void StreamDesk::let_go(const WindowId& id) {
  const Window* window = find_window(id);
  if (window == nullptr || !window->is_answered) return;
  std::vector<std::size_t> idle;
  for (const auto& [question, open] : window->texts)
    if (open.state == TextState::idle) idle.push_back(question);
  for (const std::size_t question : idle) close_text({{id.epoch, id.number}, question});
}

// Who has lent a text keeps its pages until it is told that it is done.
bool StreamDesk::can_expire(const Window& window) {
  return window.is_answered && window.deadline &&
         std::none_of(window.texts.begin(), window.texts.end(),
                      [](const auto& each) { return each.second.state == TextState::lent; });
}

void StreamDesk::expire(Clock::TimePoint now) {
  std::vector<Key> over;
  for (auto& [key, window] : windows_) {
    // Not from the time of the pass that answered it, which may have been long.
    if (window.is_answered && window.asking.keep && !window.deadline)
      window.deadline = now + *window.asking.keep;
    if (can_expire(window) && *window.deadline <= now) over.push_back(key);
  }
  for (const Key key : over) {
    // Pages of another desk are given back when it hears of it.
    if (window(key).handover) settle();
    const std::vector<TextRef> texts = going_;
    for (const TextRef& ref : texts)
      if (ref.window == key) fail_text(ref, std::make_exception_ptr(std::runtime_error("its time is over")));
    forget(key);
  }
}

// --- Room
// ---------------------------------------------------------------------------------------------------

std::int64_t StreamDesk::rows_placed() const {
  std::int64_t rows = 0;
  for (const Key key : placed_) {
    const Window& each = windows_.find(key)->second;
    rows += each.rows - each.filled;
  }
  return rows;
}

void StreamDesk::admit() {
  // One that has its place is not overtaken any more, so none gets it before its rows can be computed.
  for (std::size_t i = 0; i < waiting_.size() && may_admit() && rows_placed() < limits_.rows;) {
    const Key key = waiting_[i];
    Window& window = this->window(key);
    Stream& stream = find(window.id.camera);
    // Windows of a stream are computed one after the other.
    if (stream.placing) {
      ++i;
      continue;
    }
    if (!place(key, window, stream)) {
      // None that is smaller goes before it, or it would never have its turn.
      is_full_ = true;
      return;
    }
    // It failed, or has its place.
    if (i < waiting_.size() && waiting_[i] == key)
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void StreamDesk::make_room(Key key, const Window& window, Stream& stream,
                           const std::function<std::int64_t()>& needed) {
  // Its own pages last: without them it needs more.
  std::vector<Stream*> keeping;
  for (auto& [camera, each] : streams_)
    if (pages_ahead(each, key) > 0 || (each.stream.keeps_pages() && !each.placing)) keeping.push_back(&each);
  std::sort(keeping.begin(), keeping.end(), [&](const Stream* a, const Stream* b) {
    // Nobody expects windows of those that have no time.
    const auto order = [&](const Stream* each) {
      return std::tuple(each == &stream, each->next_due.has_value(),
                        -each->next_due.value_or(Clock::TimePoint{}).time_since_epoch(), each->used);
    };
    return order(a) < order(b);
  });
  const auto kept = [](const Stream& each) { return each.placing ? 0 : each.stream.evictable_pages(); };
  const std::int64_t own_gain = kept(stream);
  std::int64_t gain = pages_ahead(stream, key);
  for (const Stream* each : keeping)
    if (each != &stream) gain += kept(*each) + pages_ahead(*each, key);
  // What others keep goes only if it is enough: the rest of a room is with texts, which end.
  const std::int64_t room = book_.free_pages() + gain;
  const bool is_enough =
      needed() <= room ||
      stream.stream.most_pages_for(window.asking.patches) + tails(window) <= room + own_gain;
  if (!is_enough) return;
  for (Stream* each : keeping) {
    if (needed() <= book_.free_pages()) return;
    if (pages_ahead(*each, key) > 0) drop_ahead(*each);
    if (needed() <= book_.free_pages()) return;
    if (!each->placing) each->stream.evict();
  }
}

void StreamDesk::follow_next(Stream& stream) {
  if (!stream.next_policy || stream.placing) return;
  stream.stream.follow(std::exchange(stream.next_policy, nullptr));
}

bool StreamDesk::place(Key key, Window& window, Stream& stream) {
  if (stream.next_policy && stream.ahead) drop_ahead(stream);
  follow_next(stream);
  const PatchRange& range = window.asking.patches;
  const auto needed = [&] {
    return tails(window) + (window.placed ? stream.stream.pages_to_grow(*window.placed, range.last)
                                          : stream.stream.pages_for(range));
  };
  std::optional<kv::Book::Claim> claim;
  try {
    if (needed() > book_.free_pages()) make_room(key, window, stream, needed);
    claim = book_.claim(needed());
    if (!claim) return false;
    if (window.placed) {
      stream.stream.grow(*window.placed, range.last, *claim);
    } else {
      window.placed.emplace(stream.stream.place(range, *claim));
    }
    if (!window.placed->copies.empty()) passes_.copy_pages(window.placed->copies);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    // Whatever of it was laid out or submitted.
    settle();
    window.placed.reset();
    stream.stream.evict();
    claim.reset();
    fail(key, error.what(), dynamic_cast<const std::bad_alloc*>(&error) != nullptr);
    return true;
  }
  window.claim = std::move(*claim);
  window.is_far = window.placed->is_far;
  window.rows = rows_of(*window.placed);
  if (stream.ahead == key) stream.ahead.reset();
  stream.placing = key;
  stream.used = ++turn_;
  insert_by_rank(placed_, key);
  return true;
}

std::int64_t StreamDesk::tails(const Window& window) const {
  std::int64_t pages = 0;
  for (const Asking::Item& item : window.asking.questions) pages += tail_pages(*item.question);
  return pages;
}

double StreamDesk::usage() const {
  if (book_.pages() == 0) return 0;
  std::int64_t anybodys = 0;
  for (const auto& [camera, stream] : streams_) anybodys += pages_ahead(stream);
  return book_.usage() - static_cast<double>(anybodys) / static_cast<double>(book_.pages());
}

// --- Ahead
// --------------------------------------------------------------------------------------------------

bool StreamDesk::begins(const Window& window, const PatchRange& range) {
  const PatchRange& there = window.placed->patches;
  return !window.is_asked && there.first == range.first && there.last <= range.last;
}

void StreamDesk::expect(const std::string& camera, std::int64_t first, Clock::TimePoint due) {
  Stream& stream = find(camera);
  stream.next_due = due;
  const PatchRange range{first, stream.stream.patches().last};
  if (stream.ahead && window(*stream.ahead).is_asked) return;
  if (stream.ahead && !begins(window(*stream.ahead), range)) drop_ahead(stream);
  if (is_full_ || range.count() == 0 || !stream.stream.can_grow()) return;
  try {
    if (stream.ahead) {
      Window& window = this->window(*stream.ahead);
      window.asking.due = due;
      auto claim = book_.claim(stream.stream.pages_to_grow(*window.placed, range.last));
      if (!claim) return;
      stream.stream.grow(*window.placed, range.last, *claim);
      window.rows = rows_of(*window.placed);
      return;
    }
    auto claim = book_.claim(stream.stream.pages_for(range));
    if (!claim) return;
    PlacedWindow placed = stream.stream.place(range, *claim);
    const Key key = next_key();
    Window& window = windows_[key];
    window.id = {camera, key.epoch, key.number};
    window.is_asked = false;
    window.asking.due = due;
    window.rows = rows_of(placed);
    window.placed.emplace(std::move(placed));
    stream.ahead = key;
  } catch (const std::invalid_argument&) {
    // What is wrong with it is told when it is asked.
    if (stream.ahead) drop_ahead(stream);
  }
}

void StreamDesk::drop_ahead(Stream& stream) {
  const Key key = *stream.ahead;
  stream.ahead.reset();
  Window& window = this->window(key);
  if (!window.is_asked) return forget(key);
  window.placed.reset();
  window.rows = window.filled = 0;
  window.begun.reset();
  std::erase(windows_alone_, key);
}

std::int64_t StreamDesk::pages_ahead(const Stream& stream, std::optional<Key> but) const {
  if (!stream.ahead || stream.ahead == but) return 0;
  return windows_.find(*stream.ahead)->second.placed->view.own_pages();
}

std::vector<const StreamDesk::Window*> StreamDesk::ahead() const {
  std::vector<const Window*> windows;
  for (const auto& [camera, stream] : streams_) {
    if (!stream.ahead) continue;
    const Window& window = windows_.find(*stream.ahead)->second;
    if (window.filled < window.rows) windows.push_back(&window);
  }
  return windows;
}

}  // namespace vigil::stream
