// A decoder in parts computes what the whole one does.
#include "engine/model/language/shard.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/view.h"
#include "engine/model/families/qwen2_5_vl.h"
#include "engine/model/language/decoder.h"
#include "engine/model/model_folder.h"
#include "kernels/collective/communicator.h"
#include "kernels/random/random.h"
#include "tests/engine/model/support.h"
#include "tests/kernels/on_device.h"

namespace vigil::model {
namespace {

using kernels::DType;
using testing::error_of;

constexpr std::int64_t kPrompt = 37;
constexpr std::int64_t kSteps = 4;
constexpr int kPageTokens = 7;

/// Sizes that no number of parts divides, but for the heads.
TextConfig odd_shape() {
  TextConfig text;
  text.hidden_size = 120;
  text.intermediate_size = 331;
  text.num_hidden_layers = 3;
  text.num_attention_heads = 6;
  text.num_key_value_heads = 3;
  text.head_dim = 20;
  text.vocab_size = 1009;
  text.rope_theta = 50;
  text.mrope_section = {2, 5, 3};
  text.traits = kQwen25Vl.text;
  return text;
}

/// What a decoder, whole or in parts, computes of a made-up prompt in two pieces and some tokens after it.
struct Result {
  std::vector<float> states, logits;
};

/// On the CPU, or a GPU for each part.
kernels::Stream stream_of(int rank) {
  return kernels::tests_on_gpu() ? kernels::Stream::cuda(rank) : kernels::Stream::cpu(1);
}

void append(const kernels::Stream& stream, const kernels::Matrix& from, std::vector<float>& to) {
  std::vector<float> values(static_cast<std::size_t>(from.rows * from.cols));
  kernels::download(stream, values.data(), from.data, values.size() * sizeof(float));
  to.insert(to.end(), values.begin(), values.end());
}

/// One part's share of the work; `states` are whole, `logits` the columns of this part.
Result run_part(const TextConfig& text, Parameters parameters, kernels::Stream stream, DType compute,
                Shard shard, const std::optional<kernels::Communicator>& ranks) {
  const Decoder decoder(text, std::move(parameters), shard);
  Decoder::Workspace workspace;
  workspace.ranks = ranks;
  const kv::PageLayout layout{text.num_hidden_layers, decoder.part().kv_heads, text.head_dim, kPageTokens,
                              compute};
  const kv::PageStore pages(stream, layout, 12);
  kv::Book book(12, layout.page_tokens);
  kv::View view(book);
  Result result;
  const auto pass = [&](std::int64_t first, std::int64_t count, std::vector<std::int32_t> outputs) {
    view.append(count);
    std::vector<float> hidden(static_cast<std::size_t>(count * text.hidden_size));
    for (std::size_t i = 0; i < hidden.size(); ++i)
      hidden[i] = kernels::random_number(3, static_cast<std::uint64_t>(first * text.hidden_size) + i);
    std::vector<Position> positions;
    std::vector<std::int32_t> own;
    for (std::int64_t i = first; i < first + count; ++i) {
      const auto at = static_cast<std::int32_t>(i);
      positions.push_back({at, at + 2, 2 * at});
      own.push_back(at);
    }
    const kernels::AttentionSegment segment{view.slots(), own, 0};
    const kernels::Buffer there(stream, hidden.size() * sizeof(float));
    kernels::upload(stream, there.data(), hidden.data(), hidden.size() * sizeof(float));
    const kernels::Matrix states = decoder.forward(
        stream, workspace, {there.as<float>(), positions, std::span(&segment, 1), outputs}, pages);
    append(stream, states, result.states);
    append(stream, decoder.logits(stream, workspace, states), result.logits);
  };
  pass(0, 20, {});
  pass(20, kPrompt - 20, {0, 5, static_cast<std::int32_t>(kPrompt) - 21});
  for (std::int64_t i = 0; i < kSteps; ++i) pass(kPrompt + i, 1, {0});
  return result;
}

constexpr std::size_t kOutputs = 3 + kSteps;

using MakeParameters = std::function<Parameters(const kernels::Stream& stream)>;

Result run(const TextConfig& text, const MakeParameters& parameters, DType compute, int ranks) {
  std::vector<kernels::Stream> streams;
  for (int rank = 0; rank < ranks; ++rank) streams.push_back(stream_of(rank));
  if (ranks == 1) return run_part(text, parameters(streams[0]), streams[0], compute, {}, std::nullopt);
  const std::vector<kernels::Communicator> members = kernels::make_group(streams);
  std::vector<Result> parts(members.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    threads.emplace_back([&, rank] {
      parts[rank] = run_part(text, parameters(streams[rank]), streams[rank], compute,
                             {static_cast<int>(rank), ranks}, members[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  // The columns of each row side by side.
  Result whole;
  whole.states = parts[0].states;
  for (const Result& part : parts) EXPECT_EQ(part.states, whole.states) << "the parts differ";
  for (std::size_t row = 0; row < kOutputs; ++row)
    for (const Result& part : parts) {
      const std::size_t cols = part.logits.size() / kOutputs;
      const auto begin = part.logits.begin() + static_cast<std::ptrdiff_t>(row * cols);
      whole.logits.insert(whole.logits.end(), begin, begin + static_cast<std::ptrdiff_t>(cols));
    }
  return whole;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    size += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / size);
}

void expect_same(const TextConfig& text, const MakeParameters& parameters, DType compute, int ranks,
                 double limit) {
  const Result whole = run(text, parameters, compute, 1);
  const Result parts = run(text, parameters, compute, ranks);
  ASSERT_EQ(parts.logits.size(), whole.logits.size());
  ASSERT_EQ(whole.logits.size(), kOutputs * static_cast<std::size_t>(text.vocab_size));
  EXPECT_LT(relative_error(parts.states, whole.states), limit);
  EXPECT_LT(relative_error(parts.logits, whole.logits), limit);
}

bool enough_gpus(int count) {
  return !kernels::tests_on_gpu() || kernels::cuda_devices() >= count;
}

struct Checkpoint {
  std::string name;
  int ranks;
};

class ShardOfCheckpointTest : public ::testing::TestWithParam<Checkpoint> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, ShardOfCheckpointTest,
                         ::testing::Values(Checkpoint{"tiny", 2}, Checkpoint{"half", 2},
                                           Checkpoint{"wide", 2}),
                         [](const auto& of) { return of.param.name + std::to_string(of.param.ranks); });

TEST_P(ShardOfCheckpointTest, PartsGiveWhatTheWholeGives) {
  if (!enough_gpus(GetParam().ranks)) GTEST_SKIP() << "skipped, needs " << GetParam().ranks << " GPUs";
  const auto folder = ModelFolder::open(std::string(VIGIL_BINARY_DIR) + "/golden/models/" + GetParam().name);
  const auto parameters = [&](DType compute) {
    return [&, compute](const kernels::Stream& stream) { return folder->parameters(stream, compute); };
  };
  expect_same(folder->config.text, parameters(DType::f32), DType::f32, GetParam().ranks, 1e-5);
  // Parts are rounded before they are added.
  if (kernels::tests_on_gpu() || kernels::cpu_has_bf16())
    expect_same(folder->config.text, parameters(DType::bf16), DType::bf16, GetParam().ranks, 1e-2);
}

TEST(ShardTest, SizesThatNothingDividesAreSharedToo) {
  if (!enough_gpus(3)) GTEST_SKIP() << "skipped, needs 3 GPUs";
  const auto made_up = [](const kernels::Stream& stream) { return Parameters(7, stream, DType::f32); };
  expect_same(odd_shape(), made_up, DType::f32, 3, 1e-5);
}

TEST(ShardTest, SharesCoverTheWholeInOrder) {
  for (const std::int64_t total : {1, 7, 331, 1009, 18944})
    for (const int ranks : {1, 2, 3, 8})
      for (const std::int64_t multiple : {1, 8}) {
        std::int64_t next = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const Range share = share_of(total, {rank, ranks}, multiple);
          EXPECT_EQ(share.first, next);
          EXPECT_TRUE(share.first % multiple == 0 || share.count == 0);
          EXPECT_GE(share.count, 0);
          EXPECT_LE(share.count, (total / multiple / ranks + 1) * multiple);
          next = share.first + share.count;
        }
        EXPECT_EQ(next, total);
      }
}

TEST(ShardTest, HeadsThatCannotBeSharedOutAreRefused) {
  EXPECT_EQ(error_of([] {
              DecoderPart(odd_shape(), {0, 2}, kernels::DeviceKind::cpu);
            }),
            "a model of 3 key and value heads cannot be shared by 2 devices: their number has to divide that "
            "of the "
            "heads");
  const DecoderPart last(odd_shape(), {2, 3}, kernels::DeviceKind::cpu);
  EXPECT_EQ(last.heads, 2);
  EXPECT_EQ(last.kv_heads, 1);
  EXPECT_EQ(last.queries.first, 80);
  EXPECT_EQ(last.keys.first, 40);
}

TEST(ShardTest, APartDoesNotRunAlone) {
  const TextConfig text = odd_shape();
  const Decoder part(text, Parameters(7, kernels::Stream::cpu(1), DType::f32), {1, 3});
  kernels::Stream stream = kernels::Stream::cpu(1);
  const kv::PageStore pages(stream, {3, 1, 20, 7, DType::f32}, 1);
  kv::Book book(1, 7);
  kv::View view(book);
  view.append(1);
  std::vector<float> hidden(120);
  const Position position{};
  const std::int32_t own = 0;
  const kernels::AttentionSegment segment{view.slots(), std::span(&own, 1), 0};
  Decoder::Workspace workspace;
  EXPECT_THROW(
      part.forward(stream, workspace, {hidden.data(), {&position, 1}, {&segment, 1}, {&own, 1}}, pages),
      std::logic_error);
}

}  // namespace
}  // namespace vigil::model
