#include "engine/memory/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace vigil::memory {
namespace {

// So many come to within three of the first of 64 patches.
constexpr std::size_t kLooksAMoment = 6;

history::WallRange wall_of(const std::vector<SearchedPage>& pages, std::span<const Slice> slices) {
  history::WallRange wall{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Slice& slice : slices)
    for (std::size_t i = slice.first; i < slice.last; ++i) {
      wall.from = std::min(wall.from, pages[slice.page].patches[i].wall.from);
      wall.to = std::max(wall.to, pages[slice.page].patches[i].wall.to);
    }
  return wall;
}

void add(std::size_t page, std::size_t patch, std::vector<Slice>& to) {
  if (!to.empty() && to.back().page == page && to.back().last == patch) {
    ++to.back().last;
  } else {
    to.push_back({page, patch, patch + 1});
  }
}

}  // namespace

Search::Search(std::span<const SearchedPage> pages, const Options& options)
    : pages_(pages.begin(), pages.end()), options_(options) {
  if (options.length <= 0 || options.step <= 0 || options.whole == 0)
    throw std::invalid_argument("a search without windows");
  windows_ = lay_out();
  for (const Window& window : windows_) result_.all_tokens += tokens_of(window.slices, false);
  std::int64_t all = 0, brief = 0;
  for (const SearchedPage& page : pages_)
    for (const SearchedPage::Patch& patch : page.patches) {
      all += patch.tokens;
      brief += patch.standing_out;
    }
  if (all == 0) return;
  const double window = static_cast<double>(result_.all_tokens) / static_cast<double>(windows_.size());
  const double read = static_cast<double>(brief) + static_cast<double>(options.whole) * window;
  rekv_share_ = std::min(1.0, read / static_cast<double>(all));
}

std::vector<Search::Window> Search::lay_out() const {
  std::vector<Window> windows;
  struct Place {
    std::size_t page, patch;
    const SearchedPage::Patch* of;
  };
  std::vector<Place> patches;
  for (std::size_t page = 0; page < pages_.size(); ++page)
    for (std::size_t i = 0; i < pages_[page].patches.size(); ++i)
      patches.push_back({page, i, &pages_[page].patches[i]});
  if (patches.empty()) return windows;
  // From the first patch on; where time was lost, the next window begins with what follows.
  std::size_t first = 0;
  while (first < patches.size()) {
    const std::int64_t from = patches[first].of->wall.from;
    Window window;
    std::size_t last = first;
    for (; last < patches.size() && patches[last].of->wall.from < from + options_.length; ++last)
      add(patches[last].page, patches[last].patch, window.slices);
    window.wall = wall_of(pages_, window.slices);
    windows.push_back(std::move(window));
    if (last == patches.size()) break;
    std::size_t next = first;
    while (next < patches.size() && patches[next].of->wall.from < from + options_.step) ++next;
    first = std::max(next, first + 1);
  }
  return windows;
}

std::int64_t Search::tokens_of(std::span<const Slice> slices, bool is_brief) const {
  std::int64_t tokens = 0;
  for (const Slice& slice : slices)
    for (std::size_t i = slice.first; i < slice.last; ++i) {
      const SearchedPage::Patch& patch = pages_[slice.page].patches[i];
      tokens += is_brief ? patch.standing_out : patch.tokens;
    }
  return tokens;
}

Look Search::look(std::size_t window, std::span<const Slice> slices, const history::WallRange& wall,
                  bool is_brief) {
  const std::size_t id = ++ids_;
  looks_.emplace(id, UnderWay{window, false, std::nullopt});
  // What stands out is read once, whatever windows show it.
  if (!is_brief) result_.tokens += tokens_of(slices, false);
  return {id, {slices.begin(), slices.end()}, wall, is_brief};
}

std::vector<Look> Search::next() {
  for (const auto& [id, each] : looks_)
    if (!each.is_told) throw std::logic_error("a search goes on before all of its looks were told");
  settle();
  for (;;) {
    std::vector<Look> looks;
    switch (stage_) {
      case Stage::begin:
        if (options_.method == Method::windows || options_.method == Method::compose) {
          stage_ = Stage::brief;
          looks = begin_brief();
        } else {
          stage_ = Stage::whole;
          looks = options_.method == Method::exhaustive ? begin_whole() : begin_clusters();
        }
        break;
      case Stage::brief:
        stage_ = Stage::whole;
        looks = begin_whole();
        break;
      case Stage::whole:
        stage_ = Stage::neighbours;
        looks = begin_neighbours();
        break;
      case Stage::neighbours:
        weigh_neighbours();
        stage_ = Stage::moment;
        looks = begin_moments();
        break;
      case Stage::moment:
        looks = go_on_with_moments();
        if (!looks.empty()) break;
        tell_moments();
        stage_ = Stage::over;
        break;
      case Stage::over:
        return {};
    }
    if (!looks.empty()) return looks;
  }
}

