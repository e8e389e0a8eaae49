// How much of the time goes into matrix products: the figure that the benches of the engine report.
#pragma once

namespace vigil::kernels {

/// Starts (from zero) or stops adding up the time that threads spend in matrix products. Off by default,
/// since it reads a clock twice a product.
void measure_products(bool on);

/// Seconds in products since measuring started, as the sum over threads divided by the threads that ran each
/// product: wall time for products that own the machine, a thread's share for those inside of attention.
double product_seconds();

/// Processor time of those products over all threads: the calling thread's own, times the threads that share
/// the product, which get equal parts; inside of a parallel region each thread counts for itself.
double product_cpu_seconds();

/// Floating-point operations of those products.
double product_flops();

}  // namespace vigil::kernels
