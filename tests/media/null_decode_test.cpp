#include "media/null_decode.h"

#include <gtest/gtest.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

TEST(NullDecode, DecodesEveryFrameOnce) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 37;
  clip.b_frames = 2;
  write_clip(scratch / "clip.mp4", clip);
  ASSERT_EQ(oracle_decode(scratch / "clip.mp4").size(), 37U);
  EXPECT_EQ(null_decode(scratch / "clip.mp4", 1, false), 37U);
  EXPECT_EQ(null_decode(scratch / "clip.mp4", 2, true), 37U);
}

TEST(NullDecode, NamesWhatCannotBeDecoded) {
  const Scratch scratch;
  EXPECT_THROW(null_decode(scratch / "none.mp4", 1, false), Error);
  write_bytes(scratch / "text.txt", "no video");
  try {
    null_decode(scratch / "text.txt", 1, false);
    ADD_FAILURE() << "a text was decoded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("text.txt"), std::string::npos);
  }
}

}  // namespace
}  // namespace vigil::media
