// Attention of one token per sequence on the GPU against the whole row of scores in double precision.
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/decode_attention_cuda.h"
#include "tests/kernels/paged_case_cuda.h"

namespace vigil::kernels {
namespace {

using test::PagedCase;
using test::PagedShape;
using test::StreamShape;

#define SKIP_WITHOUT_GPU() \
  if (!test::gpu_here()) GTEST_SKIP() << "skipped, no GPU"

unsigned fresh_seed() {
  static std::random_device device;
  return device();
}

/// A case on the device, ready to be called often.
class Ready {
 public:
  explicit Ready(const PagedCase& of)
      : q(of.q),
        pool(of.pool),
        page_ids(of.page_ids),
        live(of.live),
        first_page(of.first_page),
        position(of.position),
        out(of.q.size()),
        workspace(cuda::decode_workspace_bytes(static_cast<int>(of.position.size()), of.shape().heads,
                                               of.shape().kv_heads, of.shape().head_dim)) {
    test::require_cuda(cudaStreamCreate(&stream));
    workspace.poison();
    call.q = q.data();
    call.out = out.data();
    call.q_stride = call.out_stride = of.stride();
    call.base = pool.data() + of.layer_offset();
    call.page_stride = of.page_stride();
    call.value_offset = of.value_offset();
    call.pool_pages = of.pool_pages;
    call.kv_heads = of.shape().kv_heads;
    call.heads = of.shape().heads;
    call.head_dim = of.shape().head_dim;
    call.sequences = static_cast<int>(of.position.size());
    call.page_ids = page_ids.data();
    call.live = live.data();
    call.first_page = first_page.data();
    call.position = position.data();
    call.workspace = workspace.data();
    call.scale = of.scale();
  }
  ~Ready() { cudaStreamDestroy(stream); }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  std::vector<std::uint16_t> run() {
    out.poison();
    test::require_cuda(cudaDeviceSynchronize());  // the poison is the default stream's
    cuda::decode_attention(stream, call);
    test::require_cuda(cudaStreamSynchronize(stream));
    return out.host();
  }

  test::OnDevice<std::uint16_t> q, pool;
  test::OnDevice<std::int32_t> page_ids;
  test::OnDevice<std::uint64_t> live;
  test::OnDevice<std::int32_t> first_page, position;
  test::OnDevice<std::uint16_t> out;
  test::OnDevice<std::uint8_t> workspace;
  cudaStream_t stream = nullptr;
  cuda::DecodeAttention call;
};

void expect_right(const PagedCase& paged, const std::vector<std::uint16_t>& out, const std::string& what) {
  const PagedCase::Errors errors = paged.compare(out);
  EXPECT_EQ(errors.strays, "") << what;
  EXPECT_LT(errors.whole, 6e-3) << what;
  EXPECT_LT(errors.worst, 3e-2) << what;
  std::printf("    relative error %.2e, worst row %.2e\n", errors.whole, errors.worst);
}

/// A call, and the next one with the workspace as the first left it.
void expect_right(const PagedShape& shape) {
  const unsigned seed = fresh_seed();
  const PagedCase paged(shape, seed);
  Ready ready(paged);
  expect_right(paged, ready.run(), "seed " + std::to_string(seed));
  expect_right(paged, ready.run(), "the second call, seed " + std::to_string(seed));
  // Calls that overlap with each other.
  ready.call.lists_in_place = true;
  for (int i = 0; i < 3; ++i) cuda::decode_attention(ready.stream, ready.call);
  expect_right(paged, ready.run(), "overlapping, seed " + std::to_string(seed));
}

struct Heads {
  int heads, kv_heads, head_dim;
};
class DecodeAttention : public testing::TestWithParam<Heads> {
 protected:
  PagedShape shape() const {
    const Heads heads = GetParam();
    PagedShape shape;
    shape.heads = heads.heads;
    shape.kv_heads = heads.kv_heads;
    shape.head_dim = heads.head_dim;
    return shape;
  }
};

TEST_P(DecodeAttention, OneSequence) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  for (const int tokens : {1, 63, 64, 65, 997, 5003}) {
    shape.streams = {{tokens, {tokens - 1}}};
    expect_right(shape);
  }
}

TEST_P(DecodeAttention, SequencesOfManyLengths) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.padding = 8;
  for (const int tokens : {1, 2, 4000, 64, 65, 127, 129, 640, 1, 333, 1999, 17})
    shape.streams.push_back({tokens, {tokens - 1}, tokens % 50});
  shape.streams[2].queries = {3000};  // keys behind the query stay unseen
  expect_right(shape);
  shape.dead = 0.3;
  shape.dead_page = 3;
  expect_right(shape);
}

TEST_P(DecodeAttention, ManySequences) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  for (int s = 0; s < 150; ++s) shape.streams.push_back({1 + s * 5 % 200, {s * 5 % 200}});
  shape.dead = 0.1;
  expect_right(shape);
}

