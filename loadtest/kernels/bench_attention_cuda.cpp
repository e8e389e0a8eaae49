// Times of indexed attention on the GPU, one JSON object a line. attention_peers.py runs it beside cuDNN.
#include "loadtest/kernels/bench_attention_cuda.h"

#include <cstdio>
#include <exception>
#include <vector>

namespace {

using namespace vigil::loadtest;

void run() {
  constexpr int kTokens = 10'240;
  const std::vector<StreamCase> cases = {
      {"2048 queries spread over 10240 keys", kTokens, 0, spread_queries(kTokens, 2048)},
      {"the last 2048 of 10240 keys", kTokens, 0, last_queries(kTokens, 2048)},
      {"all 10240 of 10240 keys", kTokens, 0, last_queries(kTokens, kTokens)},
      {"2048 queries spread over 20480 tokens, half of them dead", 2 * kTokens, 0.5,
       spread_queries(2 * kTokens, 2048)},
      {"the last 128 of 10240 keys", kTokens, 0, last_queries(kTokens, 128)},
      {"the last 8 of 10240 keys", kTokens, 0, last_queries(kTokens, 8)},
      {"2048 queries spread over 10240 keys, 16 heads of 64 on 4", kTokens, 0, spread_queries(kTokens, 2048),
       16, 4, 64},
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

  const double rate = copy_rate(stream);
  const std::vector<DecodeCase> decodes = {
      {"decode, 1 sequence of 10240 keys", 1, 10'240, 28},
      {"decode, 8 sequences of 10240 keys", 8, 10'240, 8},
      {"decode, 64 sequences of 2048 keys", 64, 2'048, 4},
      {"decode, 1 sequence of 262144 keys", 1, 262'144, 2},
  };
  for (DecodeCase of : decodes) {
    const PreparedDecode prepared = prepare(of);
    const double ms = decode_ms(stream, prepared, 20);
    of.overlap = true;
    const PreparedDecode overlapping = prepare(of);
    const double overlapping_ms = decode_ms(stream, overlapping, 20);
    require_cuda(cudaFree(prepared.pool));
    require_cuda(cudaFree(overlapping.pool));
    std::printf(
        "{\"case\": \"%s\", \"mb\": %.1f, \"us\": %.2f, \"tb_s\": %.3f, \"of_copy\": %.3f, "
        "\"overlapping_us\": %.2f}\n",
        of.name.c_str(), prepared.bytes / 1e6, ms * 1e3, prepared.bytes / ms / 1e9,
        prepared.bytes / ms / 1e9 / rate, overlapping_ms * 1e3);
    std::fflush(stdout);
  }
  std::printf("{\"case\": \"a copy on the device\", \"tb_s\": %.3f}\n", rate);
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
