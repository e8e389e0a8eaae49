// The kernels that add up parts of several GPUs, and what they find in each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <cuda_runtime.h>

#include "kernels/collective/collective.h"
#include "kernels/device/matrix.h"

namespace vigil::kernels::cuda {

constexpr int kMostRanks = 8;
/// Of parts that are sent rather than fetched: so few bytes that the way there and back is what costs.
constexpr std::size_t kInboxBytes = std::size_t{1} << 20U;
/// Blocks of a kernel that wait for another GPU. Several groups may wait on one GPU at once, and must leave
/// it room to come to what the others wait for.
constexpr int kMostWaiting = 32;
constexpr std::int64_t kMostSentRows = 64;

/// In each rank's memory, zeros at first.
struct RankState {
  /// Sums so far.
  unsigned long long turn;
  /// Blocks of the running one that are through.
  unsigned int through;
  /// By the other ranks: up to which sum their parts are there.
  alignas(128) unsigned long long ready[kMostRanks];
};

/// A rank's view of its group, as kernels take it.
struct Ranks {
  int rank = 0;
  int count = 0;
  RankState* state[kMostRanks] = {};
  /// Of each rank, [2 turns][ranks][kInboxBytes]: what others have sent to it. kEmpty at first, and again
  /// once it is read.
  std::byte* inbox[kMostRanks] = {};
  /// Not 0: nobody is to wait any more.
  const volatile int* off = nullptr;
};

/// A word that is never sent, and its only byte: one of many ways to write NaN, in f32 and in bf16.
constexpr std::uint32_t kEmpty = 0xffffffffU;
constexpr int kEmptyByte = 0xff;

/// Whether `send_and_add` takes parts of this size.
inline bool fits_inbox(ConstMatrix part) {
  return part.rows <= kMostSentRows &&
         static_cast<std::size_t>(part.rows * part.stride) * size_of(part.dtype) <= kInboxBytes;
}

/// Brings all kernels of this file to the current GPU. Code that comes when it is first called would wait for
/// what runs there, and that may wait for the caller.
void load_sum_kernels();

/// x += Σ of all ranks' parts, and the norm: every rank sends its part to all.
void send_and_add(cudaStream_t stream, const Ranks& ranks, ConstMatrix part, Matrix x, const SumNorm& norm);

/// Waits until all ranks have come here: their parts can be read then.
void wait_for_ranks(cudaStream_t stream, const Ranks& ranks);

/// x += Σ of the parts in this and other GPUs' memory, of the shape and type of `part`, and the norm.
void fetch_and_add(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts,
                   ConstMatrix part, Matrix x, const SumNorm& norm);

/// The first of two steps in which each rank moves a part of its size in and out, however many there are: the
/// rank's share of the rows of its part becomes Σ of all parts' rows, rounded to their type.
void add_share(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts, int rank,
               Matrix part);
/// The second, when all ranks are through with the first: x += the sums, wherever they are, and the norm.
void fetch_shares(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts,
                  ConstMatrix part, Matrix x, const SumNorm& norm);

}  // namespace vigil::kernels::cuda