INSTANTIATE_TEST_SUITE_P(Heads, DecodeAttention,
                         testing::Values(Heads{2, 2, 128}, Heads{10, 2, 64}, Heads{28, 4, 128},
                                         Heads{16, 1, 128}, Heads{14, 2, 64}),
                         [](const auto& param) {
                           return "H" + std::to_string(param.param.heads) + "Kv" +
                                  std::to_string(param.param.kv_heads) + "D" +
                                  std::to_string(param.param.head_dim);
                         });

TEST(DecodeAttentionGraph, FollowsLengthsThatChangeAndRestingSequences) {
  SKIP_WITHOUT_GPU();
  PagedShape shape;
  shape.heads = 28;
  shape.kv_heads = 4;
  // The streams have 700 tokens of room, whatever the query's place.
  for (const int query : {699, 10, 500, 64}) shape.streams.push_back({700, {query}});
  const unsigned seed = fresh_seed();
  PagedCase paged(shape, seed);
  Ready ready(paged);
  cudaStream_t stream = ready.stream;
  cudaGraph_t graph = nullptr;
  test::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cuda::decode_attention(stream, ready.call);
  test::require_cuda(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t replay = nullptr;
  test::require_cuda(cudaGraphInstantiate(&replay, graph, 0));
  // All queries move on, as far as their streams reach; any live key may be the last that is seen.
  for (const int move : {0, 1, 63, 100}) {
    for (std::size_t s = 0; s < shape.streams.size(); ++s)
      paged.position[s] = std::min(699, shape.streams[s].queries[0] + move);
    test::require_cuda(cudaMemcpy(ready.position.data(), paged.position.data(), paged.position.size() * 4,
                                  cudaMemcpyHostToDevice));
    ready.out.poison();
    test::require_cuda(cudaGraphLaunch(replay, stream));
    test::require_cuda(cudaStreamSynchronize(stream));
    expect_right(paged, ready.out.host(),
                 "moved by " + std::to_string(move) + ", seed " + std::to_string(seed));
  }

  // All rest: nothing is written. Then all but the third.
  for (const int waking : {-1, 2}) {
    const std::vector<std::int32_t> position = {-1, -1, waking < 0 ? -1 : 600, -1};
    test::require_cuda(
        cudaMemcpy(ready.position.data(), position.data(), position.size() * 4, cudaMemcpyHostToDevice));
    ready.out.poison();
    test::require_cuda(cudaGraphLaunch(replay, stream));
    test::require_cuda(cudaStreamSynchronize(stream));
    const std::vector<std::uint16_t> out = ready.out.host();
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i] == 0xFFFF, static_cast<int>(i / static_cast<std::size_t>(paged.stride())) != waking)
          << "element " << i;
  }
  test::require_cuda(cudaGraphExecDestroy(replay));
  test::require_cuda(cudaGraphDestroy(graph));
}

TEST(DecodeAttentionArguments, WhatDoesNotFitIsSaid) {
  SKIP_WITHOUT_GPU();
  const test::OnDevice<std::uint16_t> memory(1 << 16);
  cuda::DecodeAttention good;
  good.q = good.out = memory.data();
  good.q_stride = good.out_stride = 256;
  good.base = memory.data();
  good.page_stride = std::int64_t{4} * 64 * 128;
  good.value_offset = std::int64_t{64} * 128;
  good.pool_pages = 1;
  good.kv_heads = 1;
  good.heads = 2;
  good.head_dim = 128;
  good.workspace = memory.data();
  EXPECT_NO_THROW(cuda::decode_attention(nullptr, good));  // no sequence: nothing to do
  const auto refuse = [&](auto change) {
    cuda::DecodeAttention bad = good;
    bad.sequences = 1;
    change(bad);
    EXPECT_THROW(cuda::decode_attention(nullptr, bad), std::invalid_argument);
  };
  refuse([](auto& bad) { bad.head_dim = 80; });
  refuse([](auto& bad) { bad.heads = 3, bad.kv_heads = 2; });
  refuse([](auto& bad) { bad.heads = 17, bad.q_stride = bad.out_stride = 17 * 128; });
  refuse([](auto& bad) { bad.q_stride = 257; });
  refuse([](auto& bad) { bad.out_stride = 128; });
  refuse([](auto& bad) { bad.q = static_cast<const char*>(bad.q) + 2; });
  refuse([](auto& bad) { bad.workspace = static_cast<char*>(bad.workspace) + 4; });
  refuse([](auto& bad) { bad.page_stride += 64; });
  refuse([](auto& bad) { bad.scale = 0; });
  refuse([](auto& bad) { bad.sequences = 1025; });
}

}  // namespace
}  // namespace vigil::kernels
