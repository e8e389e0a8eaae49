// Tokens that leave the pages of a model and come back, whatever shares the model.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "engine/run/cached_model.h"
#include "engine/run/stream_token_mover.h"
#include "kernels/device/dtype.h"
#include "kernels/packed_kv/packed_kv.h"
#include "kernels/random/random.h"
#include "tests/engine/made_up_model.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/test_matrix.h"

namespace vigil::run {
namespace {

using kv::Form;

constexpr int kHeads = 6, kLayers = 3, kDim = 20;

std::vector<kernels::Stream> a_stream_each(int ranks) {
  std::vector<kernels::Stream> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.push_back(kernels::tests_on_gpu() ? kernels::Stream::cuda(rank) : kernels::Stream::cpu(1));
  return streams;
}

/// A model whose pages are full of numbers that depend on layer, head, token and element alone.
struct Moved {
  CachedModel model;
  std::vector<kernels::Stream> streams;
  StreamTokenMover mover;
  kernels::HostMemory memory;
  std::vector<std::vector<std::byte>> pages;

  explicit Moved(int ranks, kernels::DType type = kernels::DType::bf16)
      : model(stream::testing::made_up_model(kLayers),
              {.memory = a_stream_each(ranks), .compute = type, .kv_tokens = 256, .page_tokens = 8}),
        streams(a_stream_each(ranks)),
        mover(model, streams),
        memory(streams.front(), std::uint64_t{64} << 20U) {
    for (std::size_t rank = 0; rank < model.parts.size(); ++rank) {
      const kv::PageStore& store = model.parts[rank]->pages;
      const auto size = static_cast<std::size_t>(store.pages() * store.layout().page_bytes());
      std::vector<std::byte>& bytes = pages.emplace_back(size);
      for (int layer = 0; layer < kLayers; ++layer)
        for (std::int32_t slot = 0; slot < 256; ++slot)
          for (int head = 0; head < store.layout().kv_heads; ++head)
            for (int element = 0; element < 2 * kDim; ++element)
              put(bytes, rank, layer, slot, head, element,
                  number(layer, slot, static_cast<int>(rank) * store.layout().kv_heads + head, element));
      kernels::upload(streams[rank], store.page(0), bytes.data(), size);
      streams[rank].synchronize();
    }
  }

  static float number(int layer, std::int32_t slot, int head, int element) {
    const std::uint32_t mixed =
        static_cast<std::uint32_t>(((layer * 256 + slot) * kHeads + head) * 40 + element) * 2654435761U;
    return kernels::to_float(kernels::to_bf16(static_cast<float>(mixed >> 8U) / 0x1p22F - 2));
  }
  /// Elements 0 to 19 are the key's, 20 to 39 the value's.
  std::size_t place(std::size_t rank, int layer, std::int32_t slot, int head, int element) const {
    const kernels::KvLayer of = model.parts[rank]->pages.layer(layer);
    const auto begin = static_cast<const std::byte*>(of.base) - model.parts[rank]->pages.page(0);
    return static_cast<std::size_t>(begin) / kernels::size_of(of.dtype) +
           static_cast<std::size_t>(of.offset(slot, head) +
                                    (element < kDim ? element : of.value_offset + element - kDim));
  }
  void put(std::vector<std::byte>& bytes, std::size_t rank, int layer, std::int32_t slot, int head,
           int element, float value) const {
    const std::size_t at = place(rank, layer, slot, head, element);
    if (model.parts[rank]->pages.layout().dtype == kernels::DType::f32) {
      reinterpret_cast<float*>(bytes.data())[at] = value;
    } else {
      reinterpret_cast<kernels::bf16*>(bytes.data())[at] = kernels::to_bf16(value);
    }
  }
  float get(std::size_t rank, int layer, std::int32_t slot, int head, int element) const {
    const std::size_t at = place(rank, layer, slot, head, element);
    return model.parts[rank]->pages.layout().dtype == kernels::DType::f32
               ? reinterpret_cast<const float*>(pages[rank].data())[at]
               : kernels::to_float(reinterpret_cast<const kernels::bf16*>(pages[rank].data())[at]);
  }
  void fetch() {
    for (std::size_t rank = 0; rank < pages.size(); ++rank)
      kernels::download(streams[rank], pages[rank].data(), model.parts[rank]->pages.page(0),
                        pages[rank].size());
  }
  std::vector<std::byte> bytes_of(const std::vector<std::int32_t>& slots, Form form) {
    const auto packed = mover.pack(slots, form, memory);
    EXPECT_TRUE(packed);
    packed->arrived.wait();
    EXPECT_EQ(packed->size, mover.bytes_of(form, static_cast<std::int64_t>(slots.size())));
    return {packed->bytes.get(), packed->bytes.get() + packed->size};
  }
  static TokenMover::Unpacking page(Form form, std::int64_t tokens, const std::vector<std::byte>& bytes,
                                    const std::vector<std::int32_t>& slots) {
    TokenMover::Unpacking unpacking;
    unpacking.form = form;
    unpacking.tokens = tokens;
    unpacking.bytes = bytes;
    unpacking.slots = slots;
    return unpacking;
  }
};

/// Every third slot of the first 240, so that they lie in many pages.
std::vector<std::int32_t> some_slots(std::int32_t first = 0) {
  std::vector<std::int32_t> slots;
  for (std::int32_t slot = first; slot < 240; slot += 3) slots.push_back(slot);
  return slots;
}

class TokenMoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() < 1) GTEST_SKIP() << "skipped, no GPU";
  }
  static std::vector<int> ranks() {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() < 2) return {1};
    return kernels::tests_on_gpu() ? std::vector<int>{1, 2} : std::vector<int>{1, 2, 3};
  }
};