std::vector<Look> Search::begin_brief() {
  std::vector<Look> looks;
  for (std::size_t i = 0; i < windows_.size(); ++i)
    // What nothing stands out in has nothing to ask about.
    if (tokens_of(windows_[i].slices, true) > 0)
      looks.push_back(look(i, windows_[i].slices, windows_[i].wall, true));
  for (const SearchedPage& page : pages_)
    for (const SearchedPage::Patch& patch : page.patches) result_.tokens += patch.standing_out;
  was_brief_ = !looks.empty();
  return looks;
}

std::vector<std::size_t> Search::best(const std::vector<std::pair<double, std::size_t>>& odds,
                                      const std::vector<Window>& of, std::size_t most) const {
  std::vector<std::pair<double, std::size_t>> order = odds;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> chosen;
  for (const auto& [log_odds, window] : order) {
    if (chosen.size() == most) break;
    const std::int64_t from = of[window].wall.from;
    const bool is_apart = std::all_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
      return std::abs(of[other].wall.from - from) >= options_.apart;
    });
    if (is_apart) chosen.push_back(window);
  }
  return chosen;
}

std::vector<std::size_t> Search::spread() const {
  std::vector<std::size_t> chosen;
  const std::size_t count = std::min(options_.whole, windows_.size());
  chosen.reserve(count);
  for (std::size_t i = 0; i < count; ++i) chosen.push_back((2 * i + 1) * windows_.size() / (2 * count));
  return chosen;
}

std::vector<Slice> Search::composed() const {
  // Those of the best windows that stand out most, as many seconds as one window has.
  std::vector<Slice> slices;
  std::int64_t length = 0;
  for (const std::size_t window : was_brief_ ? best(brief_, windows_, options_.whole) : spread()) {
    // The middle of each, in equal parts.
    const std::int64_t each = options_.length / static_cast<std::int64_t>(options_.whole);
    const history::WallRange& wall = windows_[window].wall;
    const std::int64_t begin = wall.from + std::max<std::int64_t>(0, (wall.to - wall.from - each) / 2);
    for (const Slice& slice : windows_[window].slices)
      for (std::size_t i = slice.first; i < slice.last; ++i) {
        const history::WallRange& patch = pages_[slice.page].patches[i].wall;
        if (patch.from < begin || patch.from >= begin + each || length >= options_.length) continue;
        add(slice.page, i, slices);
        length += patch.to - patch.from;
      }
  }
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::pair(a.page, a.first) < std::pair(b.page, b.first);
  });
  std::vector<Slice> apart;
  for (const Slice& slice : slices) {
    Slice rest = slice;
    if (!apart.empty() && apart.back().page == slice.page)
      rest.first = std::max(rest.first, apart.back().last);
    if (rest.first < rest.last) apart.push_back(rest);
  }
  return apart;
}

std::vector<Look> Search::begin_whole() {
  std::vector<Look> looks;
  if (options_.method == Method::compose) {
    const std::vector<Slice> slices = composed();
    if (slices.empty()) return looks;
    windows_.push_back({wall_of(pages_, slices), slices, 0});
    looks.push_back(look(windows_.size() - 1, slices, windows_.back().wall, false));
    return looks;
  }
  std::vector<std::size_t> chosen;
  if (options_.method == Method::exhaustive) {
    for (std::size_t i = 0; i < windows_.size(); ++i) chosen.push_back(i);
  } else {
    chosen = was_brief_ ? best(brief_, windows_, options_.whole) : spread();
  }
  for (const std::size_t window : chosen)
    looks.push_back(look(window, windows_[window].slices, windows_[window].wall, false));
  return looks;
}

std::vector<std::size_t> Search::neighbours_of(const Window& window) const {
  // In the order of time, and no two begin together.
  const auto found =
      std::lower_bound(windows_.begin(), windows_.end(), window.wall.from,
                       [](const Window& each, std::int64_t from) { return each.wall.from < from; });
  const auto at = static_cast<std::size_t>(found - windows_.begin());
  std::vector<std::size_t> neighbours;
  for (const std::size_t other : {at - 1, at + 1}) {  // of the first window, none is before it
    if (other >= windows_.size()) continue;
    const history::WallRange& wall = windows_[other].wall;
    const std::int64_t shown = std::min(wall.to, window.wall.to) - std::max(wall.from, window.wall.from);
    if (2 * shown >= window.wall.to - window.wall.from) neighbours.push_back(other);
  }
  return neighbours;
}

