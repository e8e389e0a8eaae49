// A follower of several gateways, over real sockets: each of them goes and comes at any moment, and has the
// same events in an order of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/topics/gateway_site.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::GatewaysTest;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(GatewaysTest, TheFirstOneIsFollowedAsLongAsItIsThere) {
  a_.start();
  b_.start();
  Follower follower(options(), clock_);
  follow_to(follower, "alert/old/", 300);
  for (int i = 0; i < 3; ++i) both("alert/x/");
  follow_to(follower, "alert/x/", 3);
  for (int i = 0; i < 200; ++i) step(follower);
  EXPECT_EQ(follower.following(), 0U) << "for longer than its patience";
  expect_all("alert/old/", 300, 300);
  expect_all("alert/x/", 1, 3);
  EXPECT_EQ(notices_, "");
  EXPECT_EQ(b_.replayed, 0U);
}

/// When the first gateway ends.
enum class End : std::uint8_t {
  never_there,
  before_the_first_answer,
  after_the_last_values,
  while_both_have_all,
  while_the_other_is_ahead,
  while_the_other_is_behind,
  with_a_topic_that_is_new,
};

class GatewayEnds : public GatewaysTest, public ::testing::WithParamInterface<End> {};

TEST_P(GatewayEnds, NothingIsMissedAndNothingShownTwice) {
  if (GetParam() != End::never_there) a_.start();
  b_.start();
  if (GetParam() == End::before_the_first_answer) a_.answering = false;
  Follower follower(options(), clock_);
  std::uint64_t last = 0;
  if (GetParam() == End::before_the_first_answer) {
    for (int i = 0; i < 5; ++i) step(follower);
  } else if (GetParam() != End::never_there) {
    follow_to(follower, "alert/old/", 300);
  }
  if (GetParam() >= End::while_both_have_all) {
    for (int i = 0; i < 4; ++i) both("alert/x/");
    follow_to(follower, "alert/x/", 4);
    last = 4;
  }
  if (GetParam() == End::while_the_other_is_ahead) {
    // Committed there, and not here yet.
    for (int i = 0; i < 7; ++i) b_.commit("alert/x/");
    last = 11;
  }
  if (GetParam() == End::while_the_other_is_behind) {
    for (int i = 0; i < 3; ++i) a_.commit("alert/x/");
    follow_to(follower, "alert/x/", 7);
  }
  if (GetParam() == End::with_a_topic_that_is_new)
    for (int i = 0; i < 6; ++i) b_.commit("alert/new/");
  a_.stop();
  follow_until(follower, [&] {
    return follower.following() == 1 && notices_.find("connected to") != std::string::npos;
  });
  if (GetParam() == End::while_the_other_is_behind) {
    for (int i = 0; i < 3; ++i) b_.commit("alert/x/");
    last = 7;
  }
  if (GetParam() == End::with_a_topic_that_is_new) {
    follow_to(follower, "alert/new/", 6);
    expect_all("alert/new/", 1, 6);
  }
  follow_to(follower, "alert/old/", 300);
  if (last > 0) follow_to(follower, "alert/x/", last);
  for (int i = 0; i < 3; ++i) b_.commit("alert/x/");
  follow_to(follower, "alert/x/", b_.sequences["alert/x/"]);
  for (int i = 0; i < 60; ++i) step(follower);
  expect_all("alert/old/", 300, 300);
  expect_all("alert/x/", 1, b_.sequences["alert/x/"]);
  EXPECT_LT(b_.replayed, 40U) << "what is known is not read again";
  EXPECT_THAT(notices_, Not(HasSubstr("missing")));
  EXPECT_THAT(notices_, Not(HasSubstr("another outbox")));
}

INSTANTIATE_TEST_SUITE_P(All, GatewayEnds,
                         ::testing::Values(End::never_there, End::before_the_first_answer,
                                           End::after_the_last_values, End::while_both_have_all,
                                           End::while_the_other_is_ahead, End::while_the_other_is_behind,
                                           End::with_a_topic_that_is_new));

TEST_F(GatewaysTest, ItComesBackRoundToOneThatWasRebuiltMeanwhile) {
  a_.start();
  b_.start();
  Follower follower(options(), clock_);
  follow_to(follower, "alert/old/", 300);
  for (int round = 0; round < 3; ++round) {
    both("alert/x/");
    both("alert/y/");
    follow_to(follower, "alert/y/", a_.sequences["alert/y/"]);
    a_.stop();
    both("alert/y/");
    follow_to(follower, "alert/y/", b_.sequences["alert/y/"]);
    EXPECT_EQ(follower.following(), 1U);
    a_.rebuild();
    a_.start();
    both("alert/x/");
    follow_to(follower, "alert/x/", b_.sequences["alert/x/"]);
    b_.stop();
    both("alert/x/");
    both("alert/y/");
    follow_to(follower, "alert/y/", a_.sequences["alert/y/"]);
    EXPECT_EQ(follower.following(), 0U);
    b_.start();
  }
  for (int i = 0; i < 60; ++i) step(follower);
  for (const std::string topic : {"alert/x/", "alert/y/"}) expect_all(topic, 1, a_.sequences[topic]);
  expect_all("alert/old/", 300, 300);
  EXPECT_LT(a_.replayed + b_.replayed, 60U);
  EXPECT_THAT(notices_, Not(HasSubstr("another outbox")));
}

