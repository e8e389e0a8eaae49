#include "engine/run/product_meter.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/device/buffer.h"
#include "kernels/device/product_time.h"
#include "kernels/linear/linear.h"

namespace vigil::run {

void ProductMeter::start() {
  kernels::measure_products(true);
}

double ProductMeter::seconds() {
  return kernels::product_seconds();
}

double ProductMeter::cpu_seconds() {
  return kernels::product_cpu_seconds();
}

double ProductMeter::flops() {
  return kernels::product_flops();
}

double ProductMeter::limit(kernels::DType compute, int threads) {
  constexpr std::int64_t kEdge = 2048;
  kernels::Stream stream = kernels::Stream::cpu(threads);
  const auto made = [&](std::uint32_t state) {
    kernels::Buffer values(stream, static_cast<std::size_t>(kEdge * kEdge) * kernels::size_of(compute));
    for (std::int64_t i = 0; i < kEdge * kEdge; ++i) {
      // In [-1, 1): zeros would flatter the hardware.
      state = state * 1664525U + 1013904223U;
      const float value = static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F;
      if (compute == kernels::DType::bf16) {
        values.as<kernels::bf16>()[i] = kernels::to_bf16(value);
      } else {
        values.as<float>()[i] = value;
      }
    }
    return values;
  };
  const kernels::Buffer x = made(1);
  const kernels::Buffer w = made(2);
  const kernels::Buffer out(stream, x.bytes());
  const auto view = [&](const kernels::Buffer& from) {
    return kernels::dense(static_cast<const void*>(from.data()), compute, kEdge, kEdge);
  };
  std::array<double, 9> rates{};
  for (double& rate : rates) {
    kernels::measure_products(true);
    kernels::linear(stream, view(x), view(w), kernels::dense(out.data(), compute, kEdge, kEdge));
    rate = kernels::product_flops() / kernels::product_cpu_seconds() * stream.threads();
  }
  kernels::measure_products(false);
  std::nth_element(rates.begin(), rates.begin() + rates.size() / 2, rates.end());
  return rates[rates.size() / 2];
}

}  // namespace vigil::run
