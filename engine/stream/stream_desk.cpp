#include "engine/stream/stream_desk.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "engine/run/vision_encoder.h"

namespace vigil::stream {

using base::Clock;

StreamDesk::StreamDesk(const model::ModelFolder& folder, const model::PromptBuilder& prompts, kv::Book& book,
                       run::Passes& passes, const Options& options)
    : folder_(folder),
      prompts_(prompts),
      book_(book),
      passes_(passes),
      options_(options),
      limits_(options.limits),
      words_(folder),
      shares_(options.memory_bytes) {}

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
  CameraStream stream(book_, folder_.config, prompts_.before_tokens(), std::move(policy));
  stream.leave_to(sink_, camera, ++runs_);
  streams_.try_emplace(camera, camera, std::move(stream), runs_);
}

std::optional<std::span<const std::int32_t>> StreamDesk::restore(const std::string& camera,
                                                                 std::span<const RememberedPatch> patches) {
  if (is_open(camera)) throw std::invalid_argument("the stream of camera " + camera + " is open");
  std::int64_t tokens = 0;
  std::vector<std::int64_t> others;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    tokens += patches[i].tokens->count();
    if (!patches[i].has_keys) others.push_back(static_cast<std::int64_t>(i));
  }
  auto claim = book_.claim(book_.pages_for(tokens));
  if (!claim) return std::nullopt;
  CameraStream stream(book_, folder_.config, prompts_.before_tokens(), computes_those(std::move(others)));
  stream.restore(patches, *claim);
  stream.keep();
  if (tokens > 0 && !stream.keeps_pages()) return std::nullopt;
  const auto entry = streams_.try_emplace(camera, camera, std::move(stream), ++runs_).first;
  entry->second.is_restored = true;
  return entry->second.stream.slots();
}

std::optional<std::span<const std::int32_t>> StreamDesk::restore_more(
    const std::string& camera, std::span<const RememberedPatch> patches) {
  CameraStream& stream = find(camera).stream;
  if (!stream.can_restore()) return std::nullopt;
  std::int64_t tokens = 0;
  for (const RememberedPatch& patch : patches) {
    if (!patch.has_keys)
      throw std::invalid_argument("a stream goes on with a patch whose keys are not there");
    tokens += patch.tokens->count();
  }
  const std::int64_t before = stream.visual_tokens(stream.patches());
  auto claim = book_.claim(book_.pages_for(tokens));
  if (!claim) return std::nullopt;
  stream.restore(patches, *claim);
  stream.keep();
  if (before + tokens > 0 && !stream.keeps_pages()) return std::nullopt;
  return stream.slots().last(static_cast<std::size_t>(tokens));
}

void StreamDesk::follow(const std::string& camera, RefreshPolicyPtr policy) {
  Stream& stream = find(camera);
  if (stream.ahead) drop_ahead(stream);
  stream.next_policy = std::move(policy);
  follow_next(stream);
  is_full_ = false;
}

std::int64_t StreamDesk::append(const std::string& camera, model::VisualTokensPtr patch,
                                std::optional<Clock::WallTime> captured) {
  return find(camera).stream.append(std::move(patch), captured);
}

void StreamDesk::slide(const std::string& camera, std::int64_t first) {
  Stream& stream = find(camera);
  stream.wanted_from = std::max(stream.wanted_from, first);
  slide(stream);
}

void StreamDesk::shorten(const std::string& camera, std::int64_t first) {
  Stream& stream = find(camera);
  stream.shortened_to = std::max(stream.shortened_to, first);
  slide(stream);
}

void StreamDesk::slide(Stream& stream) {
  std::int64_t open_from = std::numeric_limits<std::int64_t>::max();
  for (const Key key : stream.open) open_from = std::min(open_from, window(key).asking.patches.first);
  const std::int64_t slid = std::min(open_from, stream.wanted_from);
  const std::int64_t from = std::min(open_from, std::max(stream.wanted_from, stream.shortened_to));
  if (stream.ahead && window(*stream.ahead).placed->patches.first < from) drop_ahead(stream);
  if (stream.memory) stream.memory->leave_before(std::max(slid, from));
  stream.stream.slide(slid);
  stream.stream.slide(from, Leaving::forgotten);
  settle_memory(stream);
  if (!stream.placing) stream.stream.keep();
  is_full_ = false;
}

void StreamDesk::set_budget(const std::string& camera, std::uint64_t bytes) {
  Stream& stream = find(camera);
  std::optional<std::int64_t> pages;
  if (bytes > 0 && options_.page_bytes > 0)
    pages = static_cast<std::int64_t>(bytes / static_cast<std::uint64_t>(options_.page_bytes));
  stream.stream.set_limit(pages);
  if (!stream.placing) stream.stream.keep();
  is_full_ = false;
}

