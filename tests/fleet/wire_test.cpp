// What links send, taken apart and put together again.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/run/token_transfer.h"
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

TEST_F(PatchPacking, CarriesWhatStandsOutIfSomebodySaid) {
  const auto sent = patch();
  ASSERT_NE(through(*sent), nullptr);
  EXPECT_FALSE(through(*sent)->standing_out);
  sent->encoded = mask({0, 7});
  sent->standing_out = mask({7, 9});
  const auto got = through(*sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->standing_out, sent->standing_out);
  EXPECT_EQ(got->pixels, sent->encoded) << "no pixel more";
  sent->standing_out = mask({});
  EXPECT_EQ(through(*sent)->standing_out, mask({})) << "that nothing does";
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

/// Three of a grid of 2 by 3, each number of which is another.
model::VisualTokensPtr tokens(bool is_half = false, std::initializer_list<int> cells = {0, 2, 5},
                              std::optional<base::GridMask> standing_out = std::nullopt) {
  model::VisualTokens made;
  made.standing_out = std::move(standing_out);
  made.dtype = is_half ? kernels::DType::bf16 : kernels::DType::f32;
  made.width = 4;
  made.kept = base::GridMask::none(2, 3);
  for (const int cell : cells) made.kept.add(cell);
  made.seconds = 12.5;
  made.duration = 1;
  made.intra = true;
  made.encoded = 2;
  std::vector<std::byte> numbers(made.bytes());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::byte>(i % 61);
  return run::host_tokens(std::move(made), numbers);
}

bool are_same(const model::VisualTokens& a, const model::VisualTokens& b) {
  return a.dtype == b.dtype && a.width == b.width && a.kept == b.kept && a.standing_out == b.standing_out &&
         a.seconds == b.seconds && a.duration == b.duration && a.intra == b.intra && a.encoded == b.encoded &&
         std::equal(a.embeddings.data(), a.embeddings.data() + a.bytes(), b.embeddings.data(),
                    b.embeddings.data() + b.bytes());
}

class TokenPacking : public ::testing::Test {
 protected:
  actors::VisualPatch patch() {
    actors::VisualPatch made;
    made.watch = {"gate", actors::version_of(7, 3)};
    made.tokens = tokens();
    made.frames = 2;
    made.captured = {clock_.now() - 800ms, clock_.wall() - 800ms};
    made.encoded = {clock_.now() - 90ms, clock_.now() - 20ms};
    made.generation = 2;
    made.sequence = 40;
    return made;
  }
  /// Through the bytes of a message, to a process with another clock.
  actors::VisualPatchPtr through(const actors::VisualPatch& sent, std::int64_t width = 4) {
    const auto frame = read(write(pack(sent, 9, clock_)));
    return frame ? unpack(std::get<PackedTokens>(*frame), width, other_) : nullptr;
  }
  TokenPacking() { other_.advance(77h); }

  actors::testing::ManualClock clock_, other_;
};

TEST_F(TokenPacking, CarriesEmbeddingsOfEitherTypeAndAllThatBelongsToThem) {
  for (const bool is_half : {false, true}) {
    actors::VisualPatch sent = patch();
    sent.tokens = tokens(is_half);
    const PackedTokens packed = pack(sent, 9, clock_);
    EXPECT_EQ(packed.form.session, 9U);
    EXPECT_EQ(packed.embeddings.at(0).data(), sent.tokens->embeddings.data()) << "without a copy";
    EXPECT_EQ(packed.embeddings.at(0).size(), is_half ? 24U : 48U);
    const auto got = through(sent);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->watch, sent.watch);
    EXPECT_TRUE(are_same(*got->tokens, *sent.tokens));
    EXPECT_EQ(got->whole, nullptr);
    EXPECT_FALSE(got->audit);
    EXPECT_EQ(got->frames, 2);
    EXPECT_EQ(got->generation, 2U);
    EXPECT_EQ(got->sequence, 40U);
    // As old there as it was here.
    EXPECT_EQ(other_.now() - got->captured.steady, clock_.now() - sent.captured.steady);
    EXPECT_EQ(got->captured.wall, sent.captured.wall);
    EXPECT_EQ(got->encoded.end - got->encoded.begin, 70ms);
    EXPECT_EQ(other_.now() - got->encoded.end, 20ms);
  }
}

TEST_F(TokenPacking, CarriesAPatchOfWhichNothingIsKept) {
  actors::VisualPatch sent = patch();
  sent.tokens = tokens(false, {});
  const auto got = through(sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->tokens->count(), 0);
  EXPECT_EQ(got->tokens->kept.cells(), 6);
}

