#include "engine/stream/camera_stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::stream {
namespace {

/// No window is so long that a longer gap would make a difference.
constexpr double kLongestGap = 1 << 24;

/// From here on the angles of positions are computed so that they are exact, below as transformers does.
constexpr std::int64_t kFar = 1 << 16;

bool has_embeddings(const model::VisualTokens& patch) {
  return patch.count() == 0 || patch.embeddings.bytes() > 0;
}

/// Patches that would have had their place between the beginnings of these, and the second itself.
std::int64_t steps_between(const model::VisualTokens& patch, const model::VisualTokens& next) {
  const double steps = (next.seconds - patch.seconds) / patch.duration;
  if (!(steps > 1)) return 1;
  return std::lround(std::min(steps, kLongestGap));
}

}  // namespace

CameraStream::CameraStream(kv::Book& book, const model::ModelConfig& model,
                           std::span<const std::int32_t> prompt, RefreshPolicyPtr policy)
    : book_(book),
      vision_(model.vision),
      time_axes_(model.text.traits.time_axes),
      prompt_(prompt.begin(), prompt.end()),
      policy_(std::move(policy)),
      keys_(book),
      account_(book) {}

std::int64_t CameraStream::append(model::VisualTokensPtr patch,
                                  std::optional<base::Clock::WallTime> captured) {
  std::int64_t time = 0;
  if (!patches_.empty()) {
    const model::VisualTokens& last = *patches_.back().tokens;
    time = patches_.back().time + steps_between(last, *patch) * model::time_interval(vision_, last.duration);
  }
  patches_.push_back({std::move(patch), captured, time});
  return patches().last - 1;
}

void CameraStream::restore(std::span<const RememberedPatch> patches, kv::Book::Claim& claim) {
  if (patches.empty()) throw std::invalid_argument("nothing is remembered");
  if (!can_restore())
    throw std::logic_error("a stream whose keys are not all there cannot go on with others");
  // Above two frames a second patches share a time (`model::time_interval`).
  std::int64_t before = patches_.empty() ? 0 : patches_.back().time, tokens = 0;
  for (const RememberedPatch& patch : patches) {
    if (patch.time < before || patch.time > std::numeric_limits<std::int32_t>::max() / 2)
      throw std::invalid_argument("the times of what is remembered descend, or no position can tell them");
    if (!patch.has_keys && !has_embeddings(*patch.tokens))
      throw std::invalid_argument("of a patch that is remembered neither keys nor embeddings are there");
    before = patch.time;
    tokens += patch.tokens->count();
  }
  keys_.append(tokens, claim);
  for (const RememberedPatch& patch : patches) patches_.push_back({patch.tokens, std::nullopt, patch.time});
  keyed_ = this->patches();
}

void CameraStream::leave_to(std::shared_ptr<PageSink> sink, std::string camera, std::uint64_t run) {
  sink_ = std::move(sink);
  camera_ = std::move(camera);
  run_ = run;
}

void CameraStream::offer(const PatchRange& patches, Leaving why, bool with_keys) {
  const PatchRange fresh{with_keys ? patches.first : std::max(patches.first, offered_), patches.last};
  if (!sink_ || fresh.count() <= 0 || (!with_keys && !sink_->takes_keyless())) return;
  LeavingTokens leaving{camera_, why, run_, {}, kv::View(book_)};
  for (std::int64_t number = fresh.first; number < fresh.last; ++number) {
    const Patch& patch = at(number);
    const auto before = static_cast<std::int32_t>(prompt_.size());
    const model::Position time = model::at_time(static_cast<std::int32_t>(patch.time), time_axes_);
    leaving.patches.push_back(
        {number, patch.tokens, {before + time.t, before + time.h, before + time.w}, patch.captured});
  }
  if (with_keys) leaving.view.extend(keys_, visual_tokens({keyed_.first, fresh.first}), visual_tokens(fresh));
  offered_ = std::max(offered_, fresh.last);
  sink_->take(std::move(leaving));
}

void CameraStream::slide(std::int64_t first, Leaving why) {
  const std::int64_t gone = std::clamp<std::int64_t>(first - first_, 0, patches().count());
  if (gone == 0) return;
  const std::int64_t keyless = std::min(first_ + gone, keyed_.last);
  if (keyless > keyed_.first) {
    offer({keyed_.first, keyless}, why, true);
    keys_.drop_front(visual_tokens({keyed_.first, keyless}));
    keyed_.first = keyless;
  }
  offer({first_, first_ + gone}, why, false);
  patches_.erase(patches_.begin(), patches_.begin() + gone);
  first_ += gone;
}

