// What a registry promises, of the one in memory and of a real etcd.
#include "cluster/registry/registry.h"

#include <future>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/registry_guard.h"
#include "tests/cluster/registry/subjects.h"

namespace vigil::cluster::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Kind = RegistryFailure::Kind;

class RegistryTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "memory") {
      subject_ = std::make_unique<MemorySubject>();
    } else {
      if (const std::string why = no_etcd(); !why.empty()) GTEST_SKIP() << why;
      subject_ = std::make_unique<EtcdSubject>();
    }
    ask_.emplace(registry());
    start_ = good(ask_->range("")).header.revision;
  }
  Registry& registry() { return subject_->registry(); }
  std::vector<std::string> keys(const std::string& prefix) {
    std::vector<std::string> keys;
    for (const RegistryEntry& entry : good(ask_->range(prefix)).entries) keys.push_back(entry.key);
    return keys;
  }

  std::unique_ptr<Subject> subject_;
  std::optional<Asking> ask_;
  Revision start_ = 0;
};

TEST_P(RegistryTest, AKeyTellsOfItsFirstAndItsLastChange) {
  EXPECT_EQ(good(ask_->put("a", "1")).header.revision, start_ + 1);
  EXPECT_EQ(good(ask_->put("b", "")).header.revision, start_ + 2);
  const RegistryCommit third = good(ask_->put("a", std::string("\0\xff", 2)));
  EXPECT_TRUE(third.made);
  const RegistryRange all = good(ask_->range(""));
  EXPECT_EQ(all.header.revision, start_ + 3);
  EXPECT_EQ(all.header.cluster, third.header.cluster);
  EXPECT_NE(all.header.cluster, 0U);
  EXPECT_THAT(all.entries,
              ElementsAre(RegistryEntry{"a", std::string("\0\xff", 2), start_ + 1, start_ + 3, 0},
                          RegistryEntry{"b", "", start_ + 2, start_ + 2, 0}));
  EXPECT_EQ(good(ask_->erase("a")).header.revision, start_ + 4);
  EXPECT_EQ(good(ask_->put("a", "2")).header.revision, start_ + 5);
  EXPECT_EQ(good(ask_->range("a")).entries[0].created, start_ + 5) << "a key that was deleted is a new one";
}

TEST_P(RegistryTest, PrefixesAreBytes) {
  const std::string high = "\xff\xff", higher = high + '\x01', nul(1, '\0');
  for (const std::string& key : {std::string("a"), std::string("a/"), std::string("a/b"), std::string("a0"),
                                 std::string("b"), high, higher, nul})
    ASSERT_TRUE(good(ask_->put(key, "")).made);
  EXPECT_THAT(keys(""), ElementsAre(nul, "a", "a/", "a/b", "a0", "b", high, higher));
  EXPECT_THAT(keys("a/"), ElementsAre("a/", "a/b"));
  EXPECT_THAT(keys(high), ElementsAre(high, higher));
  EXPECT_THAT(keys("c"), IsEmpty());
}

TEST_P(RegistryTest, ChangesAreMadeIfAllConditionsHold) {
  const Revision made = good(ask_->put("a", "1")).header.revision;
  const auto commit = [&](std::vector<RegistryCondition> conditions) {
    return good(ask_->commit(
        {std::move(conditions), {RegistryPut{"b", "2", 0}, RegistryDelete{"a"}, RegistryPut{"c", "3", 0}}}));
  };
  const RegistryCommit refused = commit({{"a", made}, {"b", made}});
  EXPECT_FALSE(refused.made);
  EXPECT_EQ(refused.header.revision, made);
  EXPECT_FALSE(commit({{"a", 0}}).made) << "0: no such key";
  EXPECT_FALSE(commit({{"a", made - 1}}).made);
  EXPECT_THAT(keys(""), ElementsAre("a"));
  const RegistryCommit done = commit({{"a", made}, {"b", 0}});
  EXPECT_TRUE(done.made);
  EXPECT_EQ(done.header.revision, made + 1) << "one revision for all";
  EXPECT_THAT(keys(""), ElementsAre("b", "c"));
  Seen seen(registry(), "", made + 1);
  EXPECT_THAT(short_form(seen.until(made + 1)), ElementsAre("b=2", "-a", "c=3"));
}

