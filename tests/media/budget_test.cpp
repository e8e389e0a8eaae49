// What a few bytes of a source can ask for, and what they get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/decoder.h"
#include "media/frame_budget.h"
#include "media/packet_history.h"
#include "media/packet_reader.h"
#include "tests/media/clip.h"

namespace vigil::media {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// 16 references of half a million pixels each.
Clip hungry() {
  Clip clip;
  clip.size = {1024, 512};
  clip.frames = 40;
  clip.gop = 100;
  clip.options = {{"x264-params", "ref=16:bframes=0:scenecut=0:subme=1"}, {"level", "6.2"}};
  return clip;
}

/// Of a picture of it: 8 bits, 4:2:0, and what H.264 keeps beside it.
constexpr std::size_t kPicture = std::size_t{1024} * 512 * 9 / 4;

TEST(FrameBudget, APictureThatIsTooMuchEndsTheSource) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", hungry());
  ReadOptions options;
  options.motion = false;
  for (const int threads : {1, 4}) {
    options.threads = threads;
    options.decoder_memory = 8 * kPicture;
    EXPECT_THAT(error_of(scratch / "a.mp4", options),
                AllOf(testing::StartsWith(scratch / "a.mp4: "), HasSubstr("1024x512"),
                      HasSubstr("9 MiB of `decoder_memory`")))
        << threads;
    // References, what is decoded, shown and scaled at once, and one for each thread.
    options.decoder_memory = static_cast<std::size_t>(22 + 2 * threads) * kPicture;
    EXPECT_EQ(error_of(scratch / "a.mp4", options), "") << threads;
  }
  options.decoder_memory = 1;
  EXPECT_THAT(error_of(scratch / "a.mp4", options), HasSubstr("0 MiB of `decoder_memory`"));
}

TEST(FrameBudget, CountsPicturesAsLongAsAnybodyHoldsThem) {
  std::vector<Frame> held;
  {
    FrameBudget budget(4 * kPicture);
    const AVCodec* codec = avcodec_find_decoder(AV_CODEC_ID_H264);
    const CodecContext context = allocated(CodecContext(avcodec_alloc_context3(codec)));
    ASSERT_GE(avcodec_open2(context.get(), codec, nullptr), 0);
    const auto make = [&] {
      Frame frame = make_frame();
      frame->format = context->pix_fmt = AV_PIX_FMT_YUV420P;
      frame->width = context->width = 1024;
      frame->height = context->height = 512;
      const int code = budget.make(*context, *frame, 0);
      if (code >= 0) held.push_back(std::move(frame));
      return code;
    };
    for (std::size_t i = 1; i <= 4; ++i) {
      ASSERT_GE(make(), 0);
      EXPECT_EQ(budget.held(), i * kPicture);
    }
    const Frame another(av_frame_clone(held.back().get()));
    held.pop_back();
    EXPECT_EQ(budget.held(), 4 * kPicture) << "it has a holder yet";
    EXPECT_FALSE(budget.exceeded());
    EXPECT_EQ(make(), AVERROR(ENOMEM));
    EXPECT_TRUE(budget.exceeded());
    EXPECT_EQ(budget.held(), 4 * kPicture);
    EXPECT_THAT(budget.reason(), HasSubstr("1024x512"));
  }
  // Frames outlive who made them.
  EXPECT_NE(held.front()->data[0], nullptr);
}

TEST(FrameBudget, AStillHasOneToo) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", hungry());
  const auto still_with = [&](std::size_t memory) {
    ReadOptions options;
    options.history = std::make_shared<PacketHistory>(PacketHistory::Limits{});
    options.decoder_memory = memory;
    // Its packets are read and not decoded.
    const auto reader = PacketReader::open(scratch / "a.mp4", options);
    while (const auto packet = reader->next()) options.history->anchor(packet->timestamp, packet->seconds);
    return options.history->cut({0, 2, 1}).still(1);
  };
  EXPECT_EQ(still_with(24 * kPicture).image.size, (Size{1024, 512}));
  EXPECT_THROW(still_with(kPicture / 2), Error);
}

TEST(FrameBudget, APictureBeyondAllCamerasIsNotDecoded) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "mjpeg";
  clip.format = AV_PIX_FMT_YUVJ420P;
  clip.frames = 2;
  clip.container = "avi";
  write_clip(scratch / "a.avi", clip);
  // The pictures' own headers: start of frame, its length, 8 bits, and then height and width.
  std::string bytes = read_bytes(scratch / "a.avi");
  int changed = 0;
  for (std::size_t at = bytes.find("\xff\xc0"); at != std::string::npos;
       at = bytes.find("\xff\xc0", at + 1)) {
    bytes.replace(at + 5, 4, std::string("\x20\x00\x40\x00", 4));
    ++changed;
  }
  ASSERT_EQ(changed, 2);
  write_bytes(scratch / "b.avi", bytes);
  EXPECT_NE(error_of(scratch / "b.avi"), "");
}

}  // namespace
}  // namespace vigil::media
