#include "engine/kv/view.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::kv {
namespace {

class ViewTest : public testing::Test {
 protected:
  static constexpr int kPageTokens = 4;
  Book book_{6, kPageTokens};

  static std::vector<std::int32_t> slots(const View& view) {
    return {view.slots().begin(), view.slots().end()};
  }
};

TEST_F(ViewTest, AppendingFillsPagesOneAfterTheOther) {
  View view(book_);
  ASSERT_TRUE(view.append(3));
  EXPECT_EQ(book_.free_pages(), 5);
  ASSERT_TRUE(view.append(2));
  EXPECT_EQ(book_.free_pages(), 4);
  const auto all = slots(view);
  EXPECT_EQ(all.size(), 5U);
  EXPECT_EQ(std::set<std::int32_t>(all.begin(), all.end()).size(), 5U) << "a slot was given out twice";
  EXPECT_EQ(all[3], all[0] + 3) << "the first page has to be filled before the second is begun";
  EXPECT_EQ(all[4] % kPageTokens, 0);
}

TEST_F(ViewTest, AppendingNothingTakesNothing) {
  View view(book_);
  EXPECT_TRUE(view.append(0));
  EXPECT_EQ(book_.free_pages(), 6);
  EXPECT_EQ(view.size(), 0);
}

TEST_F(ViewTest, AppendingMoreThanThereIsChangesNothing) {
  View view(book_);
  ASSERT_TRUE(view.append(5));
  const auto before = slots(view);
  EXPECT_FALSE(view.append(6 * kPageTokens));
  EXPECT_EQ(slots(view), before);
  EXPECT_EQ(book_.free_pages(), 4);
  EXPECT_TRUE(view.append(6 * kPageTokens - 5)) << "the room that is left has to be usable to the last slot";
  EXPECT_EQ(book_.free_pages(), 0);
}

TEST_F(ViewTest, SlidingFreesWholePagesAndMovesNothing) {
  View view(book_);
  ASSERT_TRUE(view.append(10));
  const auto before = slots(view);
  view.drop_front(3);
  EXPECT_EQ(book_.free_pages(), 3) << "a page with a live token stays";
  view.drop_front(1);
  EXPECT_EQ(book_.free_pages(), 4);
  EXPECT_EQ(slots(view), std::vector<std::int32_t>(before.begin() + 4, before.end()));
  view.drop_front(100);
  EXPECT_EQ(view.size(), 0);
  EXPECT_EQ(book_.free_pages(), 6);
}

TEST_F(ViewTest, SlidingForeverStaysWithinItsPages) {
  View view(book_);
  ASSERT_TRUE(view.append(9));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(view.append(3)) << "after " << i << " steps";
    view.drop_front(3);
    ASSERT_EQ(view.size(), 9);
  }
}

TEST_F(ViewTest, ForksShareWhatWasAndPartWays) {
  View window(book_);
  ASSERT_TRUE(window.append(6));
  View first = window.fork();
  View second = window.fork();
  EXPECT_EQ(book_.free_pages(), 4) << "a fork takes no page";
  ASSERT_TRUE(first.append(2));
  ASSERT_TRUE(second.append(2));
  const auto a = slots(first);
  const auto b = slots(second);
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 6, b.begin()));
  EXPECT_EQ(std::set<std::int32_t>({a[6], a[7], b[6], b[7]}).size(), 4U)
      << "what one rule adds, another must not overwrite";
  ASSERT_TRUE(window.append(1));
  EXPECT_EQ(std::count(a.begin(), a.end(), window.slots()[6]), 0);
  EXPECT_EQ(std::count(b.begin(), b.end(), window.slots()[6]), 0);
  EXPECT_EQ(window.slots()[6], window.slots()[5] + 1) << "who owns a page goes on in it, whoever looks on";
}

TEST_F(ViewTest, ShowsARangeOfAnother) {
  View prompt(book_), stream(book_);
  ASSERT_TRUE(prompt.append(3));
  ASSERT_TRUE(stream.append(10));
  stream.drop_front(1);
  View window(book_);
  window.extend(prompt, 0, 3);
  window.extend(stream, 2, 5);
  std::vector<std::int32_t> expected = slots(prompt);
  expected.insert(expected.end(), stream.slots().begin() + 2, stream.slots().begin() + 7);
  EXPECT_EQ(slots(window), expected);
  EXPECT_EQ(book_.free_pages(), 2) << "to look on takes no page";
  // The stream slides on; the window sees what it saw.
  stream.drop_front(9);
  prompt.clear();
  EXPECT_EQ(slots(window), expected);
  EXPECT_EQ(book_.free_pages(), 3) << "the page that only the stream had is free";
  ASSERT_TRUE(window.append(1));
  window.clear();
  EXPECT_EQ(book_.free_pages(), 6);
}