TEST_P(RegistryTest, WhatChangesNothingIsNoRevision) {
  EXPECT_TRUE(good(ask_->erase("none")).made);
  EXPECT_TRUE(good(ask_->commit({})).made);
  EXPECT_EQ(good(ask_->commit({{{"none", 0}}, {}})).header.revision, start_);
  EXPECT_EQ(good(ask_->commit({{{"none", 7}}, {}})).made, false);
  EXPECT_EQ(good(ask_->put("a", "")).header.revision, start_ + 1);
}

TEST_P(RegistryTest, TransactionsThatNoneTakesAreRefusedAndDoNothing) {
  RegistryTransaction most, more;
  for (std::size_t i = 0; i < RegistryTransaction::kMost; ++i) {
    most.changes.emplace_back(RegistryPut{"k" + std::to_string(i), "", 0});
    most.conditions.push_back({"k" + std::to_string(i), 0});
  }
  more = most;
  more.changes.emplace_back(RegistryPut{"x", "", 0});
  EXPECT_THAT(bad(ask_->commit(more)).text, HasSubstr("more than 128"));
  EXPECT_THAT(bad(ask_->commit({{}, {RegistryPut{"a", "", 0}, RegistryDelete{"a"}}})).text,
              HasSubstr("twice"));
  EXPECT_THAT(bad(ask_->commit({{}, {RegistryDelete{""}}})).text, HasSubstr("without a key"));
  EXPECT_THAT(bad(ask_->commit({{{"", 0}}, {}})).text, HasSubstr("without a key"));
  EXPECT_EQ(bad(ask_->put("a", std::string(RegistryTransaction::kMostBytes, 'x'))).kind, Kind::refused);
  EXPECT_TRUE(good(ask_->put("a", std::string(RegistryTransaction::kMostBytes - 1, 'x'))).made);
  EXPECT_EQ(good(ask_->commit(most)).header.revision, start_ + 2);
}

TEST_P(RegistryTest, KeysGoWithTheirLease) {
  const RegistryLease lease = good(ask_->grant(30s));
  EXPECT_GE(lease.ttl, 30s);
  EXPECT_NE(lease.id, 0);
  EXPECT_EQ(lease.header.revision, start_) << "a lease is no change";
  good(ask_->put("c", "", lease.id));
  good(ask_->put("a", "", lease.id));
  good(ask_->put("b", "", lease.id));
  good(ask_->put("b", "kept"));
  EXPECT_EQ(good(ask_->range("a")).entries[0].lease, lease.id);
  EXPECT_EQ(good(ask_->keep_alive(lease.id)).ttl, lease.ttl);
  EXPECT_EQ(good(ask_->revoke(lease.id)).revision, start_ + 5);
  EXPECT_THAT(keys(""), ElementsAre("b"));
  Seen seen(registry(), "", start_ + 5);
  EXPECT_THAT(short_form(seen.until(start_ + 5)), ElementsAre("-a", "-c"))
      << "in one revision, by their names";
  EXPECT_EQ(seen.headers().size(), 1U);
  EXPECT_EQ(bad(ask_->revoke(lease.id)).kind, Kind::no_lease);
  EXPECT_EQ(bad(ask_->keep_alive(lease.id)).kind, Kind::no_lease);
  EXPECT_EQ(bad(ask_->put("d", "", lease.id)).kind, Kind::no_lease);
  EXPECT_EQ(good(ask_->commit({{{"b", 1}}, {RegistryPut{"d", "", lease.id}}})).made, false)
      << "what is not changed needs no lease";
  EXPECT_EQ(good(ask_->range("")).header.revision, start_ + 5);
  EXPECT_EQ(good(ask_->revoke(good(ask_->grant(30s)).id)).revision, start_ + 5) << "it had no keys";
}

TEST_P(RegistryTest, AKeyGoesWithTheLastLeaseThatItHad) {
  const LeaseId first = good(ask_->grant(30s)).id, second = good(ask_->grant(30s)).id;
  good(ask_->put("a", "", first));
  good(ask_->put("a", "", second));
  EXPECT_EQ(good(ask_->revoke(first)).revision, start_ + 2);
  EXPECT_EQ(good(ask_->revoke(second)).revision, start_ + 3);
}

