#include "engine/kv/book.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::kv {
namespace {

using Account = Book::Account;

TEST(BookAccount, KeepsUpToItsLimit) {
  Book book(10, 4);
  Account gate(book, 3), yard(book);
  EXPECT_EQ(yard.limit(), Account::kUnlimited);
  EXPECT_TRUE(gate.keep(3));
  EXPECT_FALSE(gate.keep(4));
  EXPECT_EQ(gate.kept(), 3) << "what is refused changes nothing";
  EXPECT_TRUE(yard.keep(7));
  EXPECT_FALSE(yard.keep(8)) << "there are no more pages";
  EXPECT_EQ(book.kept(), 10);
  EXPECT_EQ(book.events().not_kept, 2U);
  EXPECT_EQ(book.free_pages(), 10) << "an account takes no page, it counts";
  EXPECT_FALSE(gate.keep(-1));
  EXPECT_TRUE(gate.keep(0));
  EXPECT_EQ(book.kept(), 7);
}

TEST(BookAccount, ALowerLimitHoldsFromTheNextTime) {
  Book book(10, 4);
  Account gate(book);
  ASSERT_TRUE(gate.keep(6));
  gate.set_limit(4);
  EXPECT_EQ(gate.kept(), 6);
  EXPECT_FALSE(gate.keep(5)) << "less than before is still too much";
  EXPECT_TRUE(gate.keep(4));
  gate.set_limit(0);
  EXPECT_FALSE(gate.keep(1));
  EXPECT_TRUE(gate.keep(0)) << "nothing may always be kept";
}

TEST(BookAccount, AllTogetherLeaveTheReserve) {
  Book book(10, 4);
  Account gate(book), yard(book);
  book.set_reserve(3);
  EXPECT_EQ(book.reserve(), 3);
  EXPECT_TRUE(gate.keep(5));
  EXPECT_FALSE(yard.keep(3));
  EXPECT_TRUE(yard.keep(2));
  // What it grows by, nobody has to give back; but nobody takes more, and less is always right.
  book.set_reserve(8);
  EXPECT_EQ(book.kept(), 7);
  EXPECT_FALSE(yard.keep(3));
  EXPECT_TRUE(yard.keep(2));
  EXPECT_TRUE(gate.keep(4));
  EXPECT_FALSE(gate.keep(5));
  book.set_reserve(100);
  EXPECT_FALSE(yard.keep(3)) << "more than there is";
  EXPECT_TRUE(yard.keep(1));
  book.set_reserve(0);
  EXPECT_TRUE(yard.keep(6));
  EXPECT_THROW(book.set_reserve(-1), std::invalid_argument);
  // Whoever computes may have the reserve: it is not for windows and texts.
  book.set_reserve(10);
  EXPECT_TRUE(book.claim(10));
}

TEST(BookAccount, GoesWithWhatItKept) {
  Book book(10, 4);
  {
    Account gate(book);
    ASSERT_TRUE(gate.keep(6));
    Account moved(std::move(gate));
    EXPECT_EQ(moved.kept(), 6);
    EXPECT_EQ(book.kept(), 6);
  }
  EXPECT_EQ(book.kept(), 0);
}

// Against a book that a child could keep.
TEST(BookAccount, CountsAsAPlainModelDoes) {
  std::mt19937 random(20261125);
  const auto below = [&](std::uint32_t count) { return static_cast<std::int64_t>(random() % count); };
  constexpr std::int64_t kPages = 20;
  Book book(kPages, 4);
  struct Plain {
    std::int64_t limit = Account::kUnlimited;
    std::int64_t kept = 0;
  };
  std::map<int, std::pair<Account, Plain>> accounts;
  std::int64_t reserve = 0;
  std::uint64_t refused = 0, granted = 0;
  for (int i = 0; i < 200'000; ++i) {
    const int name = static_cast<int>(below(6));
    auto entry = accounts.find(name);
    if (entry == accounts.end()) {
      const std::int64_t limit = below(2) == 0 ? Account::kUnlimited : below(8);
      accounts.emplace(name, std::pair(Account(book, limit), Plain{limit, 0}));
      continue;
    }
    auto& [account, plain] = entry->second;
    switch (below(12)) {
      case 0:
        accounts.erase(entry);
        break;
      case 1:
        plain.limit = below(3) == 0 ? Account::kUnlimited : below(8);
        account.set_limit(plain.limit);
        break;
      case 2:
        reserve = below(kPages + 5);
        book.set_reserve(reserve);
        break;
      default: {
        const std::int64_t wanted = below(10);
        std::int64_t others = 0;
        for (const auto& [each, of] : accounts)
          if (each != name) others += of.second.kept;
        const bool allowed = wanted == 0 || (wanted <= plain.limit &&
                                             (wanted <= plain.kept || others + wanted <= kPages - reserve));
        ASSERT_EQ(account.keep(wanted), allowed) << "operation " << i;
        if (allowed) plain.kept = wanted;
        ++(allowed ? granted : refused);
        ASSERT_EQ(account.kept(), plain.kept);
      }
    }
    std::int64_t all = 0;
    for (const auto& [each, of] : accounts) all += of.second.kept;
    ASSERT_EQ(book.kept(), all) << "operation " << i;
  }
  EXPECT_GT(refused, 10'000U);
  EXPECT_GT(granted, 10'000U);
  EXPECT_EQ(book.events().not_kept, refused);
  accounts.clear();
  EXPECT_EQ(book.kept(), 0);
}

TEST(BookAccount, IsCountedFromSeveralThreads) {
  Book book(100, 4);
  book.set_reserve(40);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&book, seed] {
      std::mt19937 random(seed);
      for (int round = 0; round < 200; ++round) {
        Account account(book, 30);
        for (int i = 0; i < 50; ++i) {
          account.keep(static_cast<std::int64_t>(random() % 40));
          ASSERT_LE(book.kept(), 60);
        }
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(book.kept(), 0);
}

}  // namespace
}  // namespace vigil::kv
