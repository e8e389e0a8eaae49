// Questions whose past lies outside of the pages, beside the same pass with all keys in pages, and beside
// attention to the chosen tokens in double precision.
#include "engine/past/past.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/past/past_attend.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/paged_keys/paged_keys.h"
#include "tests/engine/past/asked_past.h"
#include "tests/kernels/on_device.h"

namespace vigil::past {
namespace {

using kernels::cpu_has_bf16;
using kernels::DType;
using kernels::OnDevice;
using kernels::TestMatrix;
using kernels::tests_on_gpu;

using testing::Asked;
using testing::counted;
using testing::everything;
using testing::kLayers;
using testing::kOff;
using testing::kPast;
using testing::kQuestion;
using testing::kWindow;
using testing::off;
using testing::parts_of;

TEST(PastTest, AllOfItIsFullAttention) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
  ASSERT_GT(off(whole, asked.ask({asked.seen()}, model::full_attention())[0]), 1e-2) << "the past shows";
  for (const std::string method : {"all", "resv", "resv-pooled", "resv-still"})
    for (const int patches : {0, 1, 4}) {
      PastOptions options = everything(method);
      options.block_patches = patches;
      const auto pasts = asked.pasts(options);
      PastAttend attend;
      attend.add(asked.seen(), parts_of(pasts), kPast + kWindow);
      attend.count();
      EXPECT_LT(off(whole, asked.ask({asked.seen()}, attend)[0]), kOff) << method << ", " << patches;
      EXPECT_EQ(attend.counted(0).share(), 1);
      EXPECT_EQ(attend.counted(0).of, kLayers * 6 * kPast);
    }
}

TEST(PastTest, InBf16TheRoundingOfSumsAloneDiffers) {
  VIGIL_SKIP_WITHOUT(DType::bf16);
  Asked asked(1, DType::bf16);
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
  const double without = off(whole, asked.ask({asked.seen()}, model::full_attention())[0]);
  const auto pasts = asked.pasts(everything());
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  // The same keys and values; sums of another order become other bf16 now and then, and go on in all layers.
  EXPECT_LT(off(whole, asked.ask({asked.seen()}, attend)[0]), without / 4);
}

TEST(PastTest, InFewerBitsItIsNear) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
  const double without = off(whole, asked.ask({asked.seen()}, model::full_attention())[0]);
  for (const auto form : {kernels::PackedForm::fp8, kernels::PackedForm::int4}) {
    PastOptions options = everything();
    options.form = form;
    const auto pasts = asked.pasts(options);
    PastAttend attend;
    attend.add(asked.seen(), parts_of(pasts), 0);
    const double error = off(whole, asked.ask({asked.seen()}, attend)[0]);
    EXPECT_LT(error, without / 4);
    EXPECT_GT(error, kOff);
  }
}

TEST(PastTest, PartsOfAModelHaveTheirHeads) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  if (tests_on_gpu() && kernels::cuda_devices() < 2) GTEST_SKIP() << "skipped, one GPU";
  Asked asked(2);
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0];
  const auto pasts = asked.pasts(everything());
  PastAttend attend(2);
  EXPECT_THROW(attend.add(asked.seen(), std::vector<Past*>{pasts[0].get()}, 0), std::invalid_argument);
  attend.add(asked.seen(), parts_of(pasts), 0);
  EXPECT_LT(off(whole, asked.ask({asked.seen()}, attend)[0]), kOff);
}