void CameraStream::show(bool is_computed_anew) {
  if (!policy_->keeps_keys()) return offer(patches(), Leaving::shown, false);
  if (!is_computed_anew) offer(keyed_, Leaving::shown, true);
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
  const base::GridMask& first = patch(range.first).kept;
  for (std::int64_t number = range.first + 1; number < range.last; ++number)
    if (const base::GridMask& groups = patch(number).kept;
        groups.height() != first.height() || groups.width() != first.width())
      throw std::invalid_argument("the frames of a window differ in size");
}

bool CameraStream::continues(const PatchRange& range) const {
  return keyed_.count() > 0 && keyed_.first <= range.first && keyed_.last >= range.first &&
         keyed_.last <= range.last;
}

std::vector<kv::TokenRange> CameraStream::refreshed(const PatchRange& kept) const {
  std::vector<KeptPatch> patches;
  for (std::int64_t number = kept.first; number < kept.last; ++number)
    patches.push_back({number, patch(number).count(), at(number).windows, patch(number).intra});
  std::vector<kv::TokenRange> ranges;
  const std::int64_t tokens = visual_tokens(kept);
  if (const std::optional<std::int64_t> count = policy_->ranked(tokens)) {
    if (*count > 0 && *count == tokens) ranges.push_back({0, tokens});
  } else {
    policy_->choose(patches, ranges);
  }
  return ranges;
}

std::int64_t CameraStream::ranked(const PatchRange& kept) const {
  const std::int64_t tokens = visual_tokens(kept);
  const std::int64_t count = policy_->ranked(tokens).value_or(0);
  return count < tokens ? count : 0;
}

std::vector<kv::TokenRange> CameraStream::among_keys(std::span<const kv::TokenRange> refreshed,
                                                     const PatchRange& kept) const {
  const std::int64_t before = visual_tokens({keyed_.first, kept.first});
  std::vector<kv::TokenRange> ranges(refreshed.begin(), refreshed.end());
  for (kv::TokenRange& range : ranges) range.first += before;
  return ranges;
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
  const PatchRange kept{range.first, keyed_.last};
  const std::int64_t pages =
      book_.pages_for(prompt) + keys_.pages_to_append(visual_tokens({keyed_.last, range.last}));
  // Wherever they are.
  if (const std::int64_t count = ranked(kept); count > 0) {
    const kv::TokenRange all{0, visual_tokens(kept)};
    return pages + std::min(count, keys_.pages_to_own(among_keys(std::span(&all, 1), kept)));
  }
  return pages + keys_.pages_to_own(among_keys(refreshed(kept), kept));
}

void CameraStream::lay_out(PlacedWindow& window, std::int64_t origin) const {
  window.positions.clear();
  window.cursor = model::PositionCursor(model::at_time(static_cast<std::int32_t>(origin), time_axes_));
  window.cursor.text(static_cast<std::int64_t>(prompt_.size()), window.positions);
  std::vector<model::PositionCursor::Patch> patches;
  const std::int64_t begin = at(window.patches.first).time;
  for (std::int64_t number = window.patches.first; number < window.patches.last; ++number)
    patches.push_back({&patch(number).kept, at(number).time - begin});
  window.cursor.grid(patches, window.positions, time_axes_);
  window.is_far = policy_->keeps_keys() || window.cursor.next() > kFar;
}

void CameraStream::add_rows(const PlacedWindow& window, const kv::TokenRange& tokens,
                            std::vector<RowRun>& to) const {
  std::int64_t begin = 0;
  for (std::int64_t number = window.patches.first; number < window.patches.last; ++number) {
    const std::int64_t end = begin + patch(number).count();
    const std::int64_t first = std::max(begin, tokens.first);
    const std::int64_t last = std::min(end, tokens.first + tokens.count);
    if (first < last)
      to.push_back({static_cast<std::int64_t>(prompt_.size()) + first, last - first, at(number).tokens,
                    first - begin, number});
    begin = end;
  }
}

std::int64_t CameraStream::pages_to_grow(const PlacedWindow& window, std::int64_t last) const {
  check({window.patches.first, last});
  return window.view.pages_to_append(visual_tokens({window.patches.last, last}));
}

void CameraStream::grow(PlacedWindow& window, std::int64_t last, kv::Book::Claim& claim) const {
  check({window.patches.first, last});
  const std::int64_t before = visual_tokens(window.patches);
  const std::int64_t more = visual_tokens({window.patches.last, last});
  window.patches.last = last;
  window.tokens.visual += more;
  lay_out(window, 0);
  window.view.append(more, claim);
  add_rows(window, {before, more}, window.rows);
}

