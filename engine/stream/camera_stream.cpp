#include "engine/stream/camera_stream.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::stream {

CameraStream::CameraStream(kv::Book& book, const model::VisionConfig& vision,
                           std::span<const std::int32_t> prompt, RefreshPolicyPtr policy)
    : book_(book),
      vision_(vision),
      prompt_(prompt.begin(), prompt.end()),
      policy_(std::move(policy)),
      keys_(book) {}

std::int64_t CameraStream::append(model::VisualTokensPtr patch) {
  patches_.push_back({std::move(patch)});
  return patches().last - 1;
}

void CameraStream::slide(std::int64_t first) {
  const std::int64_t gone = std::clamp<std::int64_t>(first - first_, 0, patches().count());
  if (gone == 0) return;
  const std::int64_t keyless = std::min(first_ + gone, keyed_.last);
  if (keyless > keyed_.first) {
    keys_.drop_front(visual_tokens({keyed_.first, keyless}));
    keyed_.first = keyless;
  }
  patches_.erase(patches_.begin(), patches_.begin() + gone);
  first_ += gone;
}

std::int64_t CameraStream::visual_tokens(const PatchRange& range) const {
  std::int64_t tokens = 0;
  for (std::int64_t number = range.first; number < range.last; ++number) tokens += patch(number).count();
  return tokens;
}

void CameraStream::check(const PatchRange& range) const {
  if (range.count() <= 0) throw std::invalid_argument("a window without frames cannot be asked");
  if (range.first < first_ || range.last > patches().last)
    throw std::invalid_argument("a window of frames that are not in the stream");
  const model::VisualTokens& first = patch(range.first);
  for (std::int64_t number = range.first + 1; number < range.last; ++number)
    if (const base::GridMask& groups = patch(number).groups;
        groups.height() != first.groups.height() || groups.width() != first.groups.width()) {
      throw std::invalid_argument("the frames of a window differ in size");
    } else if (interval(patch(number)) != interval(first)) {
      throw std::invalid_argument("the frames of a window differ in duration");
    }
}

bool CameraStream::continues(const PatchRange& range) const {
  return keyed_.count() > 0 && keyed_.first <= range.first && keyed_.last >= range.first &&
         keyed_.last <= range.last && keyed_interval_ == interval(patch(range.first));
}

bool CameraStream::computes(std::int64_t number) const {
  return number >= keyed_.last || policy_->refreshes({number, at(number).windows});
}

std::int64_t CameraStream::interval(const model::VisualTokens& patch) const {
  return model::time_interval(vision_, patch.duration);
}

std::int64_t CameraStream::most_pages_for(const PatchRange& range) const {
  check(range);
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  return policy_->keeps_keys() ? book_.pages_for(prompt) + book_.pages_for(visual_tokens(range))
                               : book_.pages_for(prompt + visual_tokens(range));
}

std::int64_t CameraStream::pages_for(const PatchRange& range) const {
  check(range);
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  if (!policy_->keeps_keys() || !continues(range)) return most_pages_for(range);
  std::int64_t pages =
      book_.pages_for(prompt) + keys_.pages_to_append(visual_tokens({keyed_.last, range.last}));
  for (std::int64_t number = range.first; number < keyed_.last; ++number)
    if (computes(number))
      pages += keys_.pages_to_own(visual_tokens({keyed_.first, number}), patch(number).count());
  return pages;
}

void CameraStream::lay_out(PlacedWindow& window, std::int64_t origin) const {
  const model::VisualTokens& first = patch(window.patches.first);
  window.positions.clear();
  window.cursor = model::PositionCursor({static_cast<std::int32_t>(origin), 0, 0});
  window.cursor.text(static_cast<std::int64_t>(prompt_.size()), window.positions);
  std::vector<const base::GridMask*> groups;
  for (std::int64_t number = window.patches.first; number < window.patches.last; ++number)
    groups.push_back(&patch(number).groups);
  window.cursor.grid(groups, static_cast<std::int32_t>(interval(first)), window.positions);
}

std::int64_t CameraStream::pages_to_grow(const PlacedWindow& window, std::int64_t last) const {
  check({window.patches.first, last});
  return window.view.pages_to_append(visual_tokens({window.patches.last, last}));
}

void CameraStream::grow(PlacedWindow& window, std::int64_t last, kv::Book::Claim& claim) const {
  check({window.patches.first, last});
  const std::int64_t begin = window.patches.last;
  window.patches.last = last;
  lay_out(window, 0);
  window.view.append(visual_tokens({begin, last}), claim);
  auto tokens = static_cast<std::int64_t>(prompt_.size()) + visual_tokens({window.patches.first, begin});
  for (std::int64_t number = begin; number < last; ++number) {
    window.rows.push_back({tokens, patch(number).count(), at(number).tokens, number});
    tokens += patch(number).count();
  }
}

PlacedWindow CameraStream::place(const PatchRange& range, kv::Book::Claim& claim) {
  check(range);
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  const bool keeps = policy_->keeps_keys();
  const model::VisualTokens& first = patch(range.first);
  PlacedWindow window(book_);
  window.patches = range;
  window.is_far = keeps;

  // Under a policy that keeps keys, the texts are placed where the window is.
  const std::int64_t origin = keeps ? range.first * interval(first) : 0;
  if (origin > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("the stream is longer than positions can tell");
  lay_out(window, origin);

  window.rows.push_back({0, prompt, nullptr, 0});
  const auto compute = [&](std::int64_t number) {
    const std::int64_t tokens = patch(number).count();
    window.rows.push_back({prompt + visual_tokens({range.first, number}), tokens, at(number).tokens, number});
  };
  if (!keeps) {
    window.view.append(prompt + visual_tokens(range), claim);
    for (std::int64_t number = range.first; number < range.last; ++number) compute(number);
    return window;
  }

  if (!continues(range)) evict();
  if (keyed_.count() == 0) keyed_ = {range.first, range.first};
  keyed_interval_ = interval(first);
  for (std::int64_t number = range.first; number < range.last; ++number) {
    if (!computes(number)) continue;
    compute(number);
    if (number < keyed_.last)
      keys_.own(visual_tokens({keyed_.first, number}), patch(number).count(), claim, window.copies);
  }
  keys_.append(visual_tokens({keyed_.last, range.last}), claim);
  window.view.append(prompt, claim);
  window.view.extend(keys_, visual_tokens({keyed_.first, range.first}), visual_tokens(range));
  return window;
}

void CameraStream::computed(const PlacedWindow& window) {
  if (!policy_->keeps_keys()) return;
  // The stream may have slid on meanwhile.
  keyed_.last = std::max(keyed_.first, window.patches.last);
  const auto entry = [&](std::int64_t number) -> Patch* {
    return number < first_ ? nullptr : &patches_[static_cast<std::size_t>(number - first_)];
  };
  for (std::int64_t number = window.patches.first; number < window.patches.last; ++number)
    if (Patch* patch = entry(number)) ++patch->windows;
  for (const RowRun& run : window.rows)
    if (Patch* patch = run.patch ? entry(run.number) : nullptr) patch->windows = 0;
}

void CameraStream::evict() {
  keys_.clear();
  keyed_ = {};
}

}  // namespace vigil::stream