void StreamDesk::leave_to(std::shared_ptr<PageSink> sink) {
  sink_ = std::move(sink);
  for (auto& [camera, stream] : streams_) send_leaving(camera, stream);
}

std::optional<WindowId> StreamDesk::show(const std::string& camera) {
  const auto entry = streams_.find(camera);
  if (entry == streams_.end()) return std::nullopt;
  Stream& stream = entry->second;
  stream.stream.show(stream.placing && window(*stream.placing).placed->tokens.refreshed > 0);
  if (stream.open.empty()) return std::nullopt;
  return window(stream.open.front()).id;
}

bool StreamDesk::is_open(const WindowId& id) const {
  const auto stream = streams_.find(id.camera);
  if (stream == streams_.end()) return false;
  const std::vector<Key>& open = stream->second.open;
  return std::find(open.begin(), open.end(), Key{id.epoch, id.number}) != open.end();
}

void StreamDesk::reserve_texts() {
  std::int64_t most = 0;
  for (const auto& [camera, stream] : streams_) most = std::max(most, stream.texts);
  book_.set_reserve(most);
}

void StreamDesk::close(const std::string& camera) {
  Stream& stream = find(camera);
  if (stream.ahead) drop_ahead(stream);
  const std::vector<Key> left = stream.open;
  for (const Key key : left) fail(key, "its stream has ended", false);
  stream.stream.evict(Leaving::closed);
  stream.stream.slide(stream.stream.patches().last, Leaving::closed);
  streams_.erase(camera);
  reserve_texts();
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
  const std::int64_t visual = stream.stream.most_pages_for(asking.patches);
  std::int64_t most = visual;
  for (const Asking::Item& item : asking.questions) most += tail_pages(*item.question);
  if (most > book_.pages())
    throw std::invalid_argument("a window with " + std::to_string(asking.questions.size()) +
                                (asking.questions.size() == 1 ? " question needs " : " questions need ") +
                                std::to_string(most * book_.page_tokens()) +
                                " tokens of KV cache, there are " + std::to_string(book_.tokens()));
  if (stream.stream.within_limit(asking.patches) != asking.patches)
    throw std::invalid_argument("a window of " + std::to_string(stream.stream.visual_tokens(asking.patches)) +
                                " visual tokens is larger than its camera's budget, which has room for " +
                                std::to_string(*stream.stream.most_tokens()));
  if (const std::int64_t texts = most - visual + book_.pages_for(prompts_.before()); texts != stream.texts) {
    stream.texts = texts;
    reserve_texts();
  }

  const bool is_begun = stream.ahead && begins(window(*stream.ahead), asking.patches);
  if (stream.ahead && !is_begun && !window(*stream.ahead).is_asked) drop_ahead(stream);
  const Key key = is_begun ? *stream.ahead : next_key();
  Window& window = windows_[key];
  window.id = {camera, key.epoch, key.number};
  window.is_asked = true;
  window.rank = asking.due;
  window.asking = std::move(asking);
  window.memory = stream.memory;
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
  const bool was_probed = entry->second.placed && !entry->second.placed->probe.empty();
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
    // What there is of its keys is nothing that others could go on from; but looking at keys leaves them.
    if (!was_probed) stream->second.stream.discard();
    stream->second.placing.reset();
  }
  slide(stream->second);
}

void StreamDesk::fail(Key key, const std::string& reason, bool out_of_memory) {
  news_.failed.push_back({window(key).id, reason, out_of_memory});
  forget(key);
}

bool StreamDesk::propose(const WindowId& id, std::size_t question, std::size_t said,
                         std::span<const std::int32_t> tokens) {
  OpenText* open = find_text(id, question);
  const bool may = open != nullptr && open->state == TextState::goes_on && !find_window(id)->memory &&
                   open->text.answer().tokens.size() == said;
  return may && open->text.propose(tokens) > 0;
}

bool StreamDesk::explain(const WindowId& id, std::size_t question) {
  OpenText* open = find_text(id, question);
  const bool may = open != nullptr && (open->state == TextState::idle || open->state == TextState::carried);
  if (!may) return false;
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
  const bool may = open != nullptr && (open->state == TextState::idle || open->state == TextState::carried);
  if (!may) return std::nullopt;
  const Window& window = *find_window(id);
  if (window.memory) return std::nullopt;
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
  // Who holds what left a stream lets go at any time.
  if (is_full_ && book_.free_pages() > free_when_full_) is_full_ = false;
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

}  // namespace vigil::stream
