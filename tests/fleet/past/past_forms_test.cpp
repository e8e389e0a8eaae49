// Requests about the past on their way to another node.
#include "fleet/messages/past_forms.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "fleet/messages/clip_wish.h"
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

TEST(ClipWishTest, ComesAsItWent) {
  const ClipWish wish{{"acme", "g\"\n"}, {{-5, INT64_MAX}, {1'795'946'460'000'000'000, 7}}};
  EXPECT_EQ(parse_clip_wish(print(wish)), wish);
  EXPECT_EQ(parse_clip_wish(print(ClipWish())), ClipWish());
  const FoundClips found = {std::nullopt, actors::ShownClip{"a/b.mp4", "", -1, INT64_MAX},
                            actors::ShownClip{"c.mp4", "c.jpg", 2, 3}};
  EXPECT_EQ(parse_found_clips(print(found)), found);
  EXPECT_EQ(parse_found_clips(print(FoundClips())), FoundClips());
}

TEST(ClipWishTest, WhatMakesNoSenseIsNone) {
  const std::string wish = print(ClipWish{{"acme", "gate"}, {{1, 2}}});
  const std::string found = print(FoundClips{actors::ShownClip{"c.mp4", "c.jpg", 2, 3}});
  for (std::size_t size = 0; size < wish.size(); ++size) EXPECT_FALSE(parse_clip_wish(wish.substr(0, size)));
  for (std::size_t size = 0; size < found.size(); ++size)
    EXPECT_FALSE(parse_found_clips(found.substr(0, size)));
  for (const char* const other : {"null", "[]", "7", "{}", R"({"tenant": "a", "camera": 7, "walls": []})",
                                  R"({"tenant": "a", "camera": "b", "walls": [[1]]})",
                                  R"({"tenant": "a", "camera": "b", "walls": [1]})",
                                  R"({"tenant": "a", "camera": "b", "walls": [["x", 2]]})"})
    EXPECT_FALSE(parse_clip_wish(other)) << other;
  for (const char* const other :
       {"null", "[]", "{}", R"({"clips": [7]})", R"({"clips": [{"clip": "x"}]})",
        R"({"clips": [{"clip": 1, "thumb": "", "from": 0, "shown": 1}]})",
        R"({"clips": [{"clip": "../b.mp4", "thumb": "", "from": 0, "shown": 1}]})",
        R"({"clips": [{"clip": "a/../../b.mp4", "thumb": "", "from": 0, "shown": 1}]})",
        R"({"clips": [{"clip": "a.mp4", "thumb": "/etc/a.jpg", "from": 0, "shown": 1}]})"})
    EXPECT_FALSE(parse_found_clips(other)) << other;
}

}  // namespace
}  // namespace vigil::fleet
