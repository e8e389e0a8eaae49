#include "kernels/linear/onednn.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <omp.h>

#include "kernels/device/product_time.h"
#include "kernels/device/slow_path.h"
#include "kernels/device/stream.h"

namespace vigil::kernels::onednn {
namespace {

using dnnl::memory;

// Of each thread.
constexpr int kMostShapes = 64;

// Counters of a bench; relaxed, since only their sums matter.
std::atomic<bool> measuring{false};
std::atomic<std::int64_t> product_nanoseconds{0};
std::atomic<std::int64_t> product_cpu_nanoseconds{0};
std::atomic<std::int64_t> product_operations{0};

/// What the calling thread has spent of a processor so far.
std::int64_t thread_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

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
          std::int64_t(key.multiply), std::int64_t(key.threads)})
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

/// By the name of oneDNN's code for a product: "ref" is what computes anything, an element at a time.
void tell_if_slow(std::string_view code, DType in) {
  if (!code.starts_with("ref")) return;
  static SlowPath type{"linear", "this processor has no products of bf16: oneDNN's reference code"};
  static SlowPath shape{
      "linear", "a shape, or what follows the product, that this oneDNN is not fast at: its reference code"};
  (in == DType::bf16 && !cpu_has_bf16() ? type : shape).taken();
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
    tell_if_slow(description.impl_info_str(), key.in);
    primitive = dnnl::matmul(description);
    arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, out}};
    if (key.bias) arguments.emplace(DNNL_ARG_BIAS, bias);
    if (key.multiply) {
      const int position = (key.accumulate ? 1 : 0) + (key.activation != Activation::none ? 1 : 0);
      arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, multiply);
    }
  }
};

/// The primitives that were used last. Windows differ in length, so shapes keep coming, and each costs some
/// 80 KB and 0.1 ms to make: of those that are not used, only so many are kept.
class Products {
 public:
  Product& of(const ProductKey& key) {
    const auto found = places_.find(key);
    if (found != places_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->second;
    }
    if (recent_.size() >= std::size_t{kMostShapes}) {
      places_.erase(recent_.back().first);
      recent_.pop_back();
    }
    recent_.emplace_front(key, key);
    places_.emplace(key, recent_.begin());
    return recent_.front().second;
  }

 private:
  using Recent = std::list<std::pair<ProductKey, Product>>;
  Recent recent_;
  std::unordered_map<ProductKey, Recent::iterator, KeyHash> places_;
};

/// The calling thread's primitives.
Product& product_for(const ProductKey& key) {
  // oneDNN keeps those of all threads by itself, too.
  static const bool limited = dnnl_set_primitive_cache_capacity(kMostShapes) == dnnl_success;
  static_cast<void>(limited);
  thread_local Products products;
  return products.of(key);
}

}  // namespace

void product(const ProductKey& key, const void* x, const void* w, const float* bias, const void* multiply,
             void* out) {
  thread_local dnnl::stream stream(cpu());
  const bool shared = omp_in_parallel() == 0;
  ProductKey here = key;
  here.threads = shared ? omp_get_max_threads() : 1;
  Product& made = product_for(here);
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
  const std::int64_t cpu_start = thread_nanoseconds();
  made.primitive.execute(stream, made.arguments);
  const std::int64_t cpu = thread_nanoseconds() - cpu_start;
  const auto spent = std::chrono::steady_clock::now() - start;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  product_nanoseconds += shared ? nanoseconds : nanoseconds / omp_get_num_threads();
  product_cpu_nanoseconds += cpu * here.threads;
  product_operations += 2 * key.m * key.n * key.k;
}

}  // namespace vigil::kernels::onednn

namespace vigil::kernels {

void measure_products(bool on) {
  if (on) {
    onednn::product_nanoseconds = 0;
    onednn::product_cpu_nanoseconds = 0;
    onednn::product_operations = 0;
  }
  onednn::measuring = on;
}

double product_seconds() {
  return static_cast<double>(onednn::product_nanoseconds) * 1e-9;
}

double product_cpu_seconds() {
  return static_cast<double>(onednn::product_cpu_nanoseconds) * 1e-9;
}

double product_flops() {
  return static_cast<double>(onednn::product_operations);
}

}  // namespace vigil::kernels
