#include "actors/cache/disk_writing.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/memory/coverage.h"

namespace vigil::actors {
namespace {

/// That wait for a disk that takes nothing, at most; the oldest are forgotten first.
constexpr std::size_t kMostWaitingNotes = 4096;

}  // namespace

void DiskWriting::note(const std::vector<history::Note>& notes) {
  notes_.insert(notes_.end(), notes.begin(), notes.end());
  if (notes_.size() > kMostWaitingNotes)
    notes_.erase(notes_.begin(), notes_.end() - static_cast<std::ptrdiff_t>(kMostWaitingNotes));
}

DiskNews DiskWriting::turn(bool& goes_on) {
  DiskNews news;
  try {
    const std::vector<history::Erasure> erasures = store_.erasures();
    news.has_erased = std::any_of(erasures.begin(), erasures.end(),
                                  [](const history::Erasure& each) { return !each.finished; });
    if (news.has_erased) store_.finish_erasures();
    if (!expiries_.empty()) news.retired = store_.retire(std::exchange(expiries_, {}));
    if (!forgotten_.empty()) {
      const std::vector<std::uint64_t> forgotten = std::exchange(forgotten_, {});
      for (const history::Erasure& each : store_.erasures())
        if (each.finished && std::find(forgotten.begin(), forgotten.end(), each.id) != forgotten.end())
          store_.forget_erasure(each.id, static_cast<std::uint8_t>(memory::Gap::erased));
    }
    if (!notes_.empty()) store_.note(notes_);
    notes_.clear();
  } catch (const std::exception& error) {
    news.failure = error.what();
  }
  if (auto written = queue_.write_next(clock_.now())) news.written.push_back(std::move(*written));
  const auto due = queue_.due();
  goes_on = due && *due <= clock_.now();
  return news;
}

DiskNews DiskWriting::finish() {
  queue_.flush(std::nullopt);
  bool goes_on = false;
  DiskNews all = turn(goes_on);
  while (auto written = queue_.write_next(clock_.now())) all.written.push_back(std::move(*written));
  return all;
}

}  // namespace vigil::actors