TEST_F(TokenPacking, CarriesWhatStandsOutOfWhatIsKept) {
  const auto some = [](std::initializer_list<int> cells, std::int64_t height = 2, std::int64_t width = 3) {
    base::GridMask made = base::GridMask::none(height, width);
    for (const int cell : cells) made.add(cell);
    return made;
  };
  actors::VisualPatch sent = patch();
  EXPECT_FALSE(through(sent)->tokens->standing_out) << "nobody said";
  for (const base::GridMask& each : {some({}), some({2, 5}), some({0, 2, 5})}) {
    sent.tokens = tokens(false, {0, 2, 5}, each);
    const auto got = through(sent);
    ASSERT_NE(got, nullptr);
    EXPECT_TRUE(are_same(*got->tokens, *sent.tokens));
  }
  for (const base::GridMask& each : {some({1}), some({0}, 3, 2), some({0}, 2, 4)}) {
    sent.tokens = tokens(false, {0, 2, 5}, each);
    EXPECT_EQ(through(sent), nullptr) << "not of what is kept";
  }
  // Of another patch.
  sent.tokens = tokens(false, {0, 2, 5}, some({2}));
  PackedTokens packed = pack(sent, 9, clock_);
  packed.form.tokens.standing_out.cells = {5};
  EXPECT_EQ(unpack(packed, 4, clock_), nullptr);
  packed.form.tokens.has_standing_out = false;
  EXPECT_EQ(unpack(packed, 4, clock_), nullptr);
}

TEST_F(TokenPacking, CarriesTheTokensOfAnAuditOnceIfTheyAreTheSame) {
  actors::VisualPatch sent = patch();
  sent.audit = 16;
  sent.whole = sent.tokens;
  EXPECT_EQ(pack(sent, 9, clock_).embeddings.size(), 1U);
  auto got = through(sent);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->audit, 16.0);
  EXPECT_EQ(got->whole, got->tokens);
  sent.whole = tokens(false, {0, 1, 2, 3, 4, 5});
  got = through(sent);
  ASSERT_NE(got, nullptr);
  EXPECT_TRUE(are_same(*got->whole, *sent.whole));
  EXPECT_TRUE(are_same(*got->tokens, *sent.tokens));
}

TEST_F(TokenPacking, RefusesWhatDoesNotFit) {
  actors::VisualPatch sent = patch();
  sent.audit = 16;
  sent.whole = tokens(false, {0, 1, 2, 3, 4, 5});
  // With the sum as it would be, so that it is not what refuses it.
  const auto is_refused = [&](const auto& spoil) {
    PackedTokens packed = pack(sent, 9, clock_);
    spoil(packed);
    return unpack(packed, 4, clock_) == nullptr;
  };
  EXPECT_FALSE(is_refused([](PackedTokens&) {}));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.embeddings.pop_back(); }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.embeddings.push_back(x.embeddings[0]); }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { std::swap(x.embeddings[0], x.embeddings[1]); }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.embeddings[0] = x.embeddings[0].part(0, 47); }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.form.watch.camera = "yard"; })) << "another camera's";
  EXPECT_TRUE(is_refused([](PackedTokens& x) { ++x.form.sequence; }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.form.frames = 0; }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) { x.form.tokens.duration = 0; }));
  // Two tokens of half the width are as many bytes.
  EXPECT_TRUE(is_refused([](PackedTokens& x) {
    x.form.tokens.is_half = true;
    x.form.tokens.width = 8;
  }));
  EXPECT_TRUE(is_refused([](PackedTokens& x) {
    std::swap(x.form.tokens.kept.height, x.form.tokens.kept.width);
  })) << "of another grid";
  EXPECT_EQ(unpack(pack(sent, 9, clock_), 8, clock_), nullptr) << "of another model";
  EXPECT_NE(unpack(pack(sent, 9, clock_), 0, clock_), nullptr);
}

TEST_F(TokenPacking, RefusesWhatIsNoNumber) {
  for (const bool is_half : {false, true})
    for (const int exponent : {0x7f, 0xff}) {
      const auto good = tokens(is_half);
      std::vector<std::byte> numbers(good->embeddings.data(), good->embeddings.data() + good->bytes());
      // The last number: infinite, or none.
      numbers[numbers.size() - 1] = static_cast<std::byte>(exponent);
      numbers[numbers.size() - 2] = static_cast<std::byte>(0x80);
      model::VisualTokens shape;
      shape.dtype = good->dtype;
      shape.width = good->width;
      shape.kept = good->kept;
      shape.duration = 1;
      actors::VisualPatch sent = patch();
      sent.tokens = run::host_tokens(std::move(shape), numbers);
      EXPECT_EQ(through(sent), nullptr);
    }
}

