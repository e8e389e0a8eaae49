// Which connection has to go when there are too many.
#include "cluster/http/connection_book.h"

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using Id = ConnectionBook::Id;

TEST(ConnectionBook, TheMostSilentOfAnAddressMakesPlaceForItsNext) {
  ConnectionBook book({.connections = 100, .per_address = 2, .reserve = 0});
  const Id other = book.admit("b", false).id;
  const Id first = book.admit("a", false).id;
  const Id second = book.admit("a", false).id;
  book.touch(first);
  const auto third = book.admit("a", false);
  EXPECT_EQ(third.evicted, second) << "neither another address's, which is older, nor the one that spoke";
  EXPECT_EQ(book.admit("a", false).evicted, first);
  EXPECT_EQ(book.admit("c", false).evicted, std::nullopt);
  book.leave(third.id);
  EXPECT_EQ(book.admit("a", false).evicted, std::nullopt);
  book.leave(other);
  EXPECT_EQ(book.size(), 3U);
}

TEST(ConnectionBook, SomePlacesAreThisMachinesOwn) {
  ConnectionBook book({.connections = 4, .per_address = 4, .reserve = 2});
  const Id first = book.admit("a", false).id;
  const Id second = book.admit("b", false).id;
  EXPECT_EQ(book.admit("c", false).evicted, first) << "two places are kept";
  EXPECT_EQ(book.admit("", true).evicted, std::nullopt);
  EXPECT_EQ(book.admit("", true).evicted, std::nullopt);
  EXPECT_EQ(book.size(), 4U);
  EXPECT_EQ(book.admit("", true).evicted, second) << "whoever is the most silent of all";
  EXPECT_EQ(book.size(), 4U);
}

TEST(ConnectionBook, ThisMachinesOwnAreNotCountedByAddress) {
  ConnectionBook book({.connections = 10, .per_address = 1, .reserve = 1});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(book.admit("", true).evicted, std::nullopt);
  EXPECT_NE(book.admit("", true).evicted, std::nullopt);
  EXPECT_NE(book.admit("a", false).evicted, std::nullopt) << "a foreign one comes in when all are local";
  EXPECT_EQ(book.size(), 10U);
}

TEST(ConnectionBook, WhoIsNotInItIsNone) {
  ConnectionBook book({.connections = 1, .per_address = 1, .reserve = 0});
  book.touch(7);
  book.leave(7);
  const Id first = book.admit("a", false).id;
  EXPECT_EQ(book.admit("b", false).evicted, first);
  book.leave(first);
  EXPECT_EQ(book.size(), 1U);
}

}  // namespace
}  // namespace vigil::cluster