TEST_P(RegistryTest, ALeaseThatIsNotKeptAliveEnds) {
  const RegistryLease brief = good(ask_->grant(1ms)), longer = good(ask_->grant(60s));
  EXPECT_GE(brief.ttl, 1s);
  good(ask_->put("a", "", brief.id));
  good(ask_->put("b", "", longer.id));
  Seen seen(registry(), "", start_ + 3);
  subject_->pass(brief.ttl);
  EXPECT_THAT(short_form(seen.until(start_ + 3)), ElementsAre("-a"));
  EXPECT_EQ(bad(ask_->keep_alive(brief.id)).kind, Kind::no_lease);
  EXPECT_EQ(good(ask_->keep_alive(longer.id)).id, longer.id);
}

TEST_P(RegistryTest, AWatchSeesWhatWasAndWhatComes) {
  good(ask_->put("a/1", "old"));
  good(ask_->put("a/1", "new"));
  good(ask_->put("b/1", "other"));
  Seen seen(registry(), "a/", start_ + 2), all(registry(), "", 1), later(registry(), "a/", start_ + 4);
  good(ask_->erase("a/1"));
  good(ask_->put("a/2", "x"));
  EXPECT_THAT(short_form(seen.until(start_ + 5)), ElementsAre("a/1=new", "-a/1", "a/2=x"));
  EXPECT_THAT(short_form(all.until(start_ + 5)),
              ElementsAre("a/1=old", "a/1=new", "b/1=other", "-a/1", "a/2=x"));
  const std::vector<RegistryEvent> events = later.until(start_ + 5);
  EXPECT_THAT(short_form(events), ElementsAre("-a/1", "a/2=x"));
  EXPECT_EQ(events[0].entry, (RegistryEntry{"a/1", "", 0, start_ + 4, 0}));
  EXPECT_EQ(events[1].entry, (RegistryEntry{"a/2", "x", start_ + 5, start_ + 5, 0}));
  EXPECT_EQ(later.headers().back().revision, start_ + 5);
  seen.end();
  good(ask_->put("a/3", ""));
  later.until(start_ + 6);
  all.until(start_ + 6);
  EXPECT_EQ(seen.so_far().size(), 3U);
}

TEST_P(RegistryTest, AWatchOfWhatIsForgottenEnds) {
  for (const std::string value : {"1", "2", "3"}) good(ask_->put("a", value));
  const Revision gone = good(ask_->erase("a")).header.revision;
  const Revision last = good(ask_->put("a", "4")).header.revision;
  subject_->compact(gone);
  EXPECT_EQ(Seen(registry(), "", start_ + 1).failure().kind, Kind::compacted);
  EXPECT_EQ(Seen(registry(), "", gone).failure().kind, Kind::compacted)
      << "the deletion at this revision is forgotten, too";
  EXPECT_THAT(short_form(Seen(registry(), "", gone + 1).until(last)), ElementsAre("a=4"));
  EXPECT_EQ(good(ask_->range("")).entries.size(), 1U);
}

TEST_P(RegistryTest, AWatchThatHasSeenAllIsNotEndedByForgetting) {
  good(ask_->put("a", "1"));
  Seen seen(registry(), "", start_ + 1);
  seen.until(start_ + 1);
  const Revision last = good(ask_->put("a", "2")).header.revision;
  seen.until(last);
  subject_->compact(last);
  EXPECT_THAT(short_form(seen.until(good(ask_->put("a", "3")).header.revision)),
              ElementsAre("a=1", "a=2", "a=3"));
}

TEST_P(RegistryTest, ARevisionThatIsYetToComeIsOneOfAnotherHistory) {
  Seen next(registry(), "", start_ + 1);
  const RegistryFailure failure = Seen(registry(), "", start_ + 2).failure();
  EXPECT_EQ(failure.kind, Kind::replaced);
  EXPECT_THAT(failure.text, HasSubstr("it is at revision " + std::to_string(start_)));
  good(ask_->put("a", ""));
  EXPECT_EQ(next.until(start_ + 1).size(), 1U);
}

