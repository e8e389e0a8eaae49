// What is done with keys that are in the cache, with a model's numbers: looking how far they are from what
// they would be, and turning them.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/view.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "engine/stream/refresh.h"
#include "tests/engine/made_up_model.h"
#include "tests/kernels/on_device.h"

namespace vigil::stream {
namespace {

using model::Position;

std::vector<kernels::Stream> a_stream_each(int ranks) {
  std::vector<kernels::Stream> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.push_back(kernels::tests_on_gpu() ? kernels::Stream::cuda(rank) : kernels::Stream::cpu(1));
  return streams;
}

constexpr std::int64_t kWidth = 240;
const std::vector<std::int32_t> kPrompt{5, 1999, 7, 7};

/// A stream of patches of one model, and windows on it.
struct Kept {
  run::CachedModel model;
  run::PassRunner passes;
  kernels::Buffer embeddings;
  std::int32_t origin;

  Kept(int ranks, std::int32_t at, kernels::DType type = kernels::DType::f32, int layers = 3,
       model::Quantization quantization = model::Quantization::none)
      : model(testing::made_up_model(layers), {.memory = a_stream_each(ranks),
                                               .compute = type,
                                               .quantization = quantization,
                                               .kv_tokens = 512,
                                               .page_tokens = 8}),
        passes(model, a_stream_each(ranks)),
        embeddings(passes.stream(), static_cast<std::size_t>(40 * kWidth) * sizeof(float)),
        origin(at) {
    kernels::Random random(3);
    std::vector<float> values;
    for (std::int64_t i = 0; i < 40 * kWidth; ++i) values.push_back(random.number());
    kernels::upload(passes.stream(), embeddings.data(), values.data(), embeddings.bytes());
  }

  /// The visual tokens [first, last), three a patch.
  kernels::ConstMatrix rows(std::int64_t first, std::int64_t last) const {
    return kernels::dense(static_cast<const void*>(embeddings.as<float>() + first * kWidth),
                          kernels::DType::f32, last - first, kWidth);
  }
  Position position(std::int64_t token) const {
    const auto patch = static_cast<std::int32_t>(token / 3), cell = static_cast<std::int32_t>(token % 3);
    return {origin + 4 + 2 * patch, 4 + cell / 2, 4 + cell % 2};
  }
  /// Those of the prompt of a window that begins with this token.
  std::vector<Position> before(std::int64_t first) const {
    std::vector<Position> positions;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(kPrompt.size()); ++i)
      positions.push_back({position(first).t - 4 + i, i, i});
    return positions;
  }

  /// Adds the prompt, as far as `from` says, and the tokens up to `last` of a window that begins with
  /// `first`. `from`: how many of its tokens were there before.
  void add(run::Pass& pass, std::vector<std::int32_t>& own, const kv::View& view, std::int64_t first,
           std::int64_t from, std::int64_t last) const {
    const auto prompt = static_cast<std::int64_t>(kPrompt.size());
    const auto row = static_cast<std::int64_t>(pass.positions.size());
    if (from == 0) {
      pass.rows.push_back({kPrompt, {}});
      for (const Position& each : before(first)) pass.positions.push_back(each);
      from = prompt;
    }
    const std::int64_t begin = first + from - prompt;
    pass.rows.push_back({{}, rows(begin, last)});
    for (std::int64_t token = begin; token < last; ++token) {
      pass.outputs.push_back(static_cast<std::int32_t>(pass.positions.size()));
      pass.positions.push_back(position(token));
    }
    const std::int64_t count = static_cast<std::int64_t>(pass.positions.size()) - row;
    own.resize(static_cast<std::size_t>(count));
    std::iota(own.begin(), own.end(), static_cast<std::int32_t>(prompt + last - first - count));
    pass.segments.push_back({view.slots().first(static_cast<std::size_t>(prompt + last - first)), own, row});
    pass.is_far = true;
  }
  /// A window of [first, last), computed whole.
  kv::View whole(std::int64_t first, std::int64_t last) {
    kv::View view(model.book);
    view.append(static_cast<std::int64_t>(kPrompt.size()) + last - first);
    run::Pass pass;
    std::vector<std::int32_t> own;
    add(pass, own, view, first, 0, last);
    pass.outputs.clear();
    passes.run(pass);
    return view;
  }
  /// A window that begins with a token of another, and ends with it: its prompt is still to be computed.
  kv::View slid(const kv::View& from, std::int64_t tokens) {
    kv::View view(model.book);
    view.append(static_cast<std::int64_t>(kPrompt.size()));
    view.extend(from, from.size() - tokens, tokens);
    return view;
  }
  std::vector<float> distances(const run::Pass& pass) {
    const auto found = passes.key_distances(pass);
    return {found.begin(), found.end()};
  }