TEST(PastTest, EachSegmentHasItsOwnOrNone) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  // The same window, and room of its own for the question.
  kv::View other(asked.model.book);
  other.append(kQuestion);
  std::vector<std::int32_t> beside(asked.seen().begin(), asked.seen().end() - kQuestion);
  beside.insert(beside.end(), other.slots().begin(), other.slots().end());
  const std::vector<float> whole = asked.ask({asked.slots()}, model::full_attention())[0],
                           window = asked.ask({asked.seen()}, model::full_attention())[0];
  const auto pasts = asked.pasts(everything()), none = asked.pasts(everything(), 0),
             first = asked.pasts(everything(), 1);
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  EXPECT_LT(off(whole, asked.ask({asked.seen(), beside}, attend)[0]), kOff);
  EXPECT_LT(off(window, asked.ask({asked.seen(), beside}, attend)[1]), kOff) << "no past";
  attend.add(beside, parts_of(none), 0);
  EXPECT_LT(off(window, asked.ask({asked.seen(), beside}, attend)[1]), kOff) << "an empty one";

  attend.clear();
  EXPECT_EQ(off(window, asked.ask({asked.seen()}, attend)[0]), 0) << "nobody has one";
  attend.add(asked.seen(), parts_of(first), 0);
  std::vector<std::int32_t> slots{asked.slots()[0]};
  slots.insert(slots.end(), asked.seen().begin(), asked.seen().end());
  EXPECT_LT(off(asked.ask({slots}, model::full_attention())[0], asked.ask({asked.seen()}, attend)[0]), kOff)
      << "one token";
}

TEST(PastTest, ListsWithoutRoomLeaveOutTheNewest) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  // Of "all" each token comes by itself.
  const auto pasts = asked.pasts(everything("all"));
  PastAttend attend(1, 33);
  attend.count();
  attend.add(asked.seen(), parts_of(pasts), 0);
  std::vector<std::int32_t> slots(asked.slots().begin(), asked.slots().begin() + 33);
  slots.insert(slots.end(), asked.seen().begin(), asked.seen().end());
  EXPECT_LT(off(asked.ask({slots}, model::full_attention())[0], asked.ask({asked.seen()}, attend)[0]), kOff);
  EXPECT_EQ(attend.counted(0).fetched, kLayers * 6 * 33);
  EXPECT_EQ(attend.counted(0).chosen, kLayers * 6 * kPast);
}

TEST(PastTest, TheOldestBlockGoesWhereThereIsNoRoom) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  PastOptions options = everything();
  options.block_patches = 2;
  // Of 20 tokens in clusters of one: a line for each, so there is room for two blocks and a quarter.
  const std::int64_t piece = 6 * 2 * 20 * 2 / 128 * 128 + 128;
  options.settings->th_hp = 0;
  options.host_bytes = piece * 20 * kLayers * 9 / 4;
  const auto pasts = asked.pasts(options);
  EXPECT_EQ(pasts[0]->patches(), (std::vector<int>{2, 1})) << "of nine patches";
  EXPECT_EQ(pasts[0]->tokens(), 30);
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  EXPECT_LT(
      off(asked.ask({asked.seen(60)}, model::full_attention())[0], asked.ask({asked.seen()}, attend)[0]),
      kOff);
  pasts[0]->forget_block(asked.streams[0]);
  pasts[0]->lay(asked.streams[0]);
  EXPECT_LT(
      off(asked.ask({asked.seen(80)}, model::full_attention())[0], asked.ask({asked.seen()}, attend)[0]),
      kOff);
  pasts[0]->forget_block(asked.streams[0]);
  EXPECT_EQ(pasts[0]->tokens(), 0);
  EXPECT_LT(off(asked.ask({asked.seen()}, model::full_attention())[0], asked.ask({asked.seen()}, attend)[0]),
            kOff);
}

TEST(PastTest, BlocksThatTurnAreAsIfTheyWereLater) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  PastOptions options = everything();
  options.block_patches = 5;
  const auto pasts = asked.pasts(options);
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  const std::vector<float> before = asked.ask({asked.seen()}, attend)[0];
  pasts[0]->turn(asked.streams[0], std::vector<std::int32_t>{13, -4});
  pasts[0]->turn(asked.streams[0], std::vector<std::int32_t>{31, 0});
  const std::vector<float> turned = asked.ask({asked.seen()}, attend)[0];
  EXPECT_GT(off(before, turned), 1e-3);
  model::Decoder::Workspace workspace;
  asked.model.parts[0]->decoder.rotate_keys(asked.streams[0], workspace, asked.slots().first(50),
                                            std::vector<model::Position>(50, {31, 0, 0}),
                                            asked.model.parts[0]->pages);
  EXPECT_LT(off(asked.ask({asked.slots()}, model::full_attention())[0], turned), kOff);
}