TEST_F(TokenMoverTest, BytesDoNotDependOnWhoSharesTheModel) {
  for (const Form form : {Form::bf16, Form::fp8, Form::int4}) {
    std::vector<std::byte> first;
    for (const int each : ranks()) {
      Moved moved(each);
      const std::vector<std::byte> bytes = moved.bytes_of(some_slots(), form);
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << each << ' ' << name_of(form);
    }
    // Of a cache of the other type, whose numbers are the same.
    if (kernels::tests_on_gpu()) continue;
    Moved wide(1, kernels::DType::f32);
    EXPECT_EQ(wide.bytes_of(some_slots(), form), first);
  }
}

TEST_F(TokenMoverTest, WhatLeftComesBackInOtherPlaces) {
  for (const int each : ranks()) {
    Moved moved(each);
    const std::vector<std::int32_t> from = some_slots();
    const std::vector<std::byte> bytes = moved.bytes_of(from, Form::bf16);
    // Tokens 5 to 44 of it, in the other order.
    std::vector<std::int32_t> to = some_slots(1);
    to.resize(40);
    std::reverse(to.begin(), to.end());
    TokenMover::Unpacking page = Moved::page(Form::bf16, 80, bytes, to);
    page.first = 5;
    moved.mover.unpack(page);
    moved.fetch();
    const int heads = kHeads / each;
    for (int layer = 0; layer < kLayers; ++layer)
      for (int head = 0; head < kHeads; ++head)
        for (int element = 0; element < 2 * kDim; ++element) {
          const auto rank = static_cast<std::size_t>(head / heads);
          for (std::size_t i = 0; i < to.size(); ++i)
            ASSERT_EQ(moved.get(rank, layer, to[i], head % heads, element),
                      Moved::number(layer, from[5 + i], head, element));
          ASSERT_EQ(moved.get(rank, layer, 1 + 3 * 41, head % heads, element),
                    Moved::number(layer, 1 + 3 * 41, head, element))
              << "nothing else was written";
        }
  }
}

TEST_F(TokenMoverTest, LayersComeBackByThemselves) {
  Moved moved(ranks().back());
  const std::vector<std::int32_t> from = some_slots(), to = some_slots(2);
  const std::vector<std::byte> bytes = moved.bytes_of(from, Form::bf16);
  const std::size_t layer_bytes = bytes.size() / kLayers;
  const std::vector<std::byte> last_two(bytes.begin() + static_cast<std::ptrdiff_t>(layer_bytes),
                                        bytes.end());
  TokenMover::Unpacking page = Moved::page(Form::bf16, 80, last_two, to);
  page.layer = 1;
  page.layers = 2;
  moved.mover.unpack(page);
  moved.fetch();
  for (int layer = 0; layer < kLayers; ++layer)
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_EQ(moved.get(0, layer, to[i], 0, 7), Moved::number(layer, layer == 0 ? to[i] : from[i], 0, 7));
}