  /// All bytes of all pages.
  std::vector<std::vector<std::byte>> bytes() {
    passes.settle();
    std::vector<std::vector<std::byte>> all;
    for (const auto& part : model.parts) {
      const auto size = static_cast<std::size_t>(part->pages.pages() * part->pages.layout().page_bytes());
      kernels::download(part->memory, all.emplace_back(size).data(), part->pages.page(0), size);
    }
    return all;
  }
  /// Element d of the key of a head, which are counted over the parts.
  float key(const std::vector<std::vector<std::byte>>& pages, int layer, std::int32_t slot, int head,
            int d) const {
    const int each = model.parts.front()->pages.layout().kv_heads;
    const auto part = static_cast<std::size_t>(head / each);
    const kernels::KvLayer of = model.parts[part]->pages.layer(layer);
    const auto begin = static_cast<const std::byte*>(of.base) - model.parts[part]->pages.page(0);
    const auto at = static_cast<std::size_t>(begin) / kernels::size_of(of.dtype) +
                    static_cast<std::size_t>(of.offset(slot, head % each) + d);
    return of.dtype == kernels::DType::f32
               ? reinterpret_cast<const float*>(pages[part].data())[at]
               : kernels::to_float(reinterpret_cast<const kernels::bf16*>(pages[part].data())[at]);
  }
  double distance(const std::vector<std::vector<std::byte>>& pages, std::int32_t a, std::int32_t b) const {
    double sum = 0;
    for (int head = 0; head < 6; ++head)
      for (int d = 0; d < 20; ++d) {
        const double difference = double{key(pages, 1, a, head, d)} - double{key(pages, 1, b, head, d)};
        sum += difference * difference;
      }
    return sum;
  }
};

class KeptKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() < 2) GTEST_SKIP() << "skipped, needs 2 GPUs";
  }
  /// Of a shared model.
  static int parts() { return kernels::tests_on_gpu() ? 2 : 3; }
};

