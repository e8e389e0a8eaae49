// Looking through made-up pages, of which a test knows what happens in them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/memory/search.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory::testing {

/// Pages of eight patches of a second, from noon on, each of ten tokens of which one stands out.
inline std::vector<SearchedPage> an_hour(int seconds = 3600) {
  std::vector<SearchedPage> pages;
  for (int second = 0; second < seconds; ++second) {
    if (second % 8 == 0) pages.emplace_back();
    const std::int64_t from = kNoon + second * kSecond;
    pages.back().patches.push_back({{from, from + kSecond}, 10, 1});
  }
  return pages;
}

/// Something happens in [from, to), in seconds after noon: what is asked of a window says "Yes" as far as it
/// shows it.
struct Happens {
  double from = 0, to = 0;
  double log_odds(const Look& look, const std::vector<SearchedPage>& pages) const {
    double shown = 0;
    for (const Slice& slice : look.slices)
      for (std::size_t i = slice.first; i < slice.last; ++i) {
        const double begin = static_cast<double>(pages[slice.page].patches[i].wall.from - kNoon) * 1e-9;
        if (begin >= from && begin < to) shown += 1;
      }
    return shown == 0 ? -6 : 2 + shown;
  }
};

struct Searched {
  Search::Result result;
  std::vector<std::size_t> rounds;
  std::vector<Look> looks;
};

inline Searched look_through(const std::vector<SearchedPage>& pages, const Search::Options& options,
                             const std::function<std::optional<double>(const Look&)>& odds) {
  Search search(pages, options);
  Searched searched;
  for (;;) {
    const std::vector<Look> looks = search.next();
    if (looks.empty()) break;
    searched.rounds.push_back(looks.size());
    for (const Look& look : looks) {
      searched.looks.push_back(look);
      search.hear(look.id, odds(look));
    }
  }
  searched.result = search.result();
  return searched;
}

}  // namespace vigil::memory::testing
