// Requests about the past on their way to another node.
#include "fleet/messages/past_forms.h"

#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;

class PastFormsTest : public ::testing::Test {
 protected:
  PastFormsTest() { clock_.advance(1h); }
  actors::PastRequest through(actors::PastRequest request) {
    const auto form = form_of(request, clock_.now());
    const auto back = form ? request_of(*form, clock_.now()) : std::nullopt;
    EXPECT_TRUE(back);
    return back.value_or(actors::PastRequest());
  }
  actors::testing::ManualClock clock_;
};

TEST_F(PastFormsTest, AQuestionComesAsItWent) {
  actors::PastRequest request;
  request.ticket = 4;
  request.rights = {std::set<std::string>{"acme", "zoo"}, false};
  request.deadline = clock_.now() + 1500ms;
  request.what =
      actors::PastQuestion{{"gate", "acme"}, "When?", "Is it?", {-5, 9}, memory::Method::compose, 12};
  const actors::PastRequest back = through(request);
  EXPECT_EQ(back.ticket, 4U);
  EXPECT_EQ(back.rights, request.rights);
  EXPECT_EQ(back.deadline, request.deadline);
  const auto& question = std::get<actors::PastQuestion>(back.what);
  EXPECT_EQ(question.camera, (actors::PastCamera{"gate", "acme"}));
  EXPECT_EQ(question.question, "When?");
  EXPECT_EQ(question.about, "Is it?");
  EXPECT_EQ(question.wall, (history::WallRange{-5, 9}));
  EXPECT_EQ(question.method, memory::Method::compose);
  EXPECT_EQ(question.max_tokens, 12);
}

TEST_F(PastFormsTest, AListAndAVerificationNameACameraOrNone) {
  actors::PastRequest request;
  request.what = actors::PastList{};
  actors::PastRequest back = through(request);
  EXPECT_FALSE(back.rights.tenants) << "everybody's";
  EXPECT_EQ(back.deadline, base::Clock::TimePoint::max());
  EXPECT_FALSE(std::get<actors::PastList>(back.what).camera);
  // A camera of no tenant is not one of any tenant.
  request.what = actors::PastVerify{actors::PastCamera{"gate", ""}};
  request.rights.tenants = std::set<std::string>();
  back = through(request);
  EXPECT_EQ(back.rights.tenants, std::set<std::string>());
  EXPECT_EQ(std::get<actors::PastVerify>(back.what).camera, (actors::PastCamera{"gate", ""}));
}

TEST_F(PastFormsTest, AnErasureGoesByTheRegistry) {
  actors::PastRequest request;
  request.what = actors::PastErasure{{"gate", "acme"}, {0, 1}};
  EXPECT_FALSE(form_of(request, clock_.now()));
}

TEST_F(PastFormsTest, WhatIsNotKnownIsNoRequest) {
  PastAsk ask;
  ask.max_tokens = 1;
  EXPECT_TRUE(request_of(ask, clock_.now()));
  ask.what = 3;
  EXPECT_FALSE(request_of(ask, clock_.now()));
  ask.what = 0;
  ask.method = 9;
  EXPECT_FALSE(request_of(ask, clock_.now()));
  ask.method = 0;
  ask.from = 2;
  ask.to = 1;
  EXPECT_FALSE(request_of(ask, clock_.now()));
  PastWord word;
  word.outcome = 200;
  EXPECT_FALSE(reply_of(word));
}

TEST_F(PastFormsTest, ARequestThatIsLateHasNoTimeLeft) {
  actors::PastRequest request;
  request.what = actors::PastList{};
  request.deadline = clock_.now() - 1s;
  EXPECT_EQ(through(request).deadline, clock_.now());
}

TEST_F(PastFormsTest, AWordComesAsItWent) {
  actors::PastReply reply;
  reply.ticket = 9;
  reply.outcome = actors::PastOutcome::busy;
  reply.text = "later";
  reply.retry_after = 250ms;
  reply.is_unknown = true;
  const auto back = reply_of(form_of(reply));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->ticket, 9U);
  EXPECT_EQ(back->outcome, actors::PastOutcome::busy);
  EXPECT_EQ(back->text, "later");
  EXPECT_EQ(back->retry_after, 250ms);
  EXPECT_TRUE(back->is_unknown);
}

}  // namespace
}  // namespace vigil::fleet