// What the window would compute of its kept tokens, were it computed whole, is what theirs is compared with;
// and looking at keys leaves them.
TEST_F(KeptKeysTest, DistancesAreThoseOfAWindowThatIsComputedWhole) {
  std::vector<float> of_one;
  for (const int ranks : {1, parts()}) {
    Kept kept(ranks, 1'000'000);
    const kv::View old = kept.whole(0, 30);
    const kv::View fresh = kept.whole(9, 30);
    const kv::View window = kept.slid(old, 21);
    const auto before = kept.bytes();
    run::Pass pass;
    std::vector<std::int32_t> own;
    kept.add(pass, own, window, 9, 0, 30);
    const std::vector<float> found = kept.distances(pass);
    const auto after = kept.bytes();
    ASSERT_EQ(found.size(), 21U);
    std::vector<float> expected;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t at = kPrompt.size() + i;
      const double distance = kept.distance(before, window.slots()[at], fresh.slots()[at]);
      EXPECT_NEAR(found[i], distance, 1e-6 + 1e-3 * distance) << i << " of " << ranks;
      EXPECT_GT(distance, 1e-4) << "else this would prove nothing";
      expected.push_back(static_cast<float>(distance));
    }
    EXPECT_EQ(farthest(found, 5), farthest(expected, 5));
    EXPECT_EQ(farthest(found, 11), farthest(expected, 11));
    EXPECT_NE(farthest(found, 5), (std::vector<kv::TokenRange>{{0, 5}})) << "else the oldest would do";
    // Of the prompt there are keys of the first layer, and nothing else was written.
    for (std::size_t i = 0; i < kPrompt.size(); ++i)
      for (int head = 0; head < 6; ++head)
        for (int d = 0; d < 20; ++d)
          EXPECT_NEAR(kept.key(after, 0, window.slots()[i], head, d),
                      kept.key(before, 0, fresh.slots()[i], head, d), 1e-5);
    std::size_t differ = 0;
    for (std::size_t part = 0; part < after.size(); ++part)
      for (std::size_t at = 0; at < after[part].size(); at += sizeof(float))
        differ += std::equal(after[part].begin() + static_cast<std::ptrdiff_t>(at),
                             after[part].begin() + static_cast<std::ptrdiff_t>(at + sizeof(float)),
                             before[part].begin() + static_cast<std::ptrdiff_t>(at))
                      ? 0U
                      : 1U;
    EXPECT_LE(differ, kPrompt.size() * 2 * 120);
    if (ranks == 1) {
      of_one = found;
    } else {
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], of_one[i], 1e-3 * of_one[i]) << i;
    }
  }
}

// Products in 8 bits round what enters them row by row, in a probe as in a pass.
TEST_F(KeptKeysTest, DistancesOfAQuantizedModelAreThoseOfItsPasses) {
  if (kernels::tests_on_gpu()) GTEST_SKIP() << "skipped, the shapes are not those of 8 bits on a GPU";
  for (const int ranks : {1, parts()}) {
    Kept kept(ranks, 50, kernels::DType::f32, 3, model::Quantization::fp8);
    const kv::View old = kept.whole(0, 30), fresh = kept.whole(9, 30);
    const kv::View window = kept.slid(old, 21);
    run::Pass pass;
    std::vector<std::int32_t> own;
    kept.add(pass, own, window, 9, 0, 30);
    const std::vector<float> found = kept.distances(pass);
    const auto pages = kept.bytes();
    ASSERT_EQ(found.size(), 21U);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t at = kPrompt.size() + i;
      const double distance = kept.distance(pages, window.slots()[at], fresh.slots()[at]);
      EXPECT_NEAR(found[i], distance, 1e-6 + 0.02 * distance) << i << " of " << ranks;
    }
  }
}

