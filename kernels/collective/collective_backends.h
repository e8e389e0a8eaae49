// The implementations behind collective.h and communicator.h, which have checked what they are given.
#pragma once

#include "kernels/collective/collective.h"

namespace vigil::kernels {
namespace cpu {
void add_parts(Stream& stream, const Communicator& ranks, Matrix part, Matrix x, const SumNorm& norm);
}  // namespace cpu
namespace cuda {
std::shared_ptr<CudaGroup> make_group(std::span<const Stream> streams, Transport transport);
/// A rank's parts have moved; called by every rank, between meetings.
void place_parts(CudaGroup& group, int rank, const std::array<Buffer, 2>& parts);
void call_off(CudaGroup& group) noexcept;
void reset(CudaGroup& group);
void add_parts(Stream& stream, const Communicator& ranks, int which, Matrix part, Matrix x,
               const SumNorm& norm);
}  // namespace cuda
}  // namespace vigil::kernels
