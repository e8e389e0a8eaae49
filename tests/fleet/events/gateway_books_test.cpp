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

TEST_F(GatewayBooksTest, ACommitOfAMakerThatDoesNotSayWhatItIsTakesWhatIsStaged) {
  one_.desk->answer(offer("body"));
  MakerTalk talk = this->talk(one_);
  talk.commits = {{"c", 1, {{{{kRule, 1, 0}}, false}}}};
  EXPECT_EQ(one_.desk->answer(talk).commits.at(0).verdict, SeriesVerdict::done);
  EXPECT_THAT(one_.events(), ElementsAre(std::string(kRule) + "1body"));
}

TEST_F(GatewayBooksTest, WhatAMakerSentBeforeAndComesAfterIsNotTaken) {
  MakerTalk old = offer("old"), now = offer("new");
  old.number = 7;
  now.number = 8;
  one_.desk->answer(now);
  EXPECT_EQ(one_.desk->answer(old).verdict, TalkVerdict::away);
  ASSERT_NE(one_.desk->books().staged(kRule, 1), nullptr);
  EXPECT_EQ(one_.desk->books().staged(kRule, 1)->body, "new");
  // The same once more means what it meant; another run of the maker counts anew.
  EXPECT_EQ(one_.desk->answer(now).verdict, TalkVerdict::heard);
  MakerTalk again = talk(one_);
  again.session = "s2";
  again.number = 1;
  again.claims = {{"c", 1}};
  EXPECT_EQ(one_.desk->answer(again).verdict, TalkVerdict::heard);
}

TEST_F(GatewayBooksTest, ACopyOfWhatAnotherOneHasDoesNotReplaceWhatTheMakerSaidSince) {
  one_.desk->answer(offer("new"));
  SeriesCopy copy;
  copy.series = "c";
  copy.staged = {{1, {kRule, 1, 0, "old", 1}}};
  one_.desk->take({copy}, /*with_notes=*/false);
  ASSERT_NE(one_.desk->books().staged(kRule, 1), nullptr);
  EXPECT_EQ(one_.desk->books().staged(kRule, 1)->body, "new");
}

}  // namespace
}  // namespace vigil::fleet::testing
