// The part of the desk that gives windows their places in the cache: who has room, who makes room for whom,
// and what is placed before it is asked.
#include <algorithm>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/run/vision_encoder.h"
#include "engine/stream/stream_desk.h"

namespace vigil::stream {

using base::Clock;

namespace {

/// So many will be computed, chosen or not.
std::int64_t rows_of(const PlacedWindow& window) {
  if (!window.probe.empty())
    return window.probe.front().count + window.tokens.refreshed + window.tokens.fresh();
  std::int64_t rows = 0;
  for (const RowRun& run : window.rows) rows += run.count;
  return rows;
}

}  // namespace

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
      free_when_full_ = book_.free_pages();
      return;
    }
    // It failed, or has its place.
    if (i < waiting_.size() && waiting_[i] == key)
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void StreamDesk::make_room(Key key, const Window& window, Stream& stream,
                           const std::function<std::int64_t()>& needed) {
  if (sink_) sink_->let_go();
  if (needed() <= book_.free_pages()) return;
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
    stream.stream.discard();
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
  // A window that its budget shortens begins later than can be told now: it is computed when it is asked.
  const bool is_whole = stream.stream.within_limit(range).first <= first;
  if (stream.ahead && (!is_whole || !begins(window(*stream.ahead), range))) drop_ahead(stream);
  if (!is_whole || is_full_ || range.count() == 0 || !stream.stream.can_grow()) return;
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