TEST_P(RegistryTest, ARestoredBackupIsNoticed) {
  RegistryGuard guard;
  const LeaseId lease = good(ask_->grant(60s)).id;
  good(ask_->put("kept", "", lease));
  subject_->save();
  const LeaseId forgotten = good(ask_->grant(60s)).id;
  Seen seen(registry(), "", start_ + 1);
  for (const std::string value : {"1", "2", "3"}) good(ask_->put("lost", value));
  seen.until(start_ + 4);
  EXPECT_EQ(guard.see(good(ask_->range("")).header), std::nullopt);
  subject_->restore(false);
  const RegistryRange after = good(ask_->range(""));
  EXPECT_EQ(after.entries.size(), 1U);
  EXPECT_EQ(guard.see(after.header), "went back from revision " + std::to_string(start_ + 4) + " to " +
                                         std::to_string(start_ + 1) + ", as a restored backup does");
  EXPECT_EQ(seen.failure().kind, Kind::replaced);
  EXPECT_EQ(seen.so_far().size(), 4U);
  EXPECT_EQ(guard.see(good(ask_->keep_alive(lease)).header), std::nullopt) << "once";
  EXPECT_EQ(bad(ask_->keep_alive(forgotten)).kind, Kind::no_lease);
  const LeaseId fresh = good(ask_->grant(60s)).id;
  EXPECT_NE(fresh, forgotten);
  Seen again(registry(), "", after.header.revision + 1);
  good(ask_->put("new", "", fresh));
  EXPECT_THAT(short_form(again.until(start_ + 2)), ElementsAre("new="));
}

TEST_P(RegistryTest, AnotherClusterIsNoticed) {
  RegistryGuard guard;
  good(ask_->put("a", ""));
  subject_->save();
  const RegistryHeader before = good(ask_->range("")).header;
  guard.see(before);
  Seen seen(registry(), "", before.revision + 1);
  subject_->restore(true);
  const RegistryHeader after = good(ask_->range("")).header;
  EXPECT_NE(after.cluster, before.cluster);
  EXPECT_GT(after.history, before.history);
  EXPECT_THAT(guard.see(after).value_or(""), StartsWith("replaced: it is cluster "));
  EXPECT_EQ(seen.failure().kind, Kind::replaced);
}

TEST_P(RegistryTest, OnlyOneOfManyTakesAKey) {
  std::vector<std::unique_ptr<Registry>> clients;
  std::vector<std::future<bool>> made;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(subject_->another());
    made.push_back(std::async(std::launch::async, [client = clients.back().get(), i] {
      return good(Asking(*client).commit({{{"planner", 0}}, {RegistryPut{"planner", std::to_string(i), 0}}}))
          .made;
    }));
  }
  int winners = 0;
  for (auto& each : made) winners += each.get() ? 1 : 0;
  EXPECT_EQ(winners, 1);
}

TEST_P(RegistryTest, CallbacksMayWatchAskAndEndTheirOwnWatch) {
  std::promise<RegistryResult<RegistryCommit>> answered;
  std::unique_ptr<RegistryWatch> watch;
  std::atomic<int> seen = 0;
  std::promise<void> placed;
  watch = registry().watch(
      "a", start_ + 1, [&, ready = placed.get_future().share()](RegistryResult<RegistryNews>) {
        ready.wait();
        ++seen;
        watch.reset();
        registry().commit({{}, {RegistryPut{"a", "2", 0}}}, [&](RegistryResult<RegistryCommit> result) {
          answered.set_value(std::move(result));
        });
      });
  placed.set_value();
  good(ask_->put("a", "1"));
  auto future = answered.get_future();
  ASSERT_EQ(future.wait_for(kPatience), std::future_status::ready);
  Seen both(registry(), "a", start_ + 1);
  EXPECT_EQ(both.until(good(future.get()).header.revision).size(), 2U);
  EXPECT_EQ(seen, 1);
}

TEST_P(RegistryTest, AWatchMayOutliveItsRegistry) {
  auto other = subject_->another();
  good(Asking(*other).put("a", "1"));
  Seen seen(*other, "", start_ + 1);
  seen.until(start_ + 1);
  other.reset();
  good(ask_->put("a", "2"));
  seen.end();
  EXPECT_EQ(seen.so_far().size(), 1U);
}

TEST_P(RegistryTest, WithTheRegistryNothingIsAnsweredAnyMore) {
  for (int i = 0; i < 20; ++i) {
    auto other = subject_->another();
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    for (int call = 0; call < 10; ++call)
      other->range("", [gone](const RegistryResult<RegistryRange>&) { EXPECT_FALSE(*gone); });
    other.reset();
    *gone = true;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, RegistryTest, ::testing::Values("memory", "etcd"),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace vigil::cluster::testing