TEST(PastTest, ABlockThatHasNoRoomCostsNothingElse) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  PastOptions options = everything();
  options.block_patches = 1;
  const auto whole = asked.pasts(options, 10);
  PastAttend attend;
  attend.add(asked.seen(10), parts_of(whole), 0);
  const std::vector<float> before = asked.ask({asked.seen(10)}, attend)[0];

  kernels::Stream& stream = asked.streams[0];
  const kv::PageStore& pages = asked.model.parts[0]->pages;
  // Room for two blocks of ten tokens, in whole lines, and not for one of forty.
  const std::int64_t token = 2 * 2 * pages.layout().head_dim * pages.layout().kv_heads;
  options.host_bytes = 36 * kLayers * ((token + 127) / 128 * 128);
  const auto pasts = asked.pasts(options, 10);
  pasts[0]->append(stream, pages, asked.slots().subspan(10, 40), counted(10, 40));
  EXPECT_THROW(pasts[0]->lay(stream), std::invalid_argument);
  EXPECT_EQ(pasts[0]->blocks(), 1);
  EXPECT_EQ(pasts[0]->tokens(), 10);
  attend.clear();
  attend.add(asked.seen(10), parts_of(pasts), 0);
  EXPECT_LT(off(before, asked.ask({asked.seen(10)}, attend)[0]), kOff);
  // What comes next is a block of its own.
  pasts[0]->append(stream, pages, asked.slots().subspan(10, 10), counted(10, 10));
  pasts[0]->lay(stream);
  EXPECT_EQ(pasts[0]->patches(), (std::vector<int>{1, 1}));
}

TEST(PastTest, WhatIsRefused) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Asked asked;
  EXPECT_THROW(asked.pasts({.method = "best"}), std::invalid_argument);
  EXPECT_THROW(asked.pasts({.share = 1.5}), std::invalid_argument);
  EXPECT_THROW(asked.pasts({.host_bytes = 0}), std::invalid_argument);
  EXPECT_THROW(asked.pasts({.block_patches = -1}), std::invalid_argument);
  EXPECT_THROW(asked.pasts({.host_bytes = 1000}), std::invalid_argument) << "a block that has no room";
  EXPECT_THROW(asked.pasts({.method = "recent", .host_bytes = 100000, .block_patches = 1}), std::logic_error)
      << "a control forgets nothing";
  const auto pasts = asked.pasts({});
  const kv::PageStore& pages = asked.model.parts[0]->pages;
  EXPECT_THROW(
      pasts[0]->append(asked.streams[0], pages, asked.slots().first(2), std::vector<std::int32_t>{1}),
      std::invalid_argument);
  EXPECT_THROW(pasts[0]->turn(asked.streams[0], std::vector<std::int32_t>{1, 2}), std::invalid_argument);
  pasts[0]->append(asked.streams[0], pages, asked.slots().first(1), std::vector<std::int32_t>{1});
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  EXPECT_THROW(asked.ask({asked.seen()}, attend), std::logic_error) << "it was not laid";
}

// --- Chosen subsets
// ------------------------------------------------------------------------------------------

