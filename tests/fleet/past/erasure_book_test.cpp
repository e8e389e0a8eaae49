// Erasures that all nodes have to do: over a store as etcd's, with nodes that come, go and come back.
#include "fleet/past/erasure_book.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/memory_store.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const FleetErasure kGate{{"acme", "gate-7"}, {std::numeric_limits<std::int64_t>::min(), 5000}};

class ErasureBookTest : public ::testing::Test {
 protected:
  ErasureBook node(const std::string& name) {
    ErasureBook book("city", name);
    see(book);
    return book;
  }
  std::vector<std::string> see(ErasureBook& book) {
    ErasureBook::Entries entries;
    for (const cluster::RegistryEntry& each : store_.range("/vigil/city/past/").entries)
      entries[each.key] = each;
    return book.see(entries);
  }
  bool commit(const cluster::RegistryTransaction& transaction) {
    return std::get<cluster::RegistryCommit>(store_.commit(transaction)).made;
  }
  std::vector<std::string> keys() {
    std::vector<std::string> keys;
    for (const cluster::RegistryEntry& each : store_.range("/vigil/city/past/").entries)
      keys.push_back(each.key.substr(17));
    return keys;
  }
  /// It begins, with a disk.
  ErasureBook beginning(const std::string& name) {
    ErasureBook book = node(name);
    commit(book.begin(true));
    see(book);
    return book;
  }

  actors::testing::ManualClock clock_;
  cluster::MemoryStore store_{clock_};
};

TEST_F(ErasureBookTest, AnErasureSurvivesItsText) {
  EXPECT_EQ(parse_erasure(print(kGate)), kGate);
  EXPECT_THROW(parse_erasure("[]"), std::runtime_error);
  EXPECT_THROW(parse_erasure(R"({"tenant": "acme", "camera": "gate-7", "from_ns": 1})"), std::runtime_error);
  EXPECT_THROW(parse_erasure(R"({"tenant": 1, "camera": "gate-7", "from_ns": 1, "to_ns": 2})"),
               std::runtime_error);
}

TEST_F(ErasureBookTest, EachNodeDoesItOnceAndTheLastOneFinishesIt) {
  ErasureBook one = beginning("gpu-1");
  ErasureBook two = beginning("gpu-2");
  ErasureBook gateway = node("gw");
  EXPECT_TRUE(commit(gateway.order("e-1", kGate)));
  for (ErasureBook* const each : {&one, &two, &gateway}) see(*each);
  EXPECT_THAT(gateway.left("e-1"), ElementsAre("gpu-1", "gpu-2"));
  EXPECT_EQ(gateway.waiting(), 1U);

  const auto due = one.take_due();
  ASSERT_THAT(due, SizeIs(1));
  EXPECT_EQ(due[0].id, "e-1");
  EXPECT_EQ(due[0].what, kGate);
  EXPECT_THAT(one.take_due(), IsEmpty()) << "it was told";
  EXPECT_TRUE(commit(one.done("e-1", 3)));
  see(gateway);
  EXPECT_THAT(gateway.left("e-1"), ElementsAre("gpu-2"));
  EXPECT_EQ(gateway.waiting(), 1U);

  EXPECT_TRUE(commit(two.done("e-1", 4)));
  see(gateway);
  EXPECT_THAT(gateway.left("e-1"), IsEmpty());
  EXPECT_EQ(gateway.waiting(), 0U);
  EXPECT_EQ(gateway.pages("e-1"), 7U);
  EXPECT_TRUE(gateway.knows("e-1"));
  // Others may not have seen it yet.
  EXPECT_THAT(gateway.clean_up(clock_.now()).changes, IsEmpty());
  clock_.advance(ErasureBook::kKept);
  // The order goes first, and what was done of it after that.
  EXPECT_TRUE(commit(gateway.clean_up(clock_.now())));
  see(gateway);
  EXPECT_FALSE(gateway.knows("e-1"));
  EXPECT_TRUE(commit(gateway.clean_up(clock_.now())));
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
}

