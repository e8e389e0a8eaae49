// One sequence's target and drafter, without models: what the target would say is made up, and what the
// drafter drafts is right or wrong as a test wants it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/speculate/rounds.h"

namespace vigil::speculate::testing {

/// What the target says as token `at` of the answer. Neighbours are alike now and then.
inline std::int32_t truth(std::size_t at) {
  return static_cast<std::int32_t>((at * 7 + at / 3) % 5);
}

/// The drafter: what it has of the answer, and what it was told.
struct DrafterSide {
  std::vector<std::int32_t> has;
  std::size_t until = 0;
  std::uint64_t round = 0;

  bool works() const { return has.size() < until; }
  void hear(const Cut& cut) {
    // Only what it has can be gone, and something takes its place.
    if (cut.at > has.size() || cut.said.empty()) throw std::logic_error("a cut of what is not there");
    has.resize(cut.at);
    has.insert(has.end(), cut.said.begin(), cut.said.end());
    until = 0;
    round = cut.round;
  }
  void hear(const DraftOn& on) {
    until = on.until;
    round = on.round;
  }
  /// After a wrong token it may say anything, also what happens to be right.
  std::int32_t draft(const std::function<bool(std::size_t at)>& is_right) {
    bool on_the_way = true;
    for (std::size_t at = 0; at < has.size(); ++at) on_the_way = on_the_way && has[at] == truth(at);
    const std::size_t at = has.size();
    const bool right = on_the_way ? is_right(at) : at % 2 == 0;
    has.push_back(right ? truth(at) : truth(at) + 5);
    return has.back();
  }
  friend bool operator==(const DrafterSide&, const DrafterSide&) = default;
};

/// What a pass brings: the accepted drafts and one token.
inline std::vector<std::int32_t> judged(const VerifyDrafts& pass) {
  std::vector<std::int32_t> tokens;
  for (std::size_t row = 0; row <= pass.drafts.size(); ++row) {
    tokens.push_back(truth(pass.at + row));
    if (row < pass.drafts.size() && pass.drafts[row] != tokens.back()) break;
  }
  return tokens;
}

}  // namespace vigil::speculate::testing