/// One layer, asked with made-up queries; the tokens by the retriever, the rest in double precision.
void expect_chosen(const std::string& method, double share) {
  Asked asked;
  const kv::PageStore& pages = asked.model.parts[0]->pages;
  kernels::Stream& stream = asked.streams[0];
  const int layer = 1;
  const kernels::KvLayer kv = pages.layer(layer);
  const std::int64_t dim = kv.head_dim, heads = 12;
  kernels::Random random(3);
  const TestMatrix q = TestMatrix::random(DType::f32, kQuestion, heads * dim, random, 2);
  TestMatrix out(DType::f32, kQuestion, heads * dim);
  const auto own = counted(kWindow, kQuestion);
  const std::vector<kernels::AttentionSegment> segments{{asked.seen(), own, 0}};
  const float scale = 0.3F;

  const auto pasts = asked.pasts({.method = method, .share = share});
  PastAttend attend;
  attend.add(asked.seen(), parts_of(pasts), 0);
  {
    OnDevice there(stream, out);
    attend.attend(stream, 0, layer, OnDevice(stream, q), kv, kernels::PagedPlan(stream, segments, kv, heads),
                  scale, there);
    there.fetch();
  }

  std::vector<float> values(static_cast<std::size_t>(pages.pages() * pages.layout().page_elements()));
  kernels::download(stream, values.data(), pages.page(0), values.size() * sizeof(float));
  const std::int64_t skipped = 2 * kv.value_offset * layer;
  const auto element = [&](std::int32_t slot, std::int64_t head, std::int64_t d, bool value) {
    return double{values[static_cast<std::size_t>(skipped + kv.offset(slot, head) +
                                                  (value ? kv.value_offset : 0) + d)]};
  };
  const retrieval::RetrieverPtr retriever =
      retrieval::make_retriever(method, stream, {kLayers, 6, static_cast<int>(dim), DType::f32});
  for (std::int32_t first = 0; first < kPast; first += 10) {
    TestMatrix keys(DType::f32, kLayers * 10, 6 * dim);
    const auto slots = asked.slots().subspan(static_cast<std::size_t>(first), 10);
    for (std::int64_t l = 0; l < kLayers; ++l)
      for (std::int64_t i = 0; i < 10; ++i)
        for (std::int64_t d = 0; d < 6 * dim; ++d)
          keys.set(l * 10 + i, d,
                   values[static_cast<std::size_t>(2 * kv.value_offset * l +
                                                   kv.offset(slots[static_cast<std::size_t>(i)], d / dim) +
                                                   d % dim)]);
    retriever->append(stream, {OnDevice(stream, keys)});
  }
  const retrieval::ChosenTokens chosen = retriever->choose(
      stream, {layer, OnDevice(stream, q), scale, std::llround(share * static_cast<double>(kPast))});
  for (std::int64_t i = 0; i < kQuestion; ++i)
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t kv_head = head / 2;
      std::vector<std::int32_t> slots(asked.seen().begin(), asked.seen().begin() + kWindow + i + 1);
      for (const retrieval::TokenRange& range : chosen[static_cast<std::size_t>(kv_head)])
        for (std::int64_t t = 0; t < range.count; ++t)
          slots.push_back(asked.slots()[static_cast<std::size_t>(range.first + t)]);
      const auto expected = kernels::reference::attend(
          static_cast<std::int64_t>(slots.size()), dim, double{scale},
          [&](std::int64_t d) { return double{q.get(i, head * dim + d)}; },
          [&](std::int64_t j, std::int64_t d) {
            return element(slots[static_cast<std::size_t>(j)], kv_head, d, false);
          },
          [&](std::int64_t j, std::int64_t d) {
            return element(slots[static_cast<std::size_t>(j)], kv_head, d, true);
          });
      for (std::int64_t d = 0; d < dim; ++d) {
        const auto at = static_cast<std::size_t>(d);
        ASSERT_NEAR(out.get(i, head * dim + d), expected.value[at], 2e-5 * expected.magnitude[at])
            << method << ", query " << i << ", head " << head;
      }
    }
}

TEST(PastTest, SomeOfItIsAttentionToThatAlone) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  for (const char* method :
       {"resv", "resv-mass", "resv-pooled", "resv-mean", "recent", "random", "topk", "rekv"})
    expect_chosen(method, 0.33);
  expect_chosen("random", 0);
}

}  // namespace
}  // namespace vigil::past
