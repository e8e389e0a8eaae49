// Finding in a camera's past what a question is about: by looks that cost little first, and whole ones where
// these say that it is worth it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/kv/history/page_info.h"

namespace vigil::memory {

/// How the past is looked at: its windows one by one, the likeliest whole; the likeliest patches put together
/// into one window; all windows whole, the yardstick; or long stretches, of which each layer and KV head sees
/// what it chooses (ReSV), or each layer the patches that are most like the question, as many tokens as
/// `windows` reads (ReKV, another yardstick).
enum class Method : std::uint8_t { windows, compose, exhaustive, clusters, rekv };
constexpr std::array<std::string_view, 5> kMethodNames{"windows", "compose", "exhaustive", "clusters",
                                                       "rekv"};

/// What begins closer to each other than so many nanoseconds is one thing.
constexpr std::int64_t kApart = 24'000'000'000;

/// What a search has to know of a page.
struct SearchedPage {
  struct Patch {
    history::WallRange wall;
    /// That are remembered of it, and those of them that stand out, which alone are looked at first. Of a
    /// page without a sketch all are said to stand out: it is read whole for the first look, too.
    std::int64_t tokens = 0, standing_out = 0;
  };
  /// In the order of time; at least one.
  std::vector<Patch> patches;
};

/// Some patches of a page: [first, last).
struct Slice {
  std::size_t page = 0;
  std::size_t first = 0, last = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// A question that is to be put to a window of what is remembered.
struct Look {
  std::size_t id = 0;
  /// In the order of time.
  std::vector<Slice> slices;
  history::WallRange wall;
  /// Only the tokens that stand out, of pages that have a sketch; otherwise all.
  bool is_brief = false;
  /// Not in one window: by clusters (`Recalling::by_clusters`); or, above 0, so much of it by ReKV.
  bool by_clusters = false;
  double rekv_share = 0;
};

/// Which windows of a span a yes/no question is put to, in rounds: the looks of a round depend on what came
/// of those before. What they cost is counted in tokens that are read. Not thread-safe.
///
/// The way of the windows (docs/experiments/2026-11-29-finding-the-window.md): each window is asked by the
/// tokens that stand out alone; the best few that begin apart from each other are asked whole, and of those
/// that say "Yes" their neighbours, too, a step earlier and later, which together show what it shows: among
/// hundreds of windows the surest one may be wrong by itself. The best one is the answer's. Then the moments:
/// each window that says "Yes", cut off after each of its patches, from when on "Yes" is said. Where the
/// looks are too few for each patch, they close in on it in rounds.
class Search {
 public:
  struct Options {
    Method method = Method::windows;
    /// Windows are as long as the model knows, in nanoseconds, and begin so often.
    std::int64_t length = 40'000'000'000;
    std::int64_t step = 8'000'000'000;
    /// So many are read whole, which begin so far from each other at least.
    std::size_t whole = 4;
    std::int64_t apart = kApart;
    /// In log odds: from the one on it is "Yes", below the other "No"; nobody is sure between.
    double yes = 3;
    double no = 0;
    /// Whether neighbours are asked. A window has two at most: those that begin next before and behind it,
    /// and show half of it at least.
    bool asks_neighbours = true;
    /// Moments are looked for: that of the best window at most so many looks long, and in as many those of a
    /// sixth of that many windows at most, which share them alike: those that overlap no earlier "Yes", and
    /// the best that begin apart.
    bool finds_moment = false;
    std::size_t moments = 48;
    /// Of a stretch that is seen by clusters, at most: what is read of it is held until it was asked.
    std::int64_t cluster_tokens = std::int64_t{1} << 15;
  };
  /// Pages in the order of time, that do not overlap but for their ends; there may be none.
  Search(std::span<const SearchedPage> pages, const Options& options);

  /// The looks of the next round; none if it is over. Not before all of the last round were told.
  std::vector<Look> next();
  /// What came of one: the log odds of "Yes". Nothing: it could not be looked at (what it needs is damaged,
  /// or had to make room). Throws std::invalid_argument for a look that is not under way.
  void hear(std::size_t look, std::optional<double> log_odds);