TEST_F(ViewTest, WritesAnewWhereNobodyElseSeesIt) {
  View stream(book_);
  ASSERT_TRUE(stream.append(12));
  const std::vector<std::int32_t> before = slots(stream);
  std::vector<PageCopy> copies;
  auto claim = book_.claim(3);
  const std::vector<TokenRange> all{{0, 12}};
  stream.own(all, *claim, copies);
  EXPECT_EQ(slots(stream), before) << "its own pages stay where they are";
  EXPECT_EQ(claim->left(), 3);

  const View reader = stream.fork();
  // The second half of the first page, all of the second.
  const std::vector<TokenRange> some{{2, 6}};
  EXPECT_EQ(stream.pages_to_own(some), 2);
  stream.own(some, *claim, copies);
  EXPECT_EQ(claim->left(), 1);
  EXPECT_EQ(slots(reader), before);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NE(stream.slots()[i], before[i]) << i;
    EXPECT_EQ(stream.slots()[i] % kPageTokens, before[i] % kPageTokens) << i;
  }
  for (std::size_t i = 8; i < 12; ++i) EXPECT_EQ(stream.slots()[i], before[i]);
  // What of the first page is not written anew has to come along.
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0], (PageCopy{before[0] / kPageTokens, stream.slots()[0] / kPageTokens}));
  View second = stream.fork();
  EXPECT_THROW(stream.own(all, *claim, copies), std::logic_error) << "three pages, and one is left";
}

TEST_F(ViewTest, WritesSingleTokensAnew) {
  View stream(book_);
  ASSERT_TRUE(stream.append(12));
  stream.drop_front(1);
  const View reader = stream.fork();
  const std::vector<std::int32_t> before = slots(stream);
  std::vector<PageCopy> copies;
  auto claim = book_.claim(2);
  // Of the first page, of which three tokens are live, two; all four of the second; none of the third.
  const std::vector<TokenRange> ranges{{0, 1}, {2, 1}, {3, 2}, {5, 2}};
  EXPECT_EQ(stream.pages_to_own(ranges), 2) << "a page is taken once, however often it is named";
  stream.own(ranges, *claim, copies);
  EXPECT_EQ(claim->left(), 0);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_NE(stream.slots()[i] / kPageTokens, before[i] / kPageTokens) << i;
    EXPECT_EQ(stream.slots()[i] % kPageTokens, before[i] % kPageTokens) << i;
  }
  for (std::size_t i = 7; i < 11; ++i) EXPECT_EQ(stream.slots()[i], before[i]) << i;
  ASSERT_EQ(copies.size(), 1U) << "the second page has nothing that stays";
  EXPECT_EQ(copies[0], (PageCopy{before[0] / kPageTokens, stream.slots()[0] / kPageTokens}));
  EXPECT_EQ(slots(reader), before);
  EXPECT_EQ(stream.pages_to_own({}), 0);
}

TEST_F(ViewTest, AClaimIsThereWhenItIsNeeded) {
  auto claim = book_.claim(4);
  ASSERT_TRUE(claim);
  EXPECT_EQ(book_.free_pages(), 2);
  EXPECT_FALSE(book_.claim(3));
  EXPECT_EQ(book_.events().refused, 1U);
  View other(book_);
  EXPECT_FALSE(other.append(3 * kPageTokens)) << "what is promised is nobody else's";
  EXPECT_TRUE(other.append(2 * kPageTokens));
  View mine(book_);
  mine.append(3 * kPageTokens, *claim);
  EXPECT_EQ(claim->left(), 1);
  EXPECT_THROW(mine.append(2 * kPageTokens, *claim), std::logic_error);
  EXPECT_EQ(mine.size(), 3 * kPageTokens);
  Book::Claim moved = std::move(*claim);
  claim.reset();
  EXPECT_EQ(book_.free_pages(), 0);
  moved.give_back();
  EXPECT_EQ(book_.free_pages(), 1);
  EXPECT_DOUBLE_EQ(book_.usage(), 5.0 / 6);
}

TEST_F(ViewTest, SharedPagesLiveUntilTheLastViewLeaves) {
  View window(book_);
  ASSERT_TRUE(window.append(5));
  {
    const View fork = window.fork();
    window.clear();
    EXPECT_EQ(book_.free_pages(), 4);
    EXPECT_EQ(fork.size(), 5);
  }
  EXPECT_EQ(book_.free_pages(), 6);
}

