// What it costs to compare a picture's tokens with the picture before and with each other
// (kernels/similarity), beside a copy on the same device. One JSON object a line.
//
//   bench_similarity [cpu | cuda]
//
// `us`: the median of some runs, each of several submitted at once, by the one. `floor_bytes` is what has to
// be read and written at least, each embedding once, and `copy_us` the time of a copy that reads and writes
// as much.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/random/random.h"
#include "kernels/similarity/similarity.h"
#include "loadtest/kernels/submitted.h"

namespace {

using namespace vigil::kernels;

/// Of each picture one place of `one_of` is there.
void compare(Submitted& bench, std::int64_t edge, std::int64_t one_of, std::int64_t width, DType dtype) {
  std::vector<std::int32_t> there;
  for (std::int64_t place = 0; place < edge * edge; place += one_of)
    there.push_back(static_cast<std::int32_t>(place));
  const auto tokens = static_cast<std::int64_t>(there.size());
  const auto bytes = static_cast<std::size_t>(tokens * width) * size_of(dtype);
  const Buffer now(bench.stream, bytes), before(bench.stream, bytes);
  fill_random(bench.stream, dense(now.data(), dtype, tokens, width), 1, 1);
  fill_random(bench.stream, dense(before.data(), dtype, tokens, width), 2, 1);
  const DeviceArray<std::int32_t> places(bench.stream, there);
  const Buffer scores(bench.stream, static_cast<std::size_t>(2 * tokens) * 4);
  const auto placed = [&](const Buffer& of) {
    return PlacedTokens{dense(static_cast<const void*>(of.data()), dtype, tokens, width), places.data()};
  };
  const double us = bench.median_us([&] {
    token_similarity(bench.stream, placed(now), placed(before), edge, edge, scores.as<float>(),
                     scores.as<float>() + tokens);
  });
  const std::int64_t floor = static_cast<std::int64_t>(2 * bytes) + tokens * (2 * 4 + 2 * 4);
  const double copy_us = bench.copy_us(floor);
  std::printf(R"({"similarity": "%s", "rows": %ld, "columns": %ld, "tokens": %ld, "width": %ld, "us": %.1f, )"
              R"("floor_bytes": %ld, "copy_us": %.1f})"
              "\n",
              name_of(dtype), static_cast<long>(edge), static_cast<long>(edge), static_cast<long>(tokens),
              static_cast<long>(width), us, static_cast<long>(floor), copy_us);
}

int run(std::string_view device) {
  if (device != "cpu" && device != "cuda") throw std::invalid_argument("bench_similarity [cpu | cuda]");
  Submitted bench = device == "cuda" ? Submitted{Stream::cuda(), 20, 15} : Submitted{Stream::cpu(), 1, 5};
  for (const DType dtype : {DType::bf16, DType::f32}) {
    compare(bench, 16, 1, 3584, dtype);
    compare(bench, 32, 1, 3584, dtype);
    compare(bench, 32, 4, 3584, dtype);
    compare(bench, 32, 1, 896, dtype);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "cpu");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_similarity: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