PlacedWindow CameraStream::place(const PatchRange& range, kv::Book::Claim& claim) {
  check(range);
  const auto prompt = static_cast<std::int64_t>(prompt_.size());
  const bool keeps = policy_->keeps_keys();
  PlacedWindow window(book_);
  window.patches = range;
  window.tokens.visual = visual_tokens(range);

  // Under a policy that keeps keys, the texts are placed where the window is.
  const std::int64_t origin = keeps ? at(range.first).time : 0;
  if (origin > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("the stream is longer than positions can tell");
  lay_out(window, origin);

  const RowRun of_prompt{.at = 0, .count = prompt};
  if (!keeps) {
    window.view.append(prompt + visual_tokens(range), claim);
    window.rows.push_back(of_prompt);
    add_rows(window, {0, visual_tokens(range)}, window.rows);
    return window;
  }

  if (!continues(range)) {
    for (std::int64_t number = range.first; number < range.last; ++number)
      if (!has_embeddings(patch(number)))
        throw std::invalid_argument("what is remembered of it had to make room for others");
    evict();
  }
  if (keyed_.count() == 0) keyed_ = {range.first, range.first};
  const PatchRange kept{range.first, keyed_.last};
  window.tokens.kept = visual_tokens(kept);
  window.view.append(prompt, claim);
  if (const std::int64_t count = ranked(kept); count > 0) {
    window.tokens.refreshed = count;
    window.tokens.probed = window.tokens.kept;
    window.probe.push_back(of_prompt);
    add_rows(window, {0, window.tokens.kept}, window.probe);
    window.view.extend(keys_, visual_tokens({keyed_.first, range.first}), window.tokens.kept);
    return window;
  }
  complete(window, refreshed(kept), claim);
  return window;
}

void CameraStream::choose(PlacedWindow& window, std::span<const float> distances, kv::Book::Claim& claim) {
  if (window.probe.empty() || static_cast<std::int64_t>(distances.size()) != window.tokens.kept)
    throw std::logic_error("a window's keys were not looked at");
  const std::vector<kv::TokenRange> anew = farthest(distances, window.tokens.refreshed);
  window.probe.clear();
  // What it does not show is the stream's alone again, and need not be copied.
  kv::View prompt(book_);
  prompt.extend(window.view, 0, static_cast<std::int64_t>(prompt_.size()));
  window.view = std::move(prompt);
  complete(window, anew, claim);
}

void CameraStream::complete(PlacedWindow& window, std::span<const kv::TokenRange> anew,
                            kv::Book::Claim& claim) {
  const PatchRange& range = window.patches;
  const PatchRange kept{range.first, keyed_.last};
  window.rows.push_back({.at = 0, .count = static_cast<std::int64_t>(prompt_.size())});
  window.tokens.refreshed = 0;
  for (const kv::TokenRange& tokens : anew) {
    add_rows(window, tokens, window.rows);
    window.tokens.refreshed += tokens.count;
  }
  keys_.own(among_keys(anew, kept), claim, window.copies);
  const std::int64_t fresh = visual_tokens({keyed_.last, range.last});
  add_rows(window, {window.tokens.kept, fresh}, window.rows);
  keys_.append(fresh, claim);
  window.view.extend(keys_, visual_tokens({keyed_.first, range.first}), visual_tokens(range));
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
    if (Patch* patch = run.patch ? entry(run.number) : nullptr)
      if (run.count == run.patch->count()) patch->windows = 0;
}

void CameraStream::follow(RefreshPolicyPtr policy) {
  evict();
  policy_ = std::move(policy);
}

void CameraStream::set_limit(std::optional<std::int64_t> pages) {
  account_.set_limit(pages.value_or(kv::Book::Account::kUnlimited));
}

std::optional<std::int64_t> CameraStream::most_tokens() const {
  if (account_.limit() == kv::Book::Account::kUnlimited) return std::nullopt;
  // Keys that are kept begin anywhere in their first page.
  const std::int64_t pages = policy_->keeps_keys()
                                 ? std::max(account_.limit() - 1, std::min<std::int64_t>(account_.limit(), 1))
                                 : account_.limit();
  return pages * book_.page_tokens();
}

PatchRange CameraStream::within_limit(const PatchRange& range) const {
  const std::int64_t first = std::max(range.first, first_);
  const auto most = most_tokens();
  if (!most || range.last <= first) return {first, range.last};
  PatchRange within{range.last - 1, range.last};
  std::int64_t tokens = patch(within.first).count();
  while (within.first > first && tokens + patch(within.first - 1).count() <= *most)
    tokens += patch(--within.first).count();
  return within;
}

void CameraStream::keep() {
  if (!account_.keep(keys_.pages()))
    evict(keys_.pages() > account_.limit() ? Leaving::forgotten : Leaving::evicted);
}

void CameraStream::evict(Leaving why) {
  offer(keyed_, why, true);
  discard();
}

void CameraStream::discard() {
  keys_.clear();
  keyed_ = {};
  account_.keep(0);
}

}  // namespace vigil::stream