bool Search::has_neighbours() const {
  return options_.asks_neighbours && options_.method != Method::compose && !is_by_clusters();
}

std::vector<Look> Search::begin_neighbours() {
  std::vector<Look> looks;
  if (!has_neighbours()) return looks;
  std::set<std::size_t> asked;
  for (const Window& window : whole_) {
    if (window.log_odds < options_.yes) break;
    for (const std::size_t other : neighbours_of(window)) {
      if (whole_odds_.contains(other) || lost_.contains(other) || !asked.insert(other).second) continue;
      looks.push_back(look(other, windows_[other].slices, windows_[other].wall, false));
      // What both show was read already.
      for (const Slice& slice : windows_[other].slices)
        for (std::size_t i = slice.first; i < slice.last; ++i) {
          const SearchedPage::Patch& patch = pages_[slice.page].patches[i];
          if (patch.wall.from >= window.wall.from && patch.wall.to <= window.wall.to)
            result_.tokens -= patch.tokens;
        }
    }
  }
  return looks;
}

void Search::weigh_neighbours() {
  if (!has_neighbours()) return;
  for (Window& window : whole_) {
    if (window.log_odds < options_.yes) break;
    double surest = -std::numeric_limits<double>::infinity();
    // Up to here they show what it shows: there may be none before the first window, behind the last one and
    // beside a gap.
    std::int64_t shown = window.wall.from;
    for (const std::size_t other : neighbours_of(window))
      if (const auto odds = whole_odds_.find(other); odds != whole_odds_.end()) {
        surest = std::max(surest, odds->second);
        if (windows_[other].wall.from <= shown) shown = std::max(shown, windows_[other].wall.to);
      }
    // What the surer one says against it counts as much as what the window says for it.
    if (shown >= window.wall.to) window.log_odds += std::min(0.0, surest - options_.no);
  }
  sort_whole();
}

std::vector<std::size_t> Search::with_moments() const {
  // The best first, as `whole_` is.
  std::vector<std::pair<double, std::size_t>> odds;
  for (std::size_t i = 0; i < whole_.size() && whole_[i].log_odds >= options_.yes; ++i)
    odds.emplace_back(whole_[i].log_odds, i);
  std::vector<std::size_t> order;
  order.reserve(odds.size());
  for (const auto& [log_odds, window] : odds) order.push_back(window);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return whole_[a].wall.from < whole_[b].wall.from; });
  std::vector<std::size_t> wanted;
  if (!odds.empty()) wanted.push_back(0);
  // Where it begins, of what many windows show.
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  for (const std::size_t window : order) {
    if (whole_[window].wall.from >= until) wanted.push_back(window);
    until = std::max(until, whole_[window].wall.to);
  }
  for (const std::size_t window : best(odds, whole_, odds.size())) wanted.push_back(window);
  std::vector<std::size_t> chosen;
  const std::size_t most = std::max<std::size_t>(1, options_.moments / kLooksAMoment);
  for (const std::size_t window : wanted)
    if (chosen.size() < most && std::find(chosen.begin(), chosen.end(), window) == chosen.end())
      chosen.push_back(window);
  return chosen;
}

std::vector<Look> Search::begin_moments() {
  if (!options_.finds_moment || options_.method == Method::compose || is_by_clusters()) return {};
  for (const std::size_t window : with_moments()) {
    Closing& closing = closing_.emplace_back();
    closing.window = window;
    for (const Slice& slice : whole_[window].slices)
      for (std::size_t i = slice.first; i < slice.last; ++i) closing.patches.emplace_back(slice.page, i);
    closing.yes = closing.patches.size();
  }
  // The best window's is the answer's: each of its patches is looked at, whoever else has a moment.
  for (Closing& closing : closing_)
    closing.left = closing.window == 0 ? options_.moments : options_.moments / (closing_.size() - 1);
  return go_on_with_moments();
}

std::vector<Look> Search::go_on_with_moments() {
  std::vector<Look> looks;
  for (std::size_t place = 0; place < closing_.size(); ++place) {
    Closing& closing = closing_[place];
    const std::size_t between = closing.yes - closing.no - 1;
    // Each patch if that many looks are left; otherwise half of them close in.
    const std::size_t count = between <= closing.left ? between : (closing.left + 1) / 2;
    closing.left -= count;
    for (std::size_t i = 1; i <= count; ++i) {
      const std::size_t patches = closing.no + i * (between + 1) / (count + 1);
      std::vector<Slice> until;
      for (std::size_t each = 0; each < patches; ++each)
        add(closing.patches[each].first, closing.patches[each].second, until);
      looks.push_back(look(place, until, wall_of(pages_, until), false));
      looks_.at(looks.back().id).patches = patches;
      // Its keys were read already.
      result_.tokens -= tokens_of(until, false);
    }
  }
  return looks;
}

