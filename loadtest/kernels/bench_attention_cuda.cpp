// Times of indexed attention on the GPU, one JSON object a line. attention_peers.py runs it beside cuDNN.
#include <cstdio>
#include <exception>
#include <vector>

#include "loadtest/kernels/bench_attention_cuda.h"

namespace {

using namespace vigil::loadtest;

void run() {
  constexpr int kTokens = 10'240;
  const std::vector<StreamCase> cases = {
      {"2048 queries spread over 10240 keys", kTokens, 0, spread_queries(kTokens, 2048)},
      {"the last 2048 of 10240 keys", kTokens, 0, last_queries(kTokens, 2048)},
      {"all 10240 of 10240 keys", kTokens, 0, last_queries(kTokens, kTokens)},
      {"2048 queries spread over 20480 tokens, half of them dead", 2 * kTokens, 0.5, spread_queries(2 * kTokens, 2048)},
      {"64 queries spread over 10240 keys", kTokens, 0, spread_queries(kTokens, 64)},
      {"2048 queries spread over 10240 keys, 16 heads of 64 on 4", kTokens, 0, spread_queries(kTokens, 2048), 16, 4, 64},
  };
  cudaStream_t stream = nullptr;
  require_cuda(cudaStreamCreate(&stream));
  for (const StreamCase& of : cases) {
    const PreparedCase prepared = prepare(of);
    const double ms =
        median_ms(stream, 5, 20, [&] { vigil::kernels::cuda::indexed_attention(stream, prepared.call); });
    std::printf("{\"case\": \"%s\", \"gflop\": %.1f, \"ms\": %.4f, \"tflops\": %.1f}\n", of.name.c_str(),
                prepared.flops / 1e9, ms, prepared.flops / ms / 1e9);
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_attention_cuda: %s\n", error.what());
    return 1;
  }
  return 0;
}
