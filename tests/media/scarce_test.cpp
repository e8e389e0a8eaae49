// Where FFmpeg calls us and memory is out: it is told so, and nothing is thrown through it.
#include "tests/media/scarce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

extern "C" {
#include <libavutil/log.h>
#include <libavutil/mem.h>
}

#include "media/frame_budget.h"
#include "media/gate.h"
#include "media/log_capture.h"

namespace vigil::media {
namespace {

/// What memory is asked for in: a text this long does not fit into a string itself.
constexpr const char* kLong = "rtsp://viewer:hunter2@camera-of-the-north-gate.example/live";

TEST(Scarce, APictureIsRefused) {
  FrameBudget budget(1 << 30);
  const AVCodec* codec = avcodec_find_decoder(AV_CODEC_ID_H264);
  const CodecContext context = allocated(CodecContext(avcodec_alloc_context3(codec)));
  ASSERT_GE(avcodec_open2(context.get(), codec, nullptr), 0);
  const Frame frame = make_frame();
  frame->format = context->pix_fmt = AV_PIX_FMT_YUV420P;
  frame->width = context->width = 64;
  frame->height = context->height = 64;
  const auto make = [&] { return budget.make(*context, *frame, 0); };
  int code = 0;
  EXPECT_NO_THROW({
    const NoMemory none;
    code = make();
  });
  EXPECT_EQ(code, AVERROR(ENOMEM));
  EXPECT_EQ(frame->buf[0], nullptr);
  EXPECT_EQ(budget.held(), 0U);
  EXPECT_FALSE(budget.exceeded()) << "it was not the picture that was too large";
  EXPECT_GE(make(), 0);
  EXPECT_GT(budget.held(), 0U);
}

TEST(Scarce, ARedirectIsNotFollowed) {
  Interrupt interrupt({});
  Gate gate({}, interrupt);
  const InputContext format = allocated(InputContext(avformat_alloc_context()));
  gate.guard(*format, {kLong, nullptr, "tcp", "rtsp", false, true});
  format->url = av_strdup(kLong);
  EXPECT_NO_THROW({
    const NoMemory none;
    Gate::on_rtsp_redirect(*format);
  });
  EXPECT_STREQ(format->protocol_whitelist, "");
}

TEST(Scarce, ALineOfTheLogIsLost) {
  const LogCapture log;
  EXPECT_NO_THROW({
    const NoMemory none;
    av_log(nullptr, AV_LOG_ERROR, "%s\n", kLong);
  });
  EXPECT_EQ(log.first_error(), "");
  av_log(nullptr, AV_LOG_ERROR, "it goes on\n");
  EXPECT_EQ(log.first_error(), "it goes on");
}

}  // namespace
}  // namespace vigil::media