TEST_F(TokenMoverTest, KeysAreTurnedAsTheDecoderTurnsThem) {
  Moved moved(1, kernels::DType::f32);
  const std::vector<std::int32_t> from = some_slots(), to = some_slots(1), same = some_slots(2);
  std::vector<model::Position> by;
  for (std::int32_t i = 0; i < 80; ++i) by.push_back({i % 4 == 0 ? 0 : i * 1'000'003, i % 5, -i});
  const std::vector<std::byte> bytes = moved.bytes_of(from, Form::bf16);
  TokenMover::Unpacking page = Moved::page(Form::bf16, 80, bytes, to);
  page.by = by;
  moved.mover.unpack(page);
  page = Moved::page(Form::bf16, 80, bytes, same);
  moved.mover.unpack(page);
  model::Decoder::Workspace workspace;
  kernels::Stream stream = moved.streams.front();
  moved.model.parts[0]->decoder.rotate_keys(stream, workspace, same, by, moved.model.parts[0]->pages);
  moved.fetch();
  double most = 0, turned = 0;
  for (int layer = 0; layer < kLayers; ++layer)
    for (int head = 0; head < kHeads; ++head)
      for (int element = 0; element < 2 * kDim; ++element)
        for (std::size_t i = 0; i < 80; ++i) {
          const double expected = moved.get(0, layer, same[i], head, element);
          most = std::max(most, std::abs(moved.get(0, layer, to[i], head, element) - expected));
          turned = std::max(turned, std::abs(expected - Moved::number(layer, from[i], head, element)));
        }
  EXPECT_LT(most, 1e-5);
  EXPECT_GT(turned, 1) << "else this would prove nothing";
}

TEST_F(TokenMoverTest, EmbeddingsFollowOneAnother) {
  Moved moved(1);
  const kernels::Stream stream = moved.streams.front();
  std::vector<model::VisualTokensPtr> patches;
  std::vector<std::uint16_t> expected;
  for (const int count : {2, 0, 3}) {
    auto patch = std::make_shared<model::VisualTokens>();
    patch->kept = base::GridMask::all(1, count);
    patch->width = 240;
    std::vector<float> values(static_cast<std::size_t>(count) * 240);
    for (float& value : values) {
      value = static_cast<float>(expected.size() % 251) + 0.5F;
      expected.push_back(kernels::to_bf16(value).bits);
    }
    patch->embeddings = kernels::Buffer(stream, values.size() * sizeof(float));
    kernels::upload(stream, patch->embeddings.data(), values.data(), values.size() * sizeof(float));
    patches.push_back(patch);
  }
  auto moved_tokens = moved.mover.pack_embeddings(patches, moved.memory);
  ASSERT_TRUE(moved_tokens);
  moved_tokens->arrived.wait();
  EXPECT_EQ(moved_tokens->tokens, 5);
  ASSERT_EQ(moved_tokens->size, expected.size() * 2);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                         reinterpret_cast<const std::uint16_t*>(moved_tokens->bytes.get())));
}

// A camera's window leaves several pages at once, each in several forms: while the device is busy with
// passes, all of them wait for it.
TEST_F(TokenMoverTest, ManyPagesAreUnderWayAtOnce) {
  Moved moved(1);
  std::vector<std::vector<std::byte>> alone;
  const auto slots_of = [](int page) {
    std::vector<std::int32_t> slots(static_cast<std::size_t>(8 + page));
    std::iota(slots.begin(), slots.end(), 3 * page);
    return slots;
  };
  constexpr int kPages = 24;
  const auto form_of = [](int page) { return page % 2 == 0 ? Form::int4 : Form::bf16; };
  for (int page = 0; page < kPages; ++page) alone.push_back(moved.bytes_of(slots_of(page), form_of(page)));
  const kernels::Buffer busy(moved.streams.front(), std::size_t{64} << 20U);
  for (int i = 0; i < (kernels::tests_on_gpu() ? 50 : 1); ++i)
    kernels::fill_random(moved.streams.front(),
                         kernels::dense(static_cast<void*>(busy.data()), kernels::DType::f32, 4096, 4096), 1,
                         1);
  std::vector<std::optional<MovedTokens>> pages;
  for (int page = 0; page < kPages; ++page)
    pages.push_back(moved.mover.pack(slots_of(page), form_of(page), moved.memory));
  for (int page = 0; page < kPages; ++page) {
    ASSERT_TRUE(pages[static_cast<std::size_t>(page)]) << page;
    const MovedTokens& each = *pages[static_cast<std::size_t>(page)];
    each.arrived.wait();
    EXPECT_EQ(std::vector<std::byte>(each.bytes.get(), each.bytes.get() + each.size),
              alone[static_cast<std::size_t>(page)])
        << page;
  }
}

