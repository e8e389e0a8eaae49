// With whom a node exchanges bulk bytes: what is to be resolved, what is listed, and what is said.
#include "fleet/node/bulk_peer_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using cluster::BulkPeer;
using cluster::BulkRefusal;
using cluster::NodeRecord;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

NodeRecord node(const std::string& name, const std::string& incarnation = "1", const std::string& key = "") {
  NodeRecord record;
  record.name = name;
  record.incarnation = incarnation;
  record.bulk = {name + ".fleet", 9001};
  record.bulk_key = key;
  return record;
}

auto named(const std::string& name) {
  return Field(&NodeRecord::name, name);
}

TEST(BulkPeerBook, ARunIsResolvedOnceAndThenListed) {
  BulkPeerBook book;
  EXPECT_THAT(book.follow({node("a"), node("b")}), ElementsAre(named("a"), named("b")));
  EXPECT_THAT(book.peers(), IsEmpty());
  EXPECT_TRUE(book.resolved({"b", "1"}, {{"10.0.0.2", 9001}, {"10.0.0.3", 9001}}));
  EXPECT_THAT(book.peers(), ElementsAre(BulkPeer{"b", "tcp://10.0.0.2:9001"}));
  EXPECT_THAT(book.follow({node("a"), node("b")}), IsEmpty()) << "asked for already";
  EXPECT_THAT(book.follow({node("a"), node("b", "2")}), ElementsAre(named("b"))) << "another run, elsewhere";
  EXPECT_THAT(book.peers(), IsEmpty());
}

TEST(BulkPeerBook, ANameThatStandsForNothingIsAskedForAgain) {
  BulkPeerBook book;
  book.follow({node("a")});
  EXPECT_FALSE(book.resolved({"a", "1"}, {}));
  EXPECT_THAT(book.follow({node("a")}), ElementsAre(named("a")));
}

TEST(BulkPeerBook, AnAnswerThatComesTooLateListsNobody) {
  BulkPeerBook book;
  book.follow({node("a")});
  book.follow({});
  EXPECT_FALSE(book.resolved({"a", "1"}, {{"10.0.0.1", 9001}}));
  EXPECT_THAT(book.peers(), IsEmpty());
}

TEST(BulkPeerBook, AKeyThatChangesIsTheNewOne) {
  BulkPeerBook book;
  book.follow({node("a", "1", "old")});
  book.resolved({"a", "1"}, {{"10.0.0.1", 9001}});
  EXPECT_THAT(book.peers(), ElementsAre(BulkPeer{"a", "tcp://10.0.0.1:9001", {"old"}}));
  EXPECT_THAT(book.follow({node("a", "1", "new")}), IsEmpty());
  EXPECT_THAT(book.peers(), ElementsAre(BulkPeer{"a", "tcp://10.0.0.1:9001", {"new"}}));
}

TEST(BulkPeerBook, WhatThePortRefusesIsSaidOnceUntilItIsAnotherReasonOrWasMended) {
  BulkPeerBook book;
  const BulkRefusal key{"a", "it has no key"}, twice{"a", "it has a key twice"};
  EXPECT_THAT(book.news({key}), ElementsAre(key));
  EXPECT_THAT(book.news({key}), IsEmpty());
  EXPECT_THAT(book.news({twice}), ElementsAre(twice));
  EXPECT_THAT(book.news({}), IsEmpty());
  EXPECT_THAT(book.news({twice}), ElementsAre(twice));
}

}  // namespace
}  // namespace vigil::fleet