void Search::tell_moments() {
  struct Told {
    std::int64_t at = 0;
    history::WallRange wall;
    bool is_best = false, was_there = false;
  };
  std::vector<Told> told;
  for (const Closing& closing : closing_) {
    // Nothing came of any look: it is somewhere in the window.
    if (!closing.was_heard && closing.patches.size() > 1) continue;
    const auto [page, patch] = closing.patches[closing.yes - 1];
    told.push_back({pages_[page].patches[patch].wall.from, whole_[closing.window].wall, closing.window == 0,
                    closing.yes == 1});
  }
  std::stable_sort(told.begin(), told.end(), [](const Told& a, const Told& b) { return a.at < b.at; });
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  for (const Told& each : told) {
    const bool is_same = !result_.moments.empty() && (each.at - result_.moments.back() < options_.apart ||
                                                      (each.was_there && each.at < until));
    if (!is_same) result_.moments.push_back(each.at);
    if (each.is_best) result_.moment = result_.moments.back();
    until = std::max(until, each.wall.to);
  }
}

std::vector<Look> Search::begin_clusters() {
  std::vector<Look> looks;
  std::vector<Slice> slices;
  std::int64_t tokens = 0;
  const auto end = [&] {
    if (slices.empty()) return;
    windows_.push_back({wall_of(pages_, slices), slices, 0});
    looks.push_back(look(windows_.size() - 1, slices, windows_.back().wall, false));
    looks.back().by_clusters = true;
    if (options_.method == Method::rekv) {
      looks.back().rekv_share = rekv_share_;
      result_.tokens += std::llround(rekv_share_ * static_cast<double>(tokens)) - tokens;
    }
    slices.clear();
    tokens = 0;
  };
  for (std::size_t page = 0; page < pages_.size(); ++page)
    for (std::size_t i = 0; i < pages_[page].patches.size(); ++i) {
      const std::int64_t more = pages_[page].patches[i].tokens;
      if (tokens > 0 && tokens + more > options_.cluster_tokens) end();
      add(page, i, slices);
      tokens += more;
    }
  end();
  return looks;
}

void Search::hear(std::size_t id, std::optional<double> log_odds) {
  const auto entry = looks_.find(id);
  if (entry == looks_.end() || entry->second.is_told)
    throw std::invalid_argument("a look that is not under way");
  entry->second.is_told = true;
  entry->second.log_odds = log_odds;
}

void Search::settle() {
  for (const auto& [id, each] : looks_) {
    if (!each.log_odds) {
      ++result_.failed;
      if (stage_ == Stage::brief || stage_ == Stage::whole) lost_.insert(each.window);
      continue;
    }
    if (stage_ == Stage::brief) brief_.emplace_back(*each.log_odds, each.window);
    if (stage_ == Stage::whole || stage_ == Stage::neighbours) whole_odds_[each.window] = *each.log_odds;
    if (stage_ == Stage::whole) {
      Window window = windows_[each.window];
      window.log_odds = *each.log_odds;
      whole_.push_back(std::move(window));
    }
    if (stage_ == Stage::moment) {
      Closing& closing = closing_[each.window];
      closing.was_heard = true;
      if (*each.log_odds >= options_.yes) closing.yes = std::min(closing.yes, each.patches);
    }
  }
  // Before the first "Yes" that was heard, the last "No".
  if (stage_ == Stage::moment)
    for (const auto& [id, each] : looks_) {
      Closing& closing = closing_[each.window];
      if (each.log_odds && each.patches < closing.yes) closing.no = std::max(closing.no, each.patches);
    }
  looks_.clear();
  if (stage_ == Stage::whole) sort_whole();
}

void Search::sort_whole() {
  std::stable_sort(whole_.begin(), whole_.end(),
                   [](const Window& a, const Window& b) { return a.log_odds > b.log_odds; });
}

Search::Result Search::result() const {
  Result result = result_;
  result.windows = whole_;
  if (whole_.empty()) return result;
  result.log_odds = whole_.front().log_odds;
  result.verdict = result.log_odds >= options_.yes ? Verdict::yes
                   : result.log_odds < options_.no ? Verdict::no
                                                   : Verdict::unsure;
  return result;
}

}  // namespace vigil::memory