// Of a small bound as many as are always under way, and what is too small gives way.
TEST_F(TokenMoverTest, WhatIsUnderWayHasABound) {
  if (!kernels::tests_on_gpu()) GTEST_SKIP() << "on the CPU nothing is under way";
  Moved moved(1);
  StreamTokenMover bounded(moved.model, moved.streams, 1);
  std::vector<std::int32_t> slots(4);
  std::iota(slots.begin(), slots.end(), 0);
  const auto occupy = [&] {
    const kernels::Buffer busy(moved.streams.front(), std::size_t{64} << 20U);
    for (int i = 0; i < 200; ++i)
      kernels::fill_random(moved.streams.front(),
                           kernels::dense(static_cast<void*>(busy.data()), kernels::DType::f32, 4096, 4096),
                           1, 1);
  };
  for (const std::size_t count : {std::size_t{4}, std::size_t{32}}) {
    slots.resize(count);
    std::iota(slots.begin(), slots.end(), 0);
    occupy();
    std::vector<std::optional<MovedTokens>> pages;
    for (std::size_t page = 0; page < StreamTokenMover::kFewestStages; ++page)
      pages.push_back(bounded.pack(slots, Form::bf16, moved.memory));
    for (const auto& page : pages) EXPECT_TRUE(page) << count;
    EXPECT_FALSE(bounded.pack(slots, Form::bf16, moved.memory)) << count;
    for (const auto& page : pages) page->arrived.wait();
    const std::vector<std::byte> alone = moved.bytes_of(slots, Form::bf16);
    for (const auto& page : pages)
      EXPECT_EQ(std::vector<std::byte>(page->bytes.get(), page->bytes.get() + page->size), alone) << count;
  }
}

TEST_F(TokenMoverTest, NoRoomIsNoErrorAndNonsenseIs) {
  Moved moved(1);
  kernels::HostMemory little(moved.streams.front(), 4096);
  EXPECT_FALSE(moved.mover.pack(some_slots(), Form::bf16, little));
  EXPECT_EQ(little.used(), 0U);
  const auto none = moved.mover.pack({}, Form::int4, little);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->size, 0U);
  EXPECT_TRUE(none->arrived.is_reached());
  const std::vector<std::int32_t> slots = some_slots();
  EXPECT_THROW(moved.mover.pack(slots, Form::embeddings, moved.memory), std::invalid_argument);
  std::vector<std::byte> bytes = moved.bytes_of(slots, Form::int4);
  const auto refused = [&](auto change) {
    TokenMover::Unpacking page = Moved::page(Form::int4, 80, bytes, slots);
    change(page);
    EXPECT_THROW(moved.mover.unpack(page), std::invalid_argument);
  };
  refused([](TokenMover::Unpacking& page) { page.form = Form::fp8; });
  refused([](TokenMover::Unpacking& page) { page.form = Form::embeddings; });
  refused([](TokenMover::Unpacking& page) { page.first = 1; });
  refused([](TokenMover::Unpacking& page) { page.first = -1; });
  refused([](TokenMover::Unpacking& page) { page.layer = 2, page.layers = 2; });
  refused([](TokenMover::Unpacking& page) { page.layer = -1, page.layers = 3; });
  refused([](TokenMover::Unpacking& page) { page.tokens = 81; });
  refused([](TokenMover::Unpacking& page) { page.bytes = page.bytes.first(page.bytes.size() - 1); });
  const std::vector<model::Position> few(79);
  refused([&](TokenMover::Unpacking& page) { page.by = few; });
  moved.mover.unpack(Moved::page(Form::int4, 80, bytes, slots));
}

}  // namespace
}  // namespace vigil::run
