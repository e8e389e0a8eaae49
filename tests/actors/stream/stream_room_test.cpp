#include "actors/stream/stream_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

TEST(StreamRoom, TellsOnceWhenThereIsNoRoomAndAgainWhenThereHadBeenSome) {
  StreamRoom room;
  EXPECT_EQ(room.hear("a", 400, 1000), std::nullopt);
  EXPECT_EQ(room.hear("b", 600, 1000), std::nullopt) << "exactly";
  EXPECT_EQ(
      room.hear("a", 401, 1000),
      "with it, streams want to keep 1001 tokens between windows, of 2 cameras, and there is room for 1000 "
      "beside texts: some windows will be computed whole; raise engine.kv_tokens, or set pruning.kv_budget");
  EXPECT_EQ(room.hear("a", 500, 1000), std::nullopt);
  EXPECT_EQ(room.hear("b", 700, 1000), std::nullopt) << "of whatever camera";
  EXPECT_EQ(room.hear("b", 450, 1000), std::nullopt) << "there is room again, but hardly any";
  EXPECT_EQ(room.hear("b", 600, 1000), std::nullopt);
  EXPECT_EQ(room.hear("b", 400, 1000), std::nullopt) << "there is room again";
  EXPECT_THAT(room.hear("b", 600, 1000), Optional(HasSubstr("keep 1100 tokens")));
}

TEST(StreamRoom, WhoKeepsNothingCountsForNothing) {
  StreamRoom room;
  room.hear("a", 900, 1000);
  room.forget("a");
  room.forget("nobody");
  EXPECT_EQ(room.hear("b", 900, 1000), std::nullopt);
  EXPECT_THAT(room.hear("a", 200, 1000), Optional(HasSubstr("of 2 cameras")));
  room.forget("a");
  EXPECT_EQ(room.hear("b", 900, 1000), std::nullopt);
  EXPECT_THAT(room.hear("b", 1001, 1000), Optional(HasSubstr("of 1 camera,")));
}

}  // namespace
}  // namespace vigil::actors
