// Events that a former owner of a camera kept while no gateway served, and the claims of the next one.
#include <gmock/gmock.h>

#include "fleet/events/maker_desk.h"
#include "tests/fleet/events/bare_gateways.h"

namespace vigil::fleet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Two makers, of which one had the camera "c" before the other, and one gateway, which comes late.
class FormerOwnerTest : public GatewaysTest {
 protected:
  struct Maker {
    Maker(const std::string& name, const base::Clock& clock)
        : desk({.node = name,
                .session = name + "s",
                .own = "process/" + name + '/',
                .pause = base::Duration(100),
                .deference = base::Duration(10'000),
                .quiet = base::Duration(1000)},
               clock) {}
    MakerDesk desk;
    std::uint64_t positions = 0;
    /// Of the last books.
    std::uint64_t sequence = 0;
  };

  /// What each has to tell, and what it hears of that, for a while; who keeps events is told to all at once.
  void run(base::Duration span) {
    for (const std::int64_t end = clock_.ms + span.count(); clock_.ms < end; clock_.ms += 50) {
      one_.joining->see(view_);
      one_.joining->take_asks();
      const auto own = view_.find("g1");
      if (own != view_.end()) own->second.serves = one_.desk->mode() == GatewayMode::serving;
      for (Maker* maker : {&old_, &next_}) {
        maker->desk.see(view_);
        const Maker& other = maker == &old_ ? next_ : old_;
        maker->desk.see_keepers(other.desk.keeps() && !is_gone(other) ? std::set<std::string>{"other"}
                                                                      : std::set<std::string>{});
        if (is_gone(*maker)) continue;
        for (MakerDesk::Ask& ask : maker->desk.take_asks())
          maker->desk.heard(ask.gateway, one_.desk->answer(ask.talk));
        for (const actors::SeriesBooks& books : maker->desk.take_books())
          maker->sequence = books.last.empty() ? 0 : books.last.front().sequence;
      }
    }
  }
  bool is_gone(const Maker& maker) const { return &maker == &old_ && is_old_gone_; }
  void gateway_comes() {
    come(one_);
    run(base::Duration(100));
  }
  static void own(Maker& maker, std::uint64_t fence) {
    maker.desk.have("c");
    maker.desk.claim("c", fence);
  }
  void hand_over() {
    old_.desk.leave("c");
    own(next_, 6);
  }
  void publish(Maker& maker, const std::string& what) {
    maker.desk.publish({{++maker.positions, kRule, ++maker.sequence, {}, what}});
  }
  std::vector<std::string> told() const {
    std::vector<std::string> all;
    for (std::uint64_t i = 1; i <= one_.outbox->last_sequence(kRule); ++i)
      for (const std::string& event : one_.events())
        if (event.starts_with(kRule + std::to_string(i)))
          all.push_back(event.substr(std::string(kRule).size()));
    return all;
  }

