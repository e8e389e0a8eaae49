// What links send, taken apart and put together again.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/wire/link_frames.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;

constexpr int kSide = 4;

/// Two frames of 3 by 5 groups, each pixel of which is another.
std::shared_ptr<actors::FramePatch> patch() {
  auto made = std::make_shared<actors::FramePatch>();
  made->watch = {"gate", actors::version_of(7, 3)};
  made->seconds = 12.5;
  made->duration = 1;
  made->sequence = 40;
  made->generation = 2;
  for (int i = 0; i < 2; ++i) {
    auto image = std::make_shared<media::Image>();
    image->size = {5 * kSide, 3 * kSide};
    image->rgb.resize(static_cast<std::size_t>(image->size.width * image->size.height) * 3);
    for (std::size_t j = 0; j < image->rgb.size(); ++j)
      image->rgb[j] = static_cast<std::uint8_t>(1 + (j * 7 + static_cast<std::size_t>(i)) % 255);
    media::SampledFrame frame;
    frame.image = std::move(image);
    frame.type = i == 1 ? media::FrameType::intra : media::FrameType::unknown;
    made->frames.push_back(std::move(frame));
  }
  return made;
}

base::GridMask mask(std::initializer_list<int> cells) {
  base::GridMask made = base::GridMask::none(3, 5);
  for (const int cell : cells) made.add(cell);
  return made;
}

class PatchPacking : public ::testing::Test {
 protected:
  /// Through the bytes of a message and back.
  actors::FramePatchPtr through(const actors::FramePatch& sent) {
    const auto frame = read(write(pack(sent, kSide, clock_)));
    return frame ? unpack(std::get<PackedPatch>(*frame), kSide, clock_) : nullptr;
  }
  static std::size_t bytes(const PackedPatch& packed) {
    std::size_t sum = 0;
    for (const cluster::Bytes& part : packed.frames) sum += part.size();
    return sum;
  }
  static std::uint8_t pixel(const actors::FramePatch& of, std::size_t frame, int y, int x) {
    const media::Image& image = *of.frames[frame].image;
    return image.rgb[static_cast<std::size_t>(y * image.size.width + x) * 3 + 1];
  }

  actors::testing::ManualClock clock_;
};

TEST_F(PatchPacking, CarriesAWholePatchWithoutACopy) {
  const auto sent = patch();
  const PackedPatch packed = pack(*sent, kSide, clock_);
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(packed.frames[0].data()),
            sent->frames[0].image->rgb.data());
  const auto got = through(*sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->watch, sent->watch);
  EXPECT_EQ(got->sequence, 40U);
  EXPECT_EQ(got->seconds, 12.5);
  EXPECT_FALSE(got->pixels);
  EXPECT_EQ(got->frames[0].image->rgb, sent->frames[0].image->rgb);
  EXPECT_EQ(got->frames[1].image->rgb, sent->frames[1].image->rgb);
  EXPECT_TRUE(std::any_of(got->frames.begin(), got->frames.end(), [](const media::SampledFrame& frame) {
    return frame.type == media::FrameType::intra;
  }));
}

TEST_F(PatchPacking, CarriesTheChosenGroupsAndNoOtherPixel) {
  const auto sent = patch();
  sent->encoded = mask({0, 7, 14});
  sent->kept = mask({0, 1, 2, 7, 14});
  const PackedPatch packed = pack(*sent, kSide, clock_);
  EXPECT_EQ(bytes(packed), std::size_t{2 * 3 * kSide * kSide * 3});
  const auto got = through(*sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->encoded, sent->encoded);
  EXPECT_EQ(got->kept, sent->kept);
  EXPECT_EQ(got->pixels, sent->encoded);
  for (std::size_t frame = 0; frame < 2; ++frame)
    for (int y = 0; y < 3 * kSide; ++y)
      for (int x = 0; x < 5 * kSide; ++x) {
        const int group = y / kSide * 5 + x / kSide;
        EXPECT_EQ(pixel(*got, frame, y, x), sent->encoded->has(group) ? pixel(*sent, frame, y, x) : 0)
            << y << ' ' << x;
      }
}

TEST_F(PatchPacking, CarriesNoPixelOfAPatchInWhichNothingChanged) {
  const auto sent = patch();
  sent->encoded = mask({});
  sent->kept = mask({1});
  EXPECT_EQ(bytes(pack(*sent, kSide, clock_)), 0U);
  const auto got = through(*sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->pixels->count(), 0);
}

TEST_F(PatchPacking, CarriesAllOfAnAuditedPatch) {
  const auto sent = patch();
  sent->encoded = mask({3});
  sent->audit = 16.0;
  const auto got = through(*sent);
  ASSERT_NE(got, nullptr);
  EXPECT_FALSE(got->pixels);
  EXPECT_EQ(got->encoded, sent->encoded);
  EXPECT_EQ(got->frames[1].image->rgb, sent->frames[1].image->rgb);
}

TEST_F(PatchPacking, RefusesPixelsThatDoNotFitTheirForm) {
  const auto sent = patch();
  sent->encoded = mask({0, 7});
  const auto refused = [&](const auto& spoil) {
    PackedPatch packed = pack(*sent, kSide, clock_);
    spoil(packed);
    return unpack(packed, kSide, clock_) == nullptr;
  };
  EXPECT_FALSE(refused([](PackedPatch&) {}));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.frames.pop_back(); }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.frames[0] = x.frames[0].part(0, x.frames[0].size() - 1); }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.width += kSide; }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.width = -x.form.width; }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.width = x.form.height = 1 << 30; }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.pixels.cells.push_back(15); })) << "beyond the grid";
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.pixels.cells.pop_back(); }));
  EXPECT_TRUE(refused([](PackedPatch& x) { x.form.has_pixels = false; }));
  EXPECT_TRUE(refused([](PackedPatch& x) {
    x.frames.clear();
    x.form.frames = 0;
  }));
}

TEST(LinkFrames, AreReadBackAsTheyWere) {
  actors::WatchSettings watch = *actors::testing::watch("gate", 5);
  const auto join = read(write(JoinFrame{watch, 3}));
  ASSERT_TRUE(join);
  EXPECT_EQ(std::get<JoinFrame>(*join).watch, watch);
  EXPECT_EQ(std::get<JoinFrame>(*join).generation, 3U);
  EXPECT_EQ(std::get<SettingsFrame>(*read(write(SettingsFrame{watch}))).watch, watch);
  EXPECT_EQ(std::get<EndFrame>(*read(write(EndFrame{"gate"}))).camera, "gate");
}

TEST(LinkFrames, ThatAreNoneAreRefused) {
  const cluster::BulkMessage good = write(EndFrame{"gate"});
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({"E", {}}));
  EXPECT_FALSE(read({"X", good.parts}));
  EXPECT_FALSE(read({"EE", good.parts}));
  EXPECT_FALSE(read({"J", good.parts}));
  EXPECT_FALSE(read({"E", {good.parts[0], good.parts[0]}})) << "more than there is to be";
  EXPECT_FALSE(read({"E", {good.parts[0].part(0, good.parts[0].size() - 1)}}));
}

TEST(LinkFrames, OfRandomBytesAreRefusedOrSound) {
  std::mt19937 random(7);
  const cluster::BulkMessage good = write(JoinFrame{*actors::testing::watch("gate", 5), 3});
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(good.parts[0].text());
    for (unsigned change = 0; change <= random() % 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto frame = read({good.header, {cluster::Bytes(bytes)}});
    if (frame) {
      EXPECT_TRUE(read(write(*frame)));
    }
  }
}

}  // namespace
}  // namespace vigil::fleet
