// Sums over ranks: what joins the parts of a model that several devices share.
#pragma once

#include <cstdint>

#include "kernels/collective/communicator.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Columns of rows that are added up with what follows, at most.
inline constexpr std::int64_t kMostSumColumns = 16384;

/// A norm that follows a sum.
struct SumNorm {
  /// f32 [cols]; null: no norm.
  const float* weight = nullptr;
  float epsilon = 0;
  /// [rows, cols], of the type of the parts.
  Matrix out = {};
};

/// x += Σ over the ranks of their `part(which, ...)`, and norm.out = the RMS norm of the result (rms_norm.h):
/// the residual stream of a decoder after a product that is shared. x is f32 [rows, cols], the same on all
/// ranks before and after; the parts are [rows, cols] of `dtype`, f32 or bf16. Added up in f32 in the order
/// of the ranks, sums of more than two rounded to `dtype` before they are added to x, and by NCCL in `dtype`;
/// every rank gets the same bits. Between two sums of the same `which` there is one of the other. Throws
/// std::invalid_argument for shapes or types that do not fit, and for rows of more than kMostSumColumns;
/// DeviceError.
void add_parts(Stream& stream, const Communicator& ranks, int which, DType dtype, Matrix x,
               const SumNorm& norm = {});

}  // namespace vigil::kernels