  struct Window {
    history::WallRange wall;
    std::vector<Slice> slices;
    /// Its own; and where that is "Yes", and neighbours have answered that show all of it between them, so
    /// much less as the surer one of these lies below `no`.
    double log_odds = 0;
  };
  enum class Verdict : std::uint8_t { no, unsure, yes };
  struct Result {
    Verdict verdict = Verdict::no;
    /// Of the best window, as it is told of it; 0 if nothing was looked at.
    double log_odds = 0;
    /// Those that were read whole, the best first, without those that were neighbours alone.
    std::vector<Window> windows;
    /// From when on "Yes" is said in each window that says it, if that was looked for and found, in the order
    /// of time: its begin where it was there already. What begins within `apart` of one is the same; so is
    /// what is there when a window begins, if an earlier one that shows that begin says "Yes".
    std::vector<std::int64_t> moments;
    /// That of them which the best window tells.
    std::optional<std::int64_t> moment;
    /// Tokens that were read, and those that all looks of `exhaustive` would have read.
    std::int64_t tokens = 0, all_tokens = 0;
    /// Looks that came to nothing.
    std::size_t failed = 0;
  };
  /// When `next` has nothing more.
  Result result() const;

  /// What each layer may have of all tokens by ReKV: as many as `windows` reads of the mean of such pages,
  /// neighbours left out.
  /// Above 0, at most 1.
  double rekv_share() const { return rekv_share_; }

 private:
  enum class Stage : std::uint8_t { begin, brief, whole, neighbours, moment, over };

  std::vector<Window> lay_out() const;
  std::int64_t tokens_of(std::span<const Slice> slices, bool is_brief) const;
  /// Of these windows with their log odds, the best that begin apart, at most so many.
  std::vector<std::size_t> best(const std::vector<std::pair<double, std::size_t>>& odds,
                                const std::vector<Window>& of, std::size_t most) const;
  /// As many as are read whole, wherever: where nothing stands out, what is there is there all the time.
  std::vector<std::size_t> spread() const;
  Look look(std::size_t window, std::span<const Slice> slices, const history::WallRange& wall, bool is_brief);
  std::vector<Look> begin_brief();
  std::vector<Look> begin_whole();
  /// Of one that was read whole, in `windows_`.
  std::vector<std::size_t> neighbours_of(const Window& window) const;
  bool has_neighbours() const;
  std::vector<Look> begin_neighbours();
  void weigh_neighbours();
  std::vector<Look> begin_clusters();
  /// Of those that were read whole and say "Yes", in which a moment is looked for.
  std::vector<std::size_t> with_moments() const;
  std::vector<Look> begin_moments();
  std::vector<Look> go_on_with_moments();
  std::vector<Slice> composed() const;
  bool is_by_clusters() const {
    return options_.method == Method::clusters || options_.method == Method::rekv;
  }
  void settle();
  /// The best first.
  void sort_whole();
  void tell_moments();

  struct UnderWay {
    std::size_t window = 0;
    bool is_told = false;
    std::optional<double> log_odds;
    /// Of a look for a moment: of so many patches, and `window` is a place in `closing_`.
    std::size_t patches = 0;
  };
  /// A window that says "Yes", between so many of its patches, which do not (none never do), and so many,
  /// which do.
  struct Closing {
    /// In `whole_`.
    std::size_t window = 0;
    /// Page and patch of each.
    std::vector<std::pair<std::size_t, std::size_t>> patches;
    std::size_t no = 0, yes = 0;
    /// Looks that it may still have.
    std::size_t left = 0;
    bool was_heard = false;
  };

  std::vector<SearchedPage> pages_;
  Options options_;
  double rekv_share_ = 1;
  Stage stage_ = Stage::begin;
  std::vector<Window> windows_;
  std::map<std::size_t, UnderWay> looks_;
  std::size_t ids_ = 0;
  std::vector<std::pair<double, std::size_t>> brief_;
  /// Something stood out.
  bool was_brief_ = false;
  /// Of those of `windows_` that were read whole.
  std::map<std::size_t, double> whole_odds_;
  /// Those that came to nothing: they are not asked again.
  std::set<std::size_t> lost_;
  std::vector<Window> whole_;
  std::vector<Closing> closing_;
  Result result_;
};

}  // namespace vigil::memory