TEST_F(ViewTest, MovingHandsOverThePages) {
  View from(book_);
  ASSERT_TRUE(from.append(5));
  const auto before = slots(from);
  View to(std::move(from));
  EXPECT_EQ(slots(to), before);
  View other(book_);
  ASSERT_TRUE(other.append(4));
  other = std::move(to);
  EXPECT_EQ(slots(other), before);
  EXPECT_EQ(book_.free_pages(), 4);
}

TEST(PageStoreTest, LayersOfAPageDoNotOverlap) {
  const PageLayout layout{.layers = 3, .kv_heads = 2, .head_dim = 5, .page_tokens = 7};
  const PageStore pool(kernels::Stream::cpu(1), layout, 2);
  std::set<const float*> places;
  for (int l = 0; l < layout.layers; ++l) {
    const kernels::KvLayer layer = pool.layer(l);
    for (std::int32_t slot = 0; slot < 14; ++slot)
      for (int head = 0; head < layout.kv_heads; ++head)
        for (int j = 0; j < layout.head_dim; ++j) {
          places.insert(static_cast<const float*>(layer.base) + layer.offset(slot, head) + j);
          places.insert(static_cast<const float*>(layer.base) + layer.offset(slot, head) +
                        layer.value_offset + j);
        }
  }
  EXPECT_EQ(places.size(), 3U * 14 * 2 * 5 * 2);
  EXPECT_EQ(*places.rbegin() - *places.begin() + 1, 2 * layout.page_elements())
      << "no gaps and nothing outside";
}

TEST(PageStoreTest, RejectsWhatHasNoRoom) {
  const kernels::Stream stream = kernels::Stream::cpu(1);
  EXPECT_THROW(PageStore(stream, {.layers = 0, .kv_heads = 1, .head_dim = 1}, 1), std::invalid_argument);
  EXPECT_THROW(PageStore(stream, {.layers = 1, .kv_heads = 1, .head_dim = 1}, 0), std::invalid_argument);
  EXPECT_THROW(
      PageStore(stream, {.layers = 1, .kv_heads = 1, .head_dim = 1, .page_tokens = 1 << 20}, 1 << 20),
      std::invalid_argument);
}

/// Why so many pages are refused; empty if they are not.
std::string refusal(const PageLayout& layout, std::int64_t pages, int heads, kernels::DeviceKind device) {
  try {
    check_pages(layout, pages, heads, device);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

// Nothing is allocated: these are terabytes.
TEST(PageStoreTest, RefusesPagesThatAttentionCannotAddress) {
  using kernels::DeviceKind;
  // Of 7B: 28 layers of 4 key heads, 224 rows a token.
  PageLayout layout{
      .layers = 28, .kv_heads = 4, .head_dim = 128, .page_tokens = 64, .dtype = kernels::DType::bf16};
  // The rows of a layer end with its last value, in the last page: (pages - 1) pages of all layers, and its
  // own part of one.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t most = 1 + (kMost - 2 * 4 * 64) / (2 * 28 * 4 * 64);
  EXPECT_EQ(most, 149797);
  EXPECT_EQ(refusal(layout, most, 28, DeviceKind::cuda), "");
  EXPECT_EQ(
      refusal(layout, most + 1, 28, DeviceKind::cuda),
      "a KV cache of 9587072 tokens is too large for this model on a GPU, whose attention names keys and "
      "values in 32 bits: at most 9587008 tokens are possible");
  EXPECT_EQ(refusal(layout, most + 1, 28, DeviceKind::cpu), "") << "the CPU counts in 64 bits";
  // Two GPUs have half of the heads each, and so room for twice as many tokens.
  layout.kv_heads = 2;
  EXPECT_EQ(refusal(layout, 2 * most, 14, DeviceKind::cuda), "");
  // What the copy engine does not read is addressed in 64 bits.
  layout.kv_heads = 4;
  EXPECT_EQ(refusal(layout, most + 1, 4 * 129, DeviceKind::cuda), "");
  layout.dtype = kernels::DType::f32;
  EXPECT_EQ(refusal(layout, most + 1, 28, DeviceKind::cuda), "");
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda})
    EXPECT_EQ(refusal(layout, kMost / 64 + 1, 28, device),
              "a cache of this size has more slots than 32 bits can name");
}