TEST_F(GatewaysTest, OneThatHasAnotherOutboxAtOnceIsReadFromWhereItWas) {
  a_.start();
  Follower follower(options(), clock_);
  follow_to(follower, "alert/old/", 300);
  both("alert/x/");
  follow_to(follower, "alert/x/", 1);
  a_.stop();
  both("alert/x/");
  both("alert/x/");
  a_.rebuild();
  a_.start();
  follow_to(follower, "alert/x/", 3);
  both("alert/x/");
  follow_to(follower, "alert/x/", 4);
  EXPECT_EQ(follower.following(), 0U);
  expect_all("alert/x/", 1, 4);
  expect_all("alert/old/", 300, 300);
  EXPECT_LT(a_.replayed, 20U);
}

TEST_F(GatewaysTest, OneThatReplaysNothingIsLeft) {
  a_.start();
  b_.start();
  Follower follower(options(), clock_);
  follow_to(follower, "alert/old/", 300);
  a_.refusal = ReplayRefusal{"the disk is full"};
  // It is lost on the way.
  a_.publishing = false;
  both("alert/x/");
  follow_to(follower, "alert/x/", 1);
  EXPECT_EQ(follower.following(), 1U);
  EXPECT_THAT(notices_, HasSubstr("no replay from " + a_.gateway().replay + ": the disk is full"));
  // And where all do, events come as they do.
  b_.refusal = a_.refusal;
  b_.publishing = a_.publishing = false;
  both("alert/x/");
  a_.publishing = b_.publishing = true;
  both("alert/x/");
  follow_to(follower, "alert/x/", 3);
  EXPECT_THAT(notices_, HasSubstr("1 event of alert/x/ cannot be replayed"));
  EXPECT_THAT(seen_["alert/x/"], ElementsAre(1U, 3U));
}

TEST_F(GatewaysTest, OneThatDoesNotLetInIsLeft) {
  const KeyPair server = make_key_pair();
  const KeyPair other_server = make_key_pair();
  const KeyPair own = make_key_pair();
  const KeyPair stranger = make_key_pair();
  a_.start(CurveServer{server, {stranger.public_key}});
  b_.start(CurveServer{other_server, {own.public_key}});
  Follower::Options with_keys = options();
  with_keys.curve = CurveClient{own, server.public_key};
  with_keys.others[0].curve = CurveClient{own, other_server.public_key};
  Follower follower(with_keys, clock_);
  follow_to(follower, "alert/old/", 300);
  EXPECT_EQ(follower.following(), 1U);
  EXPECT_THAT(notices_, HasSubstr(a_.gateway().endpoint + " does not let this key in"));
}

TEST_F(GatewaysTest, ThePastIsReadToItsEndWhereverItGoesOn) {
  for (int i = 0; i < 40; ++i) both(i % 2 == 0 ? "alert/x/" : "alert/y/");
  b_.rebuild();
  a_.start();
  b_.start();
  Follower::Options past = options();
  past.since = Since{base::Clock::WallTime()};
  Follower follower(past, clock_);
  follow_until(follower, [&] { return seen_["alert/old/"].size() > 20; });
  a_.stop();
  follow_to(follower, "alert/old/", 300);
  follow_to(follower, "alert/x/", 20);
  follow_to(follower, "alert/y/", 20);
  b_.commit("alert/x/");
  follow_to(follower, "alert/x/", 21);
  expect_all("alert/old/", 1, 300);
  expect_all("alert/x/", 1, 21);
  expect_all("alert/y/", 1, 20);
}

TEST_F(GatewaysTest, WhereNobodyIsItGoesRoundAndSaysSoOnce) {
  Follower follower(options(), clock_);
  std::set<std::size_t> followed;
  follow_until(follower, [&] {
    followed.insert(follower.following());
    return followed.size() == 2 && follower.following() == 0;
  });
  EXPECT_FALSE(follower.was_connected());
  follow_until(follower, [&] { return follower.following() == 1; });
  const auto told = [&](const std::string& endpoint) {
    const std::string line = "no connection to " + endpoint;
    std::size_t count = 0;
    for (std::size_t at = 0; (at = notices_.find(line, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_LE(told(a_.gateway().endpoint), 1U);
  EXPECT_LE(told(b_.gateway().endpoint), 1U);
  b_.start();
  follow_to(follower, "alert/old/", 300);
}

TEST_F(GatewaysTest, AnEndpointThatMakesNoSenseIsToldAtOnce) {
  Follower::Options wrong = options();
  wrong.others.push_back({"nonsense", "ipc://x"});
  EXPECT_THROW(Follower(wrong, clock_), TopicError);
}

}  // namespace
}  // namespace vigil::cluster
