// How an operation finds its implementation: the same function in namespace cpu and in namespace cuda.
#pragma once

#include "kernels/device/stream.h"

#if VIGIL_CUDA
#define VIGIL_ON_DEVICE(stream, call) \
  ((stream).kind() == ::vigil::kernels::DeviceKind::cuda ? cuda::call : cpu::call)
#else
// Without the backend there are no CUDA streams.
#define VIGIL_ON_DEVICE(stream, call) cpu::call
#endif
