// Whose series are wanted, held and lost.
#include "actors/alerts/series_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using Claim = SeriesClaims::Claim;
using Entry = SeriesClaims::Entry;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

SeriesBooks books(const std::string& camera, std::uint64_t fence) {
  return {camera, fence, 0, 0, {}, {}};
}

TEST(SeriesClaims, AreMadeWhenThereIsSomethingToTellAndOnceATenure) {
  SeriesClaims claims;
  EXPECT_EQ(claims.enter("gate", 7), Entry::wait);
  EXPECT_THAT(claims.take(), IsEmpty());
  claims.want("gate");
  claims.want("gate");
  EXPECT_THAT(claims.take(), ElementsAre(Claim{"gate", 7}));
  claims.want("gate");
  EXPECT_THAT(claims.take(), IsEmpty()) << "it was asked for";
  EXPECT_FALSE(claims.holds("gate"));
  claims.hold("gate", 7);
  EXPECT_TRUE(claims.holds("gate"));
  EXPECT_EQ(claims.enter("gate", 7), Entry::go);
  EXPECT_EQ(claims.enter("gate", 6), Entry::go) << "what was under way when the tenure began";
  claims.want("gate");
  EXPECT_THAT(claims.take(), IsEmpty());
}

TEST(SeriesClaims, AHigherFenceIsAnotherTenure) {
  SeriesClaims claims;
  claims.enter("gate", 7);
  claims.hold("gate", 7);
  EXPECT_EQ(claims.enter("gate", 9), Entry::wait);
  EXPECT_FALSE(claims.holds("gate"));
  EXPECT_EQ(claims.former("gate"), 7U);
  claims.want("gate");
  EXPECT_EQ(claims.enter("gate", 10), Entry::wait);
  claims.want("gate");
  EXPECT_THAT(claims.take(), ElementsAre(Claim{"gate", 10})) << "of claims that nobody took, the last counts";
}

TEST(SeriesClaims, TakeTheBooksThatWereAskedForAlone) {
  SeriesClaims claims;
  EXPECT_FALSE(claims.fits(books("gate", 7))) << "of a camera that nobody knows";
  claims.enter("gate", 7);
  EXPECT_FALSE(claims.fits(books("gate", 7))) << "not wanted";
  claims.want("gate");
  EXPECT_FALSE(claims.fits(books("gate", 6)));
  EXPECT_FALSE(claims.fits(books("gate", 8)));
  EXPECT_FALSE(claims.fits(books("yard", 7)));
  EXPECT_TRUE(claims.fits(books("gate", 7)));
  claims.hold("gate", 7);
  EXPECT_FALSE(claims.fits(books("gate", 7))) << "twice";
}

TEST(SeriesClaims, OfTheProcessOnlyItsBooksKnowTheFence) {
  SeriesClaims claims;
  claims.want("");
  EXPECT_THAT(claims.take(), ElementsAre(Claim{"", 0}));
  EXPECT_TRUE(claims.fits(books("", 12)));
  claims.hold("", 12);
  EXPECT_FALSE(claims.fits(books("", 12)));
  EXPECT_FALSE(claims.fits(books("", 11)));
  EXPECT_TRUE(claims.fits(books("", 15))) << "its record was put again";
}

TEST(SeriesClaims, WhatIsLostStaysSoUntilAHigherFence) {
  SeriesClaims claims;
  claims.enter("gate", 7);
  claims.want("gate");
  EXPECT_TRUE(claims.lose("gate", 7));
  EXPECT_THAT(claims.take(), IsEmpty());
  EXPECT_EQ(claims.enter("gate", 7), Entry::gone);
  claims.want("gate");
  EXPECT_THAT(claims.take(), IsEmpty());
  EXPECT_FALSE(claims.fits(books("gate", 7)));
  EXPECT_EQ(claims.enter("gate", 9), Entry::wait);
  EXPECT_FALSE(claims.lose("gate", 7)) << "another tenure has begun";
  EXPECT_EQ(claims.enter("gate", 9), Entry::wait);
  EXPECT_TRUE(claims.lose("unknown", 3));
  EXPECT_EQ(claims.enter("unknown", 2), Entry::gone);
}

TEST(SeriesClaims, WhatWasNotedIsTheFormerTenureOfAProcessThatStarts) {
  SeriesClaims claims;
  claims.remember("gate", 7);
  claims.enter("gate", 9);
  EXPECT_EQ(claims.former("gate"), 7U);
  EXPECT_EQ(claims.former("yard"), 0U);
  claims.hold("gate", 9);
  claims.remember("gate", 7);
  EXPECT_EQ(claims.former("gate"), 9U);
}

TEST(SeriesClaims, WhatAProcessBeforeLeftIsWantedUnderItsFenceUntilTheCameraIsHereAgain) {
  SeriesClaims claims;
  claims.want_former("gate");
  EXPECT_THAT(claims.take(), IsEmpty()) << "nothing was noted";
  for (const char* camera : {"gate", "yard", "roof"}) claims.remember(camera, 7);
  claims.enter("roof", 9);
  for (const char* camera : {"gate", "yard", "roof", ""}) claims.want_former(camera);
  EXPECT_THAT(claims.take(), ElementsAre(Claim{"gate", 7}, Claim{"yard", 7})) << "the roof is here already";
  EXPECT_TRUE(claims.fits(books("gate", 7)));
  claims.hold("gate", 7);
  // It was in the plan all along: whoever goes on with it needs its books.
  EXPECT_EQ(claims.enter("gate", 7), Entry::wait);
  claims.want("gate");
  EXPECT_THAT(claims.take(), ElementsAre(Claim{"gate", 7}));
  claims.hold("gate", 7);
  EXPECT_EQ(claims.enter("gate", 7), Entry::go) << "once";
  EXPECT_TRUE(claims.lose("yard", 7));
  EXPECT_EQ(claims.enter("yard", 7), Entry::gone);
  EXPECT_EQ(claims.enter("yard", 8), Entry::wait);
}

TEST(SeriesClaims, InDoubtAllThatIsHeldIsClaimedAnew) {
  SeriesClaims claims;
  for (const char* camera : {"gate", "yard", "roof"}) claims.enter(camera, 7);
  claims.hold("gate", 7);
  claims.hold("yard", 8);
  claims.doubt();
  EXPECT_FALSE(claims.holds("gate"));
  EXPECT_THAT(claims.take(), UnorderedElementsAre(Claim{"gate", 7}, Claim{"yard", 8}));
  EXPECT_EQ(claims.former("yard"), 8U);
  EXPECT_TRUE(claims.fits(books("gate", 7)));
}

}  // namespace
}  // namespace vigil::actors
