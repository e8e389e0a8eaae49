// The gate of a gated MLP whose result goes into products of E4M3.
#pragma once

#include <cuda_runtime.h>

#include "kernels/linear/linear.h"

namespace vigil::kernels::cuda {

/// As gate.h says of `quantized_gate`.
void gate_e4m3(cudaStream_t stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
               Matrix out);

}  // namespace vigil::kernels::cuda