TEST_F(ErasureBookTest, ANodeThatIsAwayIsWaitedForAndFindsItAtItsReturn) {
  beginning("gpu-1");
  ErasureBook gateway = node("gw");
  commit(gateway.order("e-1", kGate));
  see(gateway);
  // Nobody is there.
  gateway.present({});
  EXPECT_THAT(gateway.left("e-1"), ElementsAre("gpu-1"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(gateway.clean_up(clock_.now()).changes, IsEmpty());
    clock_.advance(2 * ErasureBook::kKept);
  }
  EXPECT_THAT(gateway.with_disk(), ElementsAre("gpu-1"));

  ErasureBook back = node("gpu-1");
  EXPECT_THAT(back.begin(true).changes, IsEmpty()) << "the registry knows that it remembers";
  EXPECT_THAT(back.take_due(), SizeIs(1));
}

TEST_F(ErasureBookTest, WhatANodeWithoutADiskHadIsGoneWithIt) {
  ErasureBook one = node("gpu-1");
  commit(one.begin(false));
  ErasureBook gateway = node("gw");
  commit(gateway.order("e-1", kGate));
  see(gateway);
  gateway.present({"gpu-1", "gw"});
  EXPECT_THAT(gateway.left("e-1"), ElementsAre("gpu-1"));
  gateway.present({"gw"});
  EXPECT_THAT(gateway.left("e-1"), IsEmpty());
  EXPECT_THAT(gateway.with_disk(), IsEmpty());
}

TEST_F(ErasureBookTest, WhoHadADiskHasItUntilSomebodySaysOtherwise) {
  beginning("gpu-1");
  ErasureBook one = node("gpu-1");
  EXPECT_TRUE(one.had_disk());
  EXPECT_THAT(one.begin(false).changes, IsEmpty());
  // The other way about it is news.
  ErasureBook two = node("gpu-2");
  commit(two.begin(false));
  see(two);
  EXPECT_FALSE(two.had_disk());
  EXPECT_TRUE(commit(two.begin(true)));
  see(two);
  EXPECT_TRUE(two.had_disk());
}

TEST_F(ErasureBookTest, WhoeverBeginsMeanwhileDoesItToo) {
  ErasureBook gateway = node("gw");
  commit(gateway.order("e-1", kGate));
  ErasureBook later = beginning("gpu-9");
  see(gateway);
  EXPECT_THAT(gateway.left("e-1"), ElementsAre("gpu-9")) << "it may have remembered before it said so";
  EXPECT_THAT(later.take_due(), SizeIs(1));
}

TEST_F(ErasureBookTest, WhatARegistryHasForgottenIsDoneAgain) {
  ErasureBook one = beginning("gpu-1");
  const auto empty = store_.backup();
  commit(one.order("e-1", kGate));
  see(one);
  const auto ordered = store_.backup();
  EXPECT_THAT(one.take_due(), SizeIs(1));
  commit(one.done("e-1", 1));
  see(one);
  EXPECT_THAT(one.take_due(), IsEmpty());
  store_.restore(ordered, 1);
  see(one);
  EXPECT_THAT(one.take_due(), SizeIs(1)) << "nobody knows that it was done";
  store_.restore(empty, 1);
  see(one);
  EXPECT_FALSE(one.knows("e-1"));
  EXPECT_THAT(one.begin(true).changes, IsEmpty());
}

TEST_F(ErasureBookTest, NewErasuresAreToldOnce) {
  ErasureBook one = beginning("gpu-1");
  EXPECT_THAT(one.take_new(), IsEmpty());
  commit(one.order("e-1", kGate));
  see(one);
  EXPECT_THAT(one.take_new(), ElementsAre(kGate));
  see(one);
  EXPECT_THAT(one.take_new(), IsEmpty());
}

TEST_F(ErasureBookTest, WhatFailsIsDueAgain) {
  ErasureBook one = beginning("gpu-1");
  commit(one.order("e-1", kGate));
  see(one);
  EXPECT_THAT(one.take_due(), SizeIs(1));
  one.again("e-1");
  EXPECT_THAT(one.take_due(), SizeIs(1));
}

TEST_F(ErasureBookTest, WhatIsOverCannotBeSaidToBeDone) {
  ErasureBook one = beginning("gpu-1");
  EXPECT_THAT(one.done("e-1", 1).changes, IsEmpty());
  commit(one.order("e-1", kGate));
  see(one);
  const cluster::RegistryTransaction done = one.done("e-1", 1);
  store_.commit({{}, {cluster::RegistryDelete{"/vigil/city/past/erasures/e-1"}}});
  EXPECT_FALSE(commit(done)) << "else what was done would stay for ever";
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1"));
}

TEST_F(ErasureBookTest, ANameIsUsedOnce) {
  ErasureBook gateway = node("gw");
  EXPECT_TRUE(commit(gateway.order("e-1", kGate)));
  EXPECT_FALSE(commit(gateway.order("e-1", {{"acme", "door"}, {0, 1}})));
}

TEST_F(ErasureBookTest, WhatMakesNoSenseIsPassedOverAndTold) {
  beginning("gpu-1");
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"erasures/bad", "not JSON"}, {"nodes/odd", R"({"disk": 7})"}, {"erased/e-1", R"({"pages": 1})"}})
    store_.commit({{}, {cluster::RegistryPut{"/vigil/city/past/" + key, value, 0}}});
  ErasureBook gateway("city", "gw");
  const std::vector<std::string> faults = see(gateway);
  EXPECT_THAT(faults,
              ElementsAre(HasSubstr("erased/e-1: names no node"), HasSubstr("erasures/bad: is no JSON"),
                          HasSubstr("nodes/odd: disk is not what it should be")));
  EXPECT_THAT(gateway.with_disk(), ElementsAre("gpu-1"));
  EXPECT_FALSE(gateway.knows("bad"));
}

TEST_F(ErasureBookTest, CleaningUpGoesByAsMuchAsARegistryTakesAtOnce) {
  for (int i = 0; i < 200; ++i)
    store_.commit({{},
                   {cluster::RegistryPut{"/vigil/city/past/erased/e-1/gpu-" + std::to_string(i),
                                         R"({"pages": 0})", 0}}});
  ErasureBook gateway = node("gw");
  EXPECT_TRUE(commit(gateway.clean_up(clock_.now())));
  EXPECT_THAT(keys(), SizeIs(200 - cluster::RegistryTransaction::kMost));
  see(gateway);
  EXPECT_TRUE(commit(gateway.clean_up(clock_.now())));
  EXPECT_THAT(keys(), IsEmpty());
  see(gateway);
  EXPECT_FALSE(gateway.has_erasures());
}

}  // namespace
}  // namespace vigil::fleet
