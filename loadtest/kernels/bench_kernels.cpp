// The kernels at the shapes of the demo model and of the published 7B model, beside this machine's own
// limits.
//
//   bench_kernels --benchmark_format=json
//
// FLOP/s counts what the operation needs, B/s what it must read and write at least. The limits are measured
// in the same run: `Limit/product`, a product large enough to hide everything else, and `Limit/copy`, a copy
// larger than the caches (read and written bytes).
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"
#include "kernels/linear/linear.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace {

using namespace vigil::kernels;

DType compute() {
  return cpu_has_bf16() ? DType::bf16 : DType::f32;
}

/// Values in [-1, 1): zeros would flatter the hardware.
Buffer random_values(const Stream& stream, std::int64_t count, DType dtype) {
  Buffer buffer(stream, static_cast<std::size_t>(count) * size_of(dtype));
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F;
    if (dtype == DType::f32) {
      buffer.as<float>()[i] = value;
    } else {
      buffer.as<bf16>()[i] = to_bf16(value);
    }
  }
  return buffer;
}

void report(benchmark::State& state, double flops, double bytes) {
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["B/s"] = benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate);
}

void product(benchmark::State& state, std::int64_t m, std::int64_t n, std::int64_t k) {
  Stream stream = Stream::cpu();
  const Buffer x = random_values(stream, m * k, compute());
  const Buffer w = random_values(stream, n * k, compute());
  const Buffer out(stream, static_cast<std::size_t>(m * n) * size_of(compute()));
  for (auto _ : state)
    linear(stream, dense(static_cast<const void*>(x.data()), compute(), m, k),
           dense(static_cast<const void*>(w.data()), compute(), n, k), dense(out.data(), compute(), m, n));
  const auto element = static_cast<double>(size_of(compute()));
  report(state, 2.0 * static_cast<double>(m * n * k), element * static_cast<double>(m * k + n * k + m * n));
}

void copy(benchmark::State& state) {
  constexpr std::size_t kBytes = 256U << 20U;
  const std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBytes);
    benchmark::DoNotOptimize(to.data());
  }
  report(state, 0, 2.0 * kBytes);
}

/// `queries` tokens at the end of `keys` live ones.
void attention(benchmark::State& state, std::int64_t queries, std::int64_t keys, std::int64_t heads,
               std::int64_t kv_heads, std::int64_t head_dim) {
  Stream stream = Stream::cpu();
  constexpr std::int64_t kPageTokens = 64;
  const std::int64_t pages = (keys + kPageTokens - 1) / kPageTokens;
  const std::int64_t half = kv_heads * kPageTokens * head_dim;
  const Buffer memory = random_values(stream, pages * 2 * half, compute());
  const KvLayer layer{memory.data(), compute(), pages, 2 * half, half, kPageTokens, kv_heads, head_dim};
  const Buffer q = random_values(stream, queries * heads * head_dim, compute());
  const Buffer out(stream, static_cast<std::size_t>(queries * heads * head_dim) * size_of(compute()));
  std::vector<std::int32_t> slots(static_cast<std::size_t>(keys));
  std::iota(slots.begin(), slots.end(), 0);
  std::vector<std::int32_t> own(static_cast<std::size_t>(queries));
  std::iota(own.begin(), own.end(), static_cast<std::int32_t>(keys - queries));
  const AttentionSegment segment{slots, own, 0};
  const PagedPlan plan(stream, std::span(&segment, 1), layer, heads);
  for (auto _ : state)
    paged_attention(stream, dense(static_cast<const void*>(q.data()), compute(), queries, heads * head_dim),
                    layer, plan, 0.1F, dense(out.data(), compute(), queries, heads * head_dim));
  const double seen =
      static_cast<double>(queries) * (static_cast<double>(keys) - static_cast<double>(queries - 1) / 2);
  report(state, 4.0 * seen * static_cast<double>(heads * head_dim),
         static_cast<double>(size_of(compute())) *
             static_cast<double>(2 * keys * kv_heads * head_dim + 2 * queries * heads * head_dim));
}

void norm(benchmark::State& state, std::int64_t rows, std::int64_t cols) {
  Stream stream = Stream::cpu();
  const Buffer x = random_values(stream, rows * cols, DType::f32);
  const Buffer out(stream, static_cast<std::size_t>(rows * cols) * size_of(compute()));
  const std::vector<float> weight(static_cast<std::size_t>(cols), 1.0F);
  for (auto _ : state)
    rms_norm(stream, dense(static_cast<const void*>(x.data()), DType::f32, rows, cols), weight.data(), 1e-6F,
             dense(out.data(), compute(), rows, cols));
  report(state, 0, static_cast<double>(rows * cols) * static_cast<double>(4 + size_of(compute())));
}

void rotate(benchmark::State& state, std::int64_t rows, std::int64_t heads, std::int64_t head_dim) {
  Stream stream = Stream::cpu();
  const Buffer x = random_values(stream, rows * heads * head_dim, compute());
  const std::vector<float> cos(static_cast<std::size_t>(rows * head_dim / 2), 0.6F);
  const std::vector<float> sin(cos.size(), 0.8F);
  for (auto _ : state)
    rope(stream, dense(x.data(), compute(), rows, heads * head_dim), head_dim, cos.data(), sin.data());
  report(state, 0,
         static_cast<double>(rows) * static_cast<double>(2 * heads * head_dim) *
             static_cast<double>(size_of(compute())));
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  add("Limit/product", [](auto& s) { product(s, 2048, 2048, 2048); });
  add("Limit/copy", [](auto& s) { copy(s); });
  // The demo model: 10 s of video at 2 FPS.
  add("Product/demo/vision_qkv", [](auto& s) { product(s, 2560, 576, 192); });
  add("Product/demo/vision_up", [](auto& s) { product(s, 2560, 768, 192); });
  add("Product/demo/decoder_up", [](auto& s) { product(s, 640, 1024, 320); });
  add("Product/demo/decoder_down", [](auto& s) { product(s, 640, 320, 1024); });
  add("Product/demo/decode_up", [](auto& s) { product(s, 1, 1024, 320); });
  // Qwen2.5-VL-7B.
  add("Product/7b/prefill_up", [](auto& s) { product(s, 256, 18944, 3584); });
  add("Product/7b/decode_up", [](auto& s) { product(s, 1, 18944, 3584); });
  add("Attention/demo/prefill", [](auto& s) { attention(s, 640, 640, 5, 1, 64); });
  add("Attention/demo/long_window", [](auto& s) { attention(s, 1024, 2560, 5, 1, 64); });
  add("Attention/demo/decode", [](auto& s) { attention(s, 1, 640, 5, 1, 64); });
  add("Attention/7b/prefill", [](auto& s) { attention(s, 512, 2048, 28, 4, 128); });
  add("Attention/7b/decode", [](auto& s) { attention(s, 1, 2048, 28, 4, 128); });
  add("RmsNorm/demo", [](auto& s) { norm(s, 2560, 192); });
  add("RmsNorm/7b", [](auto& s) { norm(s, 1024, 3584); });
  add("Rope/demo", [](auto& s) { rotate(s, 2560, 3, 64); });
  add("Rope/7b", [](auto& s) { rotate(s, 1024, 28, 128); });
  benchmark::AddCustomContext("matrix_products", cpu_isa());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
