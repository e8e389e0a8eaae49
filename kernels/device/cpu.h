// What the CPU implementations share: loops over threads, and functions compiled once an instruction set.
#pragma once

#include <cstdint>
#include <exception>

#include "kernels/device/stream.h"

// One function, three machine codes, chosen at load time: the program runs on any x86-64 and uses AVX-512
// where there is one. Sanitizers run before the loader's resolvers may, so they get the plain code; so does
// every other architecture.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(VIGIL_SANITIZED)
#define VIGIL_SIMD __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define VIGIL_SIMD
#endif
#define VIGIL_INLINE inline __attribute__((always_inline))

namespace vigil::kernels {

/// Calls `body(i)` for i in [0, count), on up to `stream.threads()` threads, in no particular order. What a
/// body throws ends that body only; one of the exceptions is thrown again when all are done.
template <typename Body>
void parallel_for(const Stream& stream, std::int64_t count, const Body& body) {
  // An exception that leaves a parallel region would end the process.
  std::exception_ptr failure;
  [[maybe_unused]] const int threads = count > 1 ? stream.threads() : 1;
#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not see libgomp's barriers
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(vigil_parallel_for)
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// Calls `body(begin, end)` for blocks of `grain` rows that cover [0, rows).
template <typename Body>
void parallel_blocks(const Stream& stream, std::int64_t rows, std::int64_t grain, const Body& body) {
  const std::int64_t blocks = (rows + grain - 1) / grain;
  parallel_for(stream, blocks, [&](std::int64_t block) {
    const std::int64_t begin = block * grain;
    body(begin, begin + grain < rows ? begin + grain : rows);
  });
}

}  // namespace vigil::kernels
