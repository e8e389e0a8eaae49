// A follower of several gateways on whose topics nothing happens, by a clock that is set forward.
#include "tests/cluster/topics/gateway_site.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using testing::GatewaysTest;
using testing::Site;

/// As `vigil watch` follows them, whose patience is as long as its heartbeat; both are longer than a test
/// takes.
class QuietGatewaysTest : public GatewaysTest {
 protected:
  static constexpr auto kPatience = 1min;
  Follower::Options options() const {
    Follower::Options usual = GatewaysTest::options();
    usual.heartbeat = usual.patience = kPatience;
    usual.ask_again = 2s;
    return usual;
  }
  void start_both() {
    a_.start();
    b_.start();
  }
  /// Until it has heard all that there is to hear.
  void settle(Follower& follower) {
    follow_to(follower, "alert/old/", 300);
    follow_until(follower, [&] { return !follower.is_asking(); });
  }
  /// As where nothing wakes it between one question and the next.
  void pass_heartbeats(Follower& follower, Site& site, int count) {
    for (int i = 0; i < count; ++i) {
      const std::size_t asked = site.asked;
      clock_.jump(kPatience);
      follow_until(follower, [&] { return site.asked > asked; });
      settle(follower);
    }
  }
  /// At this gateway, and no more than this was said.
  void expect_goes_on(Follower& follower, std::size_t gateway, const std::string& said) {
    EXPECT_EQ(follower.following(), gateway);
    EXPECT_EQ(notices_, said);
    both("alert/x/");
    follow_to(follower, "alert/x/", 1);
  }
};

TEST_F(QuietGatewaysTest, OneThatAnswersIsNotLeft) {
  start_both();
  Follower follower(options(), clock_);
  settle(follower);
  pass_heartbeats(follower, a_, 20);
  EXPECT_EQ(b_.asked, 0U);
  expect_goes_on(follower, 0, "");
}

TEST_F(QuietGatewaysTest, OneThatAnswersLateIsNotLeft) {
  start_both();
  Follower follower(options(), clock_);
  settle(follower);
  for (int i = 0; i < 5; ++i) {
    a_.answering = false;
    clock_.jump(kPatience);
    follow_until(follower, [&] { return follower.is_asking(); });
    clock_.jump(kPatience / 2);
    step(follower);
    a_.answering = true;
    settle(follower);
  }
  EXPECT_EQ(follower.following(), 0U);
  EXPECT_EQ(notices_, "");
}

TEST_F(QuietGatewaysTest, OneThatDoesNotAnswerIsLeftAndThatIsToldOnce) {
  start_both();
  Follower follower(options(), clock_);
  settle(follower);
  a_.answering = false;
  clock_.jump(kPatience);
  follow_until(follower, [&] { return follower.is_asking(); });
  EXPECT_EQ(follower.following(), 0U) << "it was asked just now";
  clock_.jump(kPatience);
  follow_until(follower, [&] { return follower.following() == 1; });
  const std::string told = a_.gateway().replay + " does not answer; then the next one is followed\n" +
                           "connected to " + b_.gateway().endpoint + '\n';
  follow_until(follower, [&] { return notices_.size() >= told.size(); });
  settle(follower);
  pass_heartbeats(follower, b_, 20);
  expect_goes_on(follower, 1, told);
}

TEST_F(QuietGatewaysTest, OneThatIsBackInTimeIsNotLeft) {
  start_both();
  Follower follower(options(), clock_);
  settle(follower);
  clock_.jump(kPatience / 2);
  a_.stop();
  follow_until(follower, [&] { return !notices_.empty(); });
  clock_.jump(kPatience / 2);
  step(follower);
  a_.start();
  both("alert/x/");
  follow_to(follower, "alert/x/", 1);
  EXPECT_EQ(follower.following(), 0U);
  EXPECT_EQ(b_.asked, 0U);
}

TEST_F(QuietGatewaysTest, OneThatAnswersAndPublishesNowhereIsLeft) {
  a_.start_replay();
  b_.start();
  Follower follower(options(), clock_);
  follow_until(follower, [&] { return a_.asked > 0 && !follower.is_asking(); });
  clock_.jump(kPatience);
  follow_until(follower, [&] { return follower.following() == 1; });
  follow_to(follower, "alert/old/", 300);
}

}  // namespace
}  // namespace vigil::cluster