// A window leaves the cache on the thread of whoever held it last.
TEST(BookTest, IsSharedByThreads) {
  constexpr std::size_t kThreads = 4;
  constexpr int kRounds = 3000;
  const PageStore pool(kernels::Stream::cpu(1), {.layers = 1, .kv_heads = 1, .head_dim = 1, .page_tokens = 2},
                       48);
  Book book(48, 2);
  const kernels::KvLayer layer = pool.layer(0);
  const auto at = [&](std::int32_t slot) -> float& {
    return static_cast<float*>(layer.base)[layer.offset(slot, 0)];
  };
  std::mutex mutex;
  std::array<std::optional<View>, kThreads> left;
  std::atomic<int> lost{0};
  std::atomic<int> taken{0};
  const auto work = [&](std::size_t thread) {
    for (int round = 0; round < kRounds; ++round) {
      View view(book);
      if (!view.append(1 + round % 7)) continue;
      ++taken;
      const auto mark = static_cast<float>(thread * kRounds) + static_cast<float>(round);
      for (const std::int32_t slot : view.slots()) at(slot) = mark;
      std::optional<View> fork(view.fork());
      for (const std::int32_t slot : fork->slots()) lost += at(slot) == mark ? 0 : 1;
      // Another thread drops it, maybe after this one has dropped its own.
      const std::lock_guard lock(mutex);
      std::swap(fork, left[(thread + static_cast<std::size_t>(round)) % kThreads]);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  }
  for (auto& view : left) view.reset();
  EXPECT_EQ(lost, 0) << "a page belonged to two views at once";
  EXPECT_GT(taken, kRounds);
  EXPECT_EQ(book.free_pages(), book.pages());
  EXPECT_EQ(book.events().taken, book.events().freed);
}

TEST_F(ViewTest, TheNewestTokensAreForgottenAndTheirSlotsTakenAgain) {
  auto claim = book_.claim(4);
  ASSERT_TRUE(claim);
  View view(book_);
  view.append(3, *claim);
  const std::vector<std::int32_t> before = slots(view);
  view.append(7, *claim);
  const std::vector<std::int32_t> all = slots(view);
  EXPECT_EQ(claim->left(), 1);
  view.drop_back(0, *claim);
  EXPECT_EQ(slots(view), all);
  view.drop_back(1, *claim);
  EXPECT_EQ(claim->left(), 1) << "a token of the last page is left";
  EXPECT_EQ(view.size(), 9);
  view.drop_back(6, *claim);
  EXPECT_EQ(slots(view), before);
  EXPECT_EQ(claim->left(), 3) << "two pages are empty, and promised again";
  EXPECT_EQ(book_.free_pages(), 2);
  // What was promised is there, in the pages that are left first.
  view.append(7, *claim);
  EXPECT_EQ(view.size(), 10);
  EXPECT_EQ(slots(view)[3], before[0] + 3);
  EXPECT_EQ(claim->left(), 1);
  view.drop_back(10, *claim);
  EXPECT_EQ(view.size(), 0);
  EXPECT_EQ(view.pages(), 0);
  EXPECT_EQ(claim->left(), 4);
  claim->give_back();
  EXPECT_EQ(book_.free_pages(), 6);
}

TEST_F(ViewTest, OnlyWhatItAppendedAndNobodySeesIsForgotten) {
  auto claim = book_.claim(4);
  ASSERT_TRUE(claim);
  View window(book_);
  ASSERT_TRUE(window.append(6));
  View text = window.fork();
  text.append(3, *claim);
  const std::vector<std::int32_t> all = slots(text);
  EXPECT_THROW(text.drop_back(4, *claim), std::logic_error) << "the last one is the window's";
  EXPECT_THROW(text.drop_back(10, *claim), std::logic_error) << "there are nine";
  EXPECT_THROW(text.drop_back(-1, *claim), std::logic_error);
  Book::Claim none;
  EXPECT_THROW(text.drop_back(1, none), std::logic_error);
  Book another(2, kPageTokens);
  auto other_claim = another.claim(1);
  EXPECT_THROW(text.drop_back(1, *other_claim), std::logic_error);
  EXPECT_EQ(slots(text), all);
  {
    const View other = text.fork();
    EXPECT_THROW(text.drop_back(1, *claim), std::logic_error) << "another one sees it";
    EXPECT_EQ(slots(text), all);
  }
  text.drop_back(3, *claim);
  EXPECT_EQ(slots(text), slots(window));
  EXPECT_EQ(claim->left(), 4);
}

TEST_F(ViewTest, APageIsPutBackByItsOnlyOwner) {
  auto claim = book_.claim(2);
  ASSERT_TRUE(claim);
  std::vector<PageId> pages;
  claim->allocate(1, pages);
  book_.retain(pages[0]);
  EXPECT_THROW(claim->put_back(pages[0]), std::logic_error);
  book_.release(pages[0]);
  EXPECT_EQ(claim->left(), 1);
  claim->put_back(pages[0]);
  EXPECT_EQ(claim->left(), 2);
  EXPECT_EQ(book_.references(pages[0]), 0);
  EXPECT_EQ(book_.events().taken, book_.events().freed);
  Book::Claim none;
  EXPECT_THROW(none.put_back(pages[0]), std::logic_error);
}

}  // namespace
}  // namespace vigil::kv
