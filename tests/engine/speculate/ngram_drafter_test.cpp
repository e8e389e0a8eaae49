#include "engine/speculate/ngram_drafter.h"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::speculate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<std::int32_t>;

TEST(NgramDrafter, DraftsWhatFollowedTheLongestMatch) {
  const NgramDrafter drafter({1, 3, 100});
  // "7 8" comes twice, "6 7 8" once, and earlier.
  const Tokens prompt = {6, 7, 8, 1, 2, 3, 9, 7, 8, 4, 5};
  EXPECT_THAT(drafter.draft(prompt, Tokens{6, 7, 8}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(drafter.draft(prompt, Tokens{5, 7, 8}, 2), ElementsAre(4, 5));  // the newer of equal ones
  EXPECT_THAT(drafter.draft(prompt, Tokens{0}, 2), IsEmpty());
  EXPECT_THAT(drafter.draft(prompt, Tokens{6, 7, 8}, 0), IsEmpty());
  EXPECT_THAT(drafter.draft({}, {}, 4), IsEmpty());
  EXPECT_THAT(drafter.draft(Tokens{1}, {}, 4), IsEmpty());
  // The prompt may be all that there is, and the answer may end in the middle of the match.
  EXPECT_THAT(drafter.draft(Tokens{1, 2, 3, 1}, Tokens{2}, 1), ElementsAre(3));
}

TEST(NgramDrafter, WantsAsManyTokensToMatchAsItIsTold) {
  const NgramDrafter two({2, 3, 100});
  EXPECT_THAT(two.draft(Tokens{1, 2, 3}, Tokens{9, 2}, 1), IsEmpty());
  EXPECT_THAT(two.draft(Tokens{1, 2, 3}, Tokens{1, 2}, 1), ElementsAre(3));
  // Longer matches than the most are as good as that: then the newest counts.
  const NgramDrafter one({1, 1, 100});
  EXPECT_THAT(one.draft(Tokens{1, 2, 3, 5, 2, 4}, Tokens{1, 2}, 1), ElementsAre(4));
  EXPECT_THROW(NgramDrafter({0, 3, 9}), std::invalid_argument);
  EXPECT_THROW(NgramDrafter({3, 2, 9}), std::invalid_argument);
}

TEST(NgramDrafter, GoesOnWithWhatItDraftedWhereAnAnswerRepeatsItself) {
  const NgramDrafter drafter({1, 4, 100});
  EXPECT_THAT(drafter.draft({}, Tokens{1, 2, 1, 2}, 5), ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(drafter.draft({}, Tokens{3, 3}, 3), ElementsAre(3, 3, 3));
}

TEST(NgramDrafter, KnowsEarlierTextsTheLatestFirst) {
  NgramDrafter drafter({1, 3, 100});
  drafter.remember(Tokens{1, 2, 3, 4});
  drafter.remember(Tokens{1, 2, 5, 6});
  EXPECT_THAT(drafter.draft(Tokens{9}, Tokens{1, 2}, 9), ElementsAre(5, 6));  // up to its end, not beyond
  EXPECT_THAT(drafter.draft(Tokens{2, 7}, Tokens{1, 2}, 1), ElementsAre(5));  // longer than the prompt's own
  EXPECT_THAT(drafter.draft(Tokens{1, 2, 8}, Tokens{1, 2}, 1),
              ElementsAre(8));                              // equal: the answer's own first
  EXPECT_THAT(drafter.draft({}, Tokens{4}, 1), IsEmpty());  // nothing follows it, not even the next text
}

TEST(NgramDrafter, KeepsNoMoreThanItIsTold) {
  NgramDrafter drafter({1, 2, 6});
  drafter.remember(Tokens{1, 2, 3});
  drafter.remember(Tokens{4, 5, 6});
  EXPECT_EQ(drafter.kept(), 6U);
  drafter.remember(Tokens{7, 8});
  EXPECT_EQ(drafter.kept(), 5U);
  EXPECT_THAT(drafter.draft({}, Tokens{1}, 1), IsEmpty());
  EXPECT_THAT(drafter.draft({}, Tokens{4}, 1), ElementsAre(5));
  drafter.remember(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(drafter.kept(), 6U);
  EXPECT_THAT(drafter.draft({}, Tokens{3}, 1), IsEmpty());
  EXPECT_THAT(drafter.draft({}, Tokens{4}, 9), ElementsAre(5, 6, 7, 8, 9));
  drafter.remember({});
  drafter.remember(Tokens{1});
  EXPECT_EQ(drafter.kept(), 6U);
  // Of a long prompt, its end is looked at.
  EXPECT_THAT(drafter.draft(Tokens{50, 51, 0, 0, 0, 0, 0, 0}, Tokens{50}, 1), IsEmpty());
  EXPECT_THAT(drafter.draft(Tokens{50, 51, 0, 0}, Tokens{50}, 1), ElementsAre(51));
}

/// By trying every place.
Tokens slow(const std::vector<Tokens>& texts, const Tokens& own, std::size_t least, std::size_t most) {
  for (std::size_t length = std::min(most, own.size()); length >= least; --length) {
    const Tokens last(own.end() - static_cast<std::ptrdiff_t>(length), own.end());
    for (const Tokens& text : texts)
      for (std::size_t end = text.size(); end-- > length;)
        if (std::equal(last.begin(), last.end(), text.begin() + static_cast<std::ptrdiff_t>(end - length)))
          return {text[end]};
  }
  return {};
}

TEST(NgramDrafter, FindsWhatTryingEveryPlaceFinds) {
  std::mt19937 random(2);
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t least = 1 + random() % 2, most = least + random() % 4;
    NgramDrafter drafter({least, most, 1000});
    const auto text = [&] {
      Tokens tokens(random() % 12);
      for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % 4);
      return tokens;
    };
    std::vector<Tokens> texts = {text(), text(), text()};
    for (const Tokens& one : texts) drafter.remember(one);
    std::reverse(texts.begin(), texts.end());
    const Tokens prompt = text(), said = text();
    Tokens own = prompt;
    own.insert(own.end(), said.begin(), said.end());
    texts.insert(texts.begin(), own);
    const Tokens expected = slow(texts, own, least, most);
    EXPECT_EQ(drafter.draft(prompt, said, 1), expected);
    found += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 1000);
  EXPECT_LT(found, 2990);
}

}  // namespace
}  // namespace vigil::speculate
