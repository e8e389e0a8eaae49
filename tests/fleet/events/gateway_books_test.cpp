// What a gateway has staged, and what it commits of that.
#include "fleet/events/gateway_books.h"

#include <gmock/gmock.h>

#include "tests/fleet/events/bare_gateways.h"

namespace vigil::fleet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class GatewayBooksTest : public GatewaysTest {
 protected:
  GatewayBooksTest() {
    restart({&one_});
    settle();
    claim(one_);
  }
  MakerTalk offer(const std::string& body, std::uint64_t sequence = 1) {
    MakerTalk talk = this->talk(one_);
    talk.offers = {{"c", 1, {{kRule, sequence, 0, body, sequence}}}};
    return talk;
  }
  SeriesAnswer commit(const std::string& body, std::uint64_t sequence = 1) {
    MakerTalk talk = this->talk(one_);
    talk.commits = {{"c", 1, {{{{kRule, sequence, fingerprint(body)}}, false}}}};
    const GatewayTalk answer = one_.desk->answer(talk);
    EXPECT_THAT(answer.commits, SizeIs(1));
    return answer.commits.at(0);
  }
};

TEST_F(GatewayBooksTest, AnOldBodyThatComesLateIsNotCommittedInPlaceOfTheNewerOne) {
  const MakerTalk old = offer("old");
  one_.desk->answer(old);
  one_.desk->answer(offer("new"));
  // The first request once more, by a connection that is gone.
  one_.desk->answer(old);
  const SeriesAnswer refusal = commit("new");
  EXPECT_EQ(refusal.verdict, SeriesVerdict::missing);
  EXPECT_EQ(refusal.units, 0U);
  EXPECT_THAT(one_.events(), SizeIs(0));
  one_.desk->answer(offer("new"));
  EXPECT_EQ(commit("new").verdict, SeriesVerdict::done);
  EXPECT_THAT(one_.events(), ElementsAre(std::string(kRule) + "1new"));
}

TEST_F(GatewayBooksTest, WhatIsCommittedStaysWhateverIsOfferedAndCommittedAfterIt) {
  one_.desk->answer(offer("first"));
  EXPECT_EQ(commit("first").verdict, SeriesVerdict::done);
  one_.desk->answer(offer("second"));
  EXPECT_EQ(commit("second").verdict, SeriesVerdict::done) << "it is done already, and is what it was";
  EXPECT_THAT(one_.events(), ElementsAre(std::string(kRule) + "1first"));
}

TEST_F(GatewayBooksTest, ACommitWithoutAPrintTakesNothing) {
  one_.desk->answer(offer("body"));
  MakerTalk talk = this->talk(one_);
  talk.commits = {{"c", 1, {{{{kRule, 1, 0}}, false}}}};
  EXPECT_EQ(one_.desk->answer(talk).commits.at(0).verdict, SeriesVerdict::missing);
  EXPECT_THAT(one_.events(), SizeIs(0));
}

}  // namespace
}  // namespace vigil::fleet::testing
