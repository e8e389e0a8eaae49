// Where the cameras of a node are computed, from one of its plans to the next.
#include "fleet/node/place_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {

void PrintTo(const PlaceBook::Left& left, std::ostream* out) {
  *out << left.camera << " at " << left.device << (left.stream_stays ? ", whose stream stays" : "");
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Left = PlaceBook::Left;

cluster::PlannedCamera at(const std::string& node, const std::string& former = "", cluster::Fence fence = 0) {
  cluster::PlannedCamera camera;
  camera.vision = camera.stream = node;
  camera.former_stream = former;
  camera.stream_fence = fence;
  return camera;
}

cluster::PlannedCamera refused(const std::string& why) {
  cluster::PlannedCamera camera;
  camera.rung = cluster::kRefused;
  camera.why_rung = why;
  return camera;
}

TEST(PlaceBook, ACameraThatMovesLeavesWhereItIsNotAnyMore) {
  PlaceBook book;
  EXPECT_THAT(book.follow({{"gate", at("g1")}}), IsEmpty());
  EXPECT_THAT(book.follow({{"gate", at("g2", "g1", 7)}}), IsEmpty()) << "the former goes on";
  EXPECT_EQ(book.places().at("gate"), (Place{"g2", "g1", 7}));
  EXPECT_THAT(book.follow({{"gate", at("g2", "", 7)}}), ElementsAre(Left{"g1", "gate"}));
  EXPECT_THAT(book.follow({{"gate", at("g3")}}), ElementsAre(Left{"g2", "gate"}));
  EXPECT_THAT(book.follow({}), IsEmpty()) << "its next owner goes on with it";
  EXPECT_THAT(book.places(), IsEmpty());
}

TEST(PlaceBook, ATowerIsLeftWhenTheNextOneEncodes) {
  PlaceBook book;
  cluster::PlannedCamera camera = at("s1");
  camera.vision = "v1";
  book.follow({{"gate", camera}});
  camera.vision = "v2";
  camera.former_stream = "s1";
  camera.former_vision = "v1";
  EXPECT_THAT(book.follow({{"gate", camera}}), IsEmpty());
  EXPECT_EQ(book.places().at("gate").former, "v1>s1");
  EXPECT_TRUE(book.places().at("gate").has_same_stream());
  camera.former_stream = camera.former_vision = "";
  EXPECT_THAT(book.follow({{"gate", camera}}), ElementsAre(Left{"v1>s1", "gate", true}));
  EXPECT_FALSE(book.places().at("gate").has_same_stream());
}

TEST(PlaceBook, ACameraThatGoesWhileItsTowerMovesLeavesTheFormerOne) {
  PlaceBook book;
  cluster::PlannedCamera camera = at("s1", "s1", 7);
  camera.vision = "v2";
  camera.former_vision = "v1";
  book.follow({{"gate", camera}});
  EXPECT_THAT(book.follow({}), ElementsAre(Left{"v1>s1", "gate", true}))
      << "the camera ends, or goes on, at the other one";
}

TEST(PlaceBook, ACameraThatIsRefusedLeavesAllThatComputesIt) {
  PlaceBook book;
  book.follow({{"gate", at("g2", "g1", 7)}, {"yard", at("g2")}});
  EXPECT_THAT(book.follow({{"gate", refused("refused: no room")}, {"yard", at("g2")}}),
              ElementsAre(Left{"g2", "gate"}, Left{"g1", "gate"}));
  EXPECT_EQ(book.places().at("gate").device, "");
  EXPECT_EQ(book.places().at("yard").device, "g2");
  EXPECT_THAT(book.follow({{"gate", refused("refused: no room")}, {"yard", at("g2")}}), IsEmpty()) << "once";
  EXPECT_THAT(book.follow({{"gate", at("g1")}, {"yard", at("g2")}}), IsEmpty());
  EXPECT_EQ(book.places().at("gate").device, "g1") << "it is admitted again";
}

TEST(PlaceBook, ACameraThatThereIsNoPlaceForStaysWhereItIs) {
  PlaceBook book;
  book.follow({{"gate", at("")}});
  EXPECT_EQ(book.places().at("gate").device, "") << "it has never had one";
  book.follow({{"gate", at("g2", "g1", 7)}});
  EXPECT_THAT(book.follow({{"gate", at("")}}), IsEmpty());
  EXPECT_EQ(book.places().at("gate"), (Place{"g2", "g1", 7}));
  EXPECT_THAT(book.follow({{"gate", at("g3")}}), ElementsAre(Left{"g2", "gate"}, Left{"g1", "gate"}))
      << "nothing is left there that nobody would ever end";
  cluster::PlannedCamera half = at("g3");
  half.vision.clear();
  EXPECT_THAT(book.follow({{"gate", half}}), IsEmpty()) << "it has a stream, and nobody encodes for it";
  EXPECT_EQ(book.places().at("gate").device, "g3");
}

TEST(PlaceBook, ARefusalHasAReason) {
  EXPECT_EQ(refusal_of(at("g1")), "");
  EXPECT_EQ(refusal_of(at("")), "") << "for that there is just no place";
  EXPECT_EQ(refusal_of(refused("refused: no room")), "refused: no room");
  EXPECT_EQ(refusal_of(refused("")), "refused");
  cluster::PlannedCamera lowered = at("g1");
  lowered.rung = "fewer frames";
  lowered.why_rung = "fewer frames: no room";
  EXPECT_EQ(refusal_of(lowered), "");
}

}  // namespace
}  // namespace vigil::fleet