TEST_F(KeptKeysTest, PiecesAndNeighboursMakeNoDifference) {
  Kept kept(parts(), 0);
  const kv::View old = kept.whole(0, 30), other = kept.whole(3, 12);
  const kv::View window = kept.slid(old, 21), same = kept.slid(other, 9), alone = kept.slid(old, 21);
  run::Pass one;
  std::vector<std::int32_t> own, own_of_other;
  kept.add(one, own, alone, 9, 0, 30);
  const std::vector<float> whole = kept.distances(one);

  // The prompt and two tokens, beside a window that was not slid; then the rest alone.
  run::Pass first, second;
  kept.add(first, own, window, 9, 0, 11);
  kept.add(first, own_of_other, same, 3, 0, 12);
  std::vector<float> pieces = kept.distances(first);
  ASSERT_EQ(pieces.size(), 2U + 9U);
  for (std::size_t i = 2; i < pieces.size(); ++i) EXPECT_LT(pieces[i], 1e-8) << "nothing has left";
  pieces.resize(2);
  std::vector<std::int32_t> rest;
  kept.add(second, rest, window, 9, static_cast<std::int64_t>(kPrompt.size()) + 2, 30);
  const std::vector<float> more = kept.distances(second);
  pieces.insert(pieces.end(), more.begin(), more.end());
  ASSERT_EQ(pieces.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(pieces[i], whole[i], 1e-3 * whole[i]) << i;
}

TEST_F(KeptKeysTest, WhatCannotBeLookedAtIsRefusedAndOtherPassesFollow) {
  Kept kept(parts(), 0);
  const kv::View old = kept.whole(0, 12);
  const kv::View window = kept.slid(old, 6);
  run::Pass pass;
  std::vector<std::int32_t> own;
  kept.add(pass, own, window, 6, 0, 12);
  const std::vector<float> found = kept.distances(pass);
  run::Pass wrong = pass;
  wrong.outputs = {0, 1};
  EXPECT_THROW(kept.passes.key_distances(wrong), std::invalid_argument) << "before a row that is written";
  wrong.outputs = pass.outputs;
  wrong.outputs.push_back(static_cast<std::int32_t>(wrong.positions.size()));
  EXPECT_THROW(kept.passes.key_distances(wrong), std::invalid_argument) << "a row that is not there";
  wrong.outputs = pass.outputs;
  wrong.positions.pop_back();
  EXPECT_THROW(kept.passes.key_distances(wrong), std::invalid_argument);
  EXPECT_EQ(kept.distances(pass), found);
  pass.outputs.clear();
  EXPECT_TRUE(kept.distances(pass).empty()) << "all are written";
}

// Keys of a first layer are always what they would be.
TEST_F(KeptKeysTest, AModelOfOneLayerHasNoneThatDiffer) {
  Kept kept(1, 0, kernels::DType::f32, 1);
  const kv::View old = kept.whole(0, 12);
  const kv::View window = kept.slid(old, 6);
  run::Pass pass;
  std::vector<std::int32_t> own;
  kept.add(pass, own, window, 6, 0, 12);
  EXPECT_EQ(kept.distances(pass), std::vector<float>(6, 0.0F));
  model::Decoder::Workspace workspace;
  kernels::Stream stream = kept.model.parts[0]->memory;
  EXPECT_THROW(kept.model.parts[0]->decoder.prepare_probe(stream, workspace, {}, kept.model.parts[0]->pages),
               std::invalid_argument);
}

// Equation 5 in the pages of a model: a sequence that is moved as a whole has the same states, and its keys
// are those of its new places, in all layers.
TEST_F(KeptKeysTest, TurnedKeysAreThoseOfASequenceThatWasMoved) {
  for (const int ranks : {1, parts()})
    for (const kernels::DType type : {kernels::DType::f32, kernels::DType::bf16}) {
      if (type == kernels::DType::bf16 && !kernels::tests_on_gpu() && !kernels::cpu_has_bf16()) continue;
      Kept near(ranks, 0, type);
      const kv::View there = near.whole(0, 21);
      near.origin = 123'456'789;
      const kv::View far = near.whole(0, 21);
      const auto before = near.bytes();
      const std::vector<Position> by(far.slots().size(), {-123'456'789, 0, 0});
      for (const auto& part : near.model.parts) {
        kernels::Stream stream = part->memory;
        model::Decoder::Workspace workspace;
        part->decoder.rotate_keys(stream, workspace, far.slots(), by, part->pages);
        stream.synchronize();
        EXPECT_THROW(part->decoder.rotate_keys(stream, workspace, far.slots().first(2), by, part->pages),
                     std::invalid_argument);
      }
      const auto after = near.bytes();
      double most = 0, moved = 0;
      for (std::size_t i = 0; i < there.slots().size(); ++i)
        for (int layer = 0; layer < 3; ++layer)
          for (int head = 0; head < 6; ++head)
            for (int d = 0; d < 20; ++d) {
              const double wanted = near.key(before, layer, there.slots()[i], head, d);
              most = std::max(most, std::abs(near.key(after, layer, far.slots()[i], head, d) - wanted));
              moved = std::max(moved, std::abs(near.key(before, layer, far.slots()[i], head, d) - wanted));
            }
      // The states of bf16 are rounded after other angles, too.
      EXPECT_LT(most, type == kernels::DType::f32 ? 1e-4 : 0.1 * moved) << ranks;
      EXPECT_GT(moved, 0.1) << "else this would prove nothing";
    }
}

}  // namespace
}  // namespace vigil::stream