TEST(LinkFrames, AreReadBackAsTheyWere) {
  actors::WatchSettings watch = *actors::testing::watch("gate", 5);
  const auto join = read(write(JoinFrame{watch, 3, "gpu"}));
  ASSERT_TRUE(join);
  EXPECT_EQ(std::get<JoinFrame>(*join).stream, "gpu");
  EXPECT_EQ(std::get<JoinFrame>(*join).watch, watch);
  EXPECT_EQ(std::get<JoinFrame>(*join).generation, 3U);
  EXPECT_EQ(std::get<SettingsFrame>(*read(write(SettingsFrame{watch}))).watch, watch);
  const auto end = read(write(EndFrame{"gate", "gpu"}));
  EXPECT_EQ(std::get<EndFrame>(*end).camera, "gate");
  EXPECT_EQ(std::get<EndFrame>(*end).stream, "gpu");
  const auto moved = read(write(MovedFrame{"gate", "gpu"}));
  EXPECT_EQ(std::get<MovedFrame>(*moved).camera, "gate");
  EXPECT_EQ(std::get<MovedFrame>(*moved).stream, "gpu");
  const auto tokens = read(write(TokensJoinFrame{watch, 8, "cam"}));
  ASSERT_TRUE(tokens);
  EXPECT_EQ(std::get<TokensJoinFrame>(*tokens).watch, watch);
  EXPECT_EQ(std::get<TokensJoinFrame>(*tokens).session, 8U);
  EXPECT_EQ(std::get<TokensJoinFrame>(*tokens).owner, "cam");
  EXPECT_EQ(std::get<TokensSettingsFrame>(*read(write(TokensSettingsFrame{watch}))).watch, watch);
  const auto over = read(write(TokensEndFrame{"gate", 8}));
  EXPECT_EQ(std::get<TokensEndFrame>(*over).camera, "gate");
  EXPECT_EQ(std::get<TokensEndFrame>(*over).session, 8U);
  const auto stays = read(write(TokensMovedFrame{"gate", 9}));
  EXPECT_EQ(std::get<TokensMovedFrame>(*stays).camera, "gate");
  EXPECT_EQ(std::get<TokensMovedFrame>(*stays).session, 9U);
}

TEST(LinkFrames, ThatAreNoneAreRefused) {
  const cluster::BulkMessage good = write(EndFrame{"gate", "gpu"});
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({"E", {}}));
  EXPECT_FALSE(read({"X", good.parts}));
  EXPECT_FALSE(read({"EE", good.parts}));
  EXPECT_FALSE(read({"J", good.parts}));
  EXPECT_FALSE(read({"E", {good.parts[0], good.parts[0]}})) << "more than there is to be";
  EXPECT_FALSE(read({"e", write(EndFrame{"gate", "gpu-1"}).parts})) << "no session";
  EXPECT_FALSE(read({"E", {good.parts[0].part(0, good.parts[0].size() - 1)}}));
}

TEST(LinkFrames, OfRandomBytesAreRefusedOrSound) {
  std::mt19937 random(7);
  const cluster::BulkMessage join = write(JoinFrame{*actors::testing::watch("gate", 5), 3, "gpu"});
  const actors::testing::ManualClock clock;
  actors::VisualPatch patch;
  patch.watch = {"gate", 5};
  patch.tokens = tokens();
  patch.frames = 2;
  const cluster::BulkMessage packed = write(pack(patch, 9, clock));
  for (int i = 0; i < 20'000; ++i) {
    const cluster::BulkMessage& good = i % 2 == 0 ? join : packed;
    std::string bytes(good.parts[0].text());
    for (unsigned change = 0; change <= random() % 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    std::vector<cluster::Bytes> parts = {cluster::Bytes(bytes)};
    parts.insert(parts.end(), good.parts.begin() + 1, good.parts.end());
    const auto frame = read({good.header, parts});
    if (!frame) continue;
    EXPECT_TRUE(read(write(*frame)));
    const auto* const tokens = std::get_if<PackedTokens>(&*frame);
    const auto whole = tokens != nullptr ? unpack(*tokens, 4, clock) : nullptr;
    if (whole) {
      EXPECT_EQ(whole->tokens->bytes(), whole->tokens->embeddings.bytes());
    }
  }
}

}  // namespace
}  // namespace vigil::fleet