  Maker old_{"old", clock_}, next_{"next", clock_};
  bool is_old_gone_ = false;
};

TEST_F(FormerOwnerTest, WhatItKeptIsNumberedBeforeWhatTheNextOneTells) {
  own(old_, 5);
  run(base::Duration(1000));
  EXPECT_FALSE(old_.desk.keeps()) << "it is its own";
  // The camera moves while nobody serves.
  hand_over();
  run(base::Duration(30'000));
  EXPECT_TRUE(old_.desk.keeps());
  EXPECT_FALSE(next_.desk.keeps());
  gateway_comes();
  run(base::Duration(500));
  ASSERT_NE(one_.desk->books().tenure("c"), nullptr);
  EXPECT_EQ(one_.desk->books().tenure("c")->fence, 5U);
  publish(old_, "a");
  publish(old_, "b");
  run(base::Duration(500));
  EXPECT_THAT(told(), ElementsAre("1a", "2b"));
  EXPECT_EQ(next_.desk.claiming(), 1U) << "more may come of it";
  run(base::Duration(1500));
  EXPECT_FALSE(old_.desk.keeps());
  EXPECT_EQ(one_.desk->books().tenure("c")->fence, 6U);
  publish(next_, "c");
  run(base::Duration(500));
  EXPECT_THAT(told(), ElementsAre("1a", "2b", "3c")) << "without a gap";
  // From now on nothing is taken of it.
  publish(old_, "late");
  run(base::Duration(500));
  EXPECT_THAT(told(), SizeIs(3));
  EXPECT_THAT(old_.desk.take_lost(), SizeIs(1));
  EXPECT_EQ(old_.desk.take_dropped(), 1U);
}

TEST_F(FormerOwnerTest, WhatWasUnderWayWhenTheGatewayWentIsToldFirst) {
  gateway_comes();
  own(old_, 5);
  run(base::Duration(500));
  publish(old_, "a");
  run(base::Duration(500));
  view_.clear();
  run(base::Duration(100));
  publish(old_, "b");
  publish(old_, "c");
  hand_over();
  run(base::Duration(5000));
  EXPECT_TRUE(old_.desk.keeps());
  gateway_comes();
  run(base::Duration(3000));
  publish(next_, "d");
  run(base::Duration(500));
  EXPECT_THAT(told(), ElementsAre("1a", "2b", "3c", "4d"));
  EXPECT_THAT(old_.desk.take_lost(), IsEmpty());
}

TEST_F(FormerOwnerTest, WhatARunBeforeLeftIsClaimedAsAFormerOwnersToo) {
  // Started again without the camera: it tells what is on its disk, under the fence that it noted.
  old_.desk.claim("c", 5);
  own(next_, 6);
  run(base::Duration(1000));
  EXPECT_TRUE(old_.desk.keeps());
  gateway_comes();
  run(base::Duration(500));
  publish(old_, "a");
  run(base::Duration(3000));
  publish(next_, "b");
  run(base::Duration(500));
  EXPECT_THAT(told(), ElementsAre("1a", "2b"));
  // It has the camera again: that is not a former owner's any more.
  own(old_, 7);
  run(base::Duration(120'000));
  EXPECT_EQ(old_.desk.series(), 1U);
}

TEST_F(FormerOwnerTest, OneThatIsGoneIsNotWaitedFor) {
  own(old_, 5);
  hand_over();
  run(base::Duration(1000));
  ASSERT_TRUE(old_.desk.keeps());
  is_old_gone_ = true;
  gateway_comes();
  run(base::Duration(500));
  ASSERT_NE(one_.desk->books().tenure("c"), nullptr);
  EXPECT_EQ(one_.desk->books().tenure("c")->fence, 6U);
  // It comes back too late, and hears so.
  is_old_gone_ = false;
  run(base::Duration(2000));
  const auto lost = old_.desk.take_lost();
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_EQ(lost.front().higher, 6U);
  EXPECT_FALSE(old_.desk.keeps());
  publish(next_, "a");
  run(base::Duration(500));
  EXPECT_THAT(told(), ElementsAre("1a"));
}

TEST_F(FormerOwnerTest, OneThatDoesNotComeToAnEndIsWaitedForNoLongerThanItIsSaid) {
  own(next_, 6);
  run(base::Duration(1000));
  come(one_);
  const auto look = [&](std::int64_t ms) {
    for (const std::int64_t end = clock_.ms + ms; clock_.ms < end; clock_.ms += 50) {
      one_.joining->see(view_);
      one_.joining->take_asks();
      view_.at("g1").serves = one_.desk->mode() == GatewayMode::serving;
      next_.desk.see(view_);
      next_.desk.see_keepers({"hangs"});
      for (MakerDesk::Ask& ask : next_.desk.take_asks())
        next_.desk.heard(ask.gateway, one_.desk->answer(ask.talk));
    }
  };
  look(9'500);
  EXPECT_EQ(one_.desk->books().tenure("c"), nullptr);
  look(1'500);
  ASSERT_NE(one_.desk->books().tenure("c"), nullptr);
  // As long as all gateways answer, others keep nothing that would be waited for.
  next_.desk.have("d");
  next_.desk.claim("d", 9);
  look(200);
  EXPECT_NE(one_.desk->books().tenure("d"), nullptr);
}

TEST_F(FormerOwnerTest, WhatHasWaitedIsToldFirstThoughTheCameraMovesWhenTheGatewayIsBack) {
  own(old_, 5);
  run(base::Duration(1000));
  gateway_comes();
  run(base::Duration(500));
  for (const char* event : {"a", "b", "c"}) publish(old_, event);
  old_.desk.leave("c");
  next_.desk.have("c");
  clock_.ms += 50;
  next_.desk.see_keepers({"other"});
  next_.desk.claim("c", 6);
  run(base::Duration(5000));
  EXPECT_THAT(told(), ElementsAre("1a", "2b", "3c"));
  EXPECT_EQ(one_.desk->books().tenure("c")->fence, 6U);
}

TEST_F(FormerOwnerTest, ACameraThatMovesWhileAllGatewaysAnswerMakesNobodyWait) {
  gateway_comes();
  own(old_, 5);
  run(base::Duration(11'000));
  publish(old_, "a");
  old_.desk.leave("c");
  run(base::Duration(50));
  EXPECT_FALSE(old_.desk.keeps());
  own(next_, 6);
  run(base::Duration(200));
  EXPECT_EQ(one_.desk->books().tenure("c")->fence, 6U);
}

TEST_F(FormerOwnerTest, TheNodesOwnNewsWaitForNobody) {
  next_.desk.claim("process/next/", 40);
  old_.desk.claim("c", 5);
  run(base::Duration(1000));
  ASSERT_TRUE(old_.desk.keeps());
  gateway_comes();
  run(base::Duration(200));
  EXPECT_NE(one_.desk->books().tenure("process/next/"), nullptr);
}

}  // namespace
}  // namespace vigil::fleet::testing
