#include "engine/kv/handover.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::kv {
namespace {

class HandoverTest : public testing::Test {
 protected:
  Book from_{8, 4};
  Book to_{6, 4};
  std::vector<PageCopy> copies_;

  /// Where the tokens of `taken` come from, by what is copied.
  std::vector<std::int32_t> origins(const View& taken, const std::vector<PageCopy>& copied) const {
    std::vector<std::int32_t> slots;
    for (const std::int32_t slot : taken.slots()) {
      const auto copy = std::find_if(copied.begin(), copied.end(),
                                     [&](const PageCopy& each) { return each.to == slot / 4; });
      slots.push_back(copy == copied.end() ? -1 : copy->from * 4 + slot % 4);
    }
    return slots;
  }
  static std::vector<std::int32_t> slots(const View& view) {
    return {view.slots().begin(), view.slots().end()};
  }
};

TEST_F(HandoverTest, AViewGoesOnInTheOtherPool) {
  View other(to_), view(from_);
  ASSERT_TRUE(other.append(3));  // so that ids differ
  ASSERT_TRUE(view.append(10));
  view.drop_front(5);
  Handover handover(to_);
  std::optional<View> taken = handover.take(view, copies_);
  ASSERT_TRUE(taken);
  EXPECT_EQ(copies_.size(), 2U);
  EXPECT_EQ(origins(*taken, copies_), slots(view));
  // The rest of its last page is its own, there too.
  EXPECT_EQ(to_.free_pages(), 3);
  ASSERT_TRUE(taken->append(2));
  EXPECT_EQ(to_.free_pages(), 3);
  EXPECT_EQ(taken->slots()[5], taken->slots()[4] + 1);
  EXPECT_EQ(view.size(), 5);
  taken.reset();
  EXPECT_EQ(to_.free_pages(), 5);
}

TEST_F(HandoverTest, WhatViewsShareIsCopiedOnceAndSharedAgain) {
  View window(from_);
  ASSERT_TRUE(window.append(6));
  View a = window.fork(), b = window.fork();
  ASSERT_TRUE(a.append(1));
  ASSERT_TRUE(b.append(5));
  {
    Handover handover(to_);
    std::optional<View> first = handover.take(a, copies_);
    const std::vector<PageCopy> of_first = copies_;
    std::optional<View> second = handover.take(b, copies_);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(of_first.size(), 3U);
    EXPECT_EQ(copies_.size(), 5U) << "two pages of its own";
    EXPECT_EQ(origins(*first, copies_), slots(a));
    EXPECT_EQ(origins(*second, copies_), slots(b));
    EXPECT_EQ(first->slots()[5], second->slots()[5]);
    EXPECT_EQ(to_.free_pages(), 1);
    first.reset();
    EXPECT_EQ(to_.free_pages(), 2) << "what is shared stays";
  }
  EXPECT_EQ(to_.free_pages(), 6);
}

TEST_F(HandoverTest, WithoutRoomNothingChanges) {
  View view(from_);
  ASSERT_TRUE(view.append(25));
  View shared = view.fork();
  Handover handover(to_);
  EXPECT_FALSE(handover.take(shared, copies_));
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(to_.free_pages(), 6);
  shared.drop_front(4);
  EXPECT_TRUE(handover.take(shared, copies_));
  EXPECT_EQ(to_.free_pages(), 0);
}

}  // namespace
}  // namespace vigil::kv
