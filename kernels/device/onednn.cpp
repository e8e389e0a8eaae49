#include "kernels/device/onednn.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <unordered_map>

#include <omp.h>

#include "kernels/device/product_time.h"

namespace vigil::kernels::onednn {
namespace {

using dnnl::memory;

// Counters of a bench; relaxed, since only their sums matter.
std::atomic<bool> measuring{false};
std::atomic<std::int64_t> product_nanoseconds{0};
std::atomic<std::int64_t> product_operations{0};

struct KeyHash {
  std::size_t operator()(const ProductKey& key) const {
    std::size_t hash = 0;
    const auto mix = [&hash](std::int64_t value) {
      hash ^= static_cast<std::size_t>(value) + 0x9e3779b97f4a7c15ULL + (hash << 6U) + (hash >> 2U);
    };
    for (const auto value :
         {key.m, key.n, key.k, key.x_stride, key.w_stride, key.out_stride, key.multiply_stride,
          std::int64_t(key.in), std::int64_t(key.out), std::int64_t(key.activation),
          std::int64_t(key.w_transposed), std::int64_t(key.bias), std::int64_t(key.accumulate),
          std::int64_t(key.multiply)})
      mix(value);
    return hash;
  }
};

memory::data_type type_of(DType type) {
  return type == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// A primitive with its memory objects, whose pointers are set before each run.
struct Product {
  dnnl::matmul primitive;
  memory x, w, bias, multiply, out;
  std::unordered_map<int, memory> arguments;

  explicit Product(const ProductKey& key)
      : x({{key.m, key.k}, type_of(key.in), {key.x_stride, 1}}, cpu(), nullptr),
        w(key.w_transposed ? memory::desc({key.k, key.n}, type_of(key.in), {1, key.w_stride})
                           : memory::desc({key.k, key.n}, type_of(key.in), {key.w_stride, 1}),
          cpu(), nullptr),
        bias({{1, key.n}, memory::data_type::f32, {key.n, 1}}, cpu(), nullptr),
        multiply({{key.m, key.n}, type_of(key.out), {key.multiply_stride, 1}}, cpu(), nullptr),
        out({{key.m, key.n}, type_of(key.out), {key.out_stride, 1}}, cpu(), nullptr) {
    dnnl::post_ops after;
    if (key.accumulate) after.append_sum(1.0F);
#if DNNL_VERSION_MAJOR >= 3
    if (key.activation == Activation::gelu) after.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    if (key.activation == Activation::silu) after.append_eltwise(dnnl::algorithm::eltwise_swish, 1, 0);
#else
    if (key.activation == Activation::gelu) after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
    if (key.activation == Activation::silu) after.append_eltwise(1, dnnl::algorithm::eltwise_swish, 1, 0);
#endif
    if (key.multiply) after.append_binary(dnnl::algorithm::binary_mul, multiply.get_desc());
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const auto bias_desc = key.bias ? bias.get_desc() : memory::desc();
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(cpu(), x.get_desc(), w.get_desc(), bias_desc,
                                                   out.get_desc(), attributes);
#else
    const dnnl::matmul::desc operation(x.get_desc(), w.get_desc(), bias_desc, out.get_desc());
    const dnnl::matmul::primitive_desc description(operation, attributes, cpu());
#endif
    primitive = dnnl::matmul(description);
    arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, out}};
    if (key.bias) arguments.emplace(DNNL_ARG_BIAS, bias);
    if (key.multiply) {
      const int position = (key.accumulate ? 1 : 0) + (key.activation != Activation::none ? 1 : 0);
      arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, multiply);
    }
  }
};

/// The calling thread's primitives. Windows differ in length, so shapes keep coming: past a limit all are
/// dropped and made again.
Product& product_for(const ProductKey& key) {
  constexpr std::size_t kMostShapes = 1024;
  thread_local std::unordered_map<ProductKey, Product, KeyHash> products;
  const auto found = products.find(key);
  if (found != products.end()) return found->second;
  if (products.size() >= kMostShapes) products.clear();
  return products.try_emplace(key, key).first->second;
}

}  // namespace

void product(const ProductKey& key, const void* x, const void* w, const float* bias, const void* multiply,
             void* out) {
  thread_local dnnl::stream stream(cpu());
  Product& made = product_for(key);
  // oneDNN takes what it only reads through the same pointer type as what it writes.
  made.x.set_data_handle(const_cast<void*>(x));
  made.w.set_data_handle(const_cast<void*>(w));
  made.out.set_data_handle(out);
  if (key.bias) made.bias.set_data_handle(const_cast<float*>(bias));
  if (key.multiply) made.multiply.set_data_handle(const_cast<void*>(multiply));
  if (!measuring.load(std::memory_order_relaxed)) {
    made.primitive.execute(stream, made.arguments);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  made.primitive.execute(stream, made.arguments);
  const auto spent = std::chrono::steady_clock::now() - start;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  product_nanoseconds += omp_in_parallel() != 0 ? nanoseconds / omp_get_num_threads() : nanoseconds;
  product_operations += 2 * key.m * key.n * key.k;
}

}  // namespace vigil::kernels::onednn

namespace vigil::kernels {

void measure_products(bool on) {
  if (on) {
    onednn::product_nanoseconds = 0;
    onednn::product_operations = 0;
  }
  onednn::measuring = on;
}

double product_seconds() {
  return static_cast<double>(onednn::product_nanoseconds) * 1e-9;
}

double product_flops() {
  return static_cast<double>(onednn::product_operations);
}

}  // namespace vigil::kernels
