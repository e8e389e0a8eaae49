// Paged keys and values with queries on a GPU: ugly on purpose, with the answer in double precision.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace vigil::kernels::test {

inline bool gpu_here() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

inline void require_cuda(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

/// Device memory with what a vector holds, or with every byte 0xFF.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    require_cuda(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  explicit OnDevice(std::size_t count) : count_(count) {
    require_cuda(cudaMalloc(&data_, std::max<std::size_t>(count * sizeof(T), 1)));
    poison();
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  void poison() const { require_cuda(cudaMemset(data_, 0xFF, count_ * sizeof(T))); }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    require_cuda(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t count_;
};

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline constexpr std::uint16_t kNanBf16 = 0xFFFF;

/// A stream: `tokens` of them stored from place `offset` of its first page on, some of which ask.
struct StreamShape {
  int tokens = 0;
  std::vector<int> queries;  // ascending
  int offset = 0;
};

inline std::vector<int> every(int tokens, int stride, int first = 0) {
  std::vector<int> queries;
  for (int token = first; token < tokens; token += stride) queries.push_back(token);
  return queries;
}
inline std::vector<int> last(int tokens, int count) {
  return every(tokens, 1, tokens - count);
}

struct PagedShape {
  int heads = 1;
  int kv_heads = 1;
  int head_dim = 128;
  std::vector<StreamShape> streams;
  double dead = 0;       // share of the tokens that are no live keys
  int dead_page = 0;     // every so many pages one has no live key; 0: none
  int skipped_rows = 0;  // rows between streams that nothing may write
  int padding = 0;       // columns beyond heads * head_dim, a multiple of 8
  float spread = 1;      // of queries
};

/// Everything that no live key or query needs is NaN.
class PagedCase {
 public:
  PagedCase(const PagedShape& shape, unsigned seed) : shape_(shape), random_(seed) {
    std::int64_t rows = shape.skipped_rows;
    for (const StreamShape& stream : shape.streams) {
      first_page.push_back(static_cast<std::int32_t>(page_ids.size()));
      first_row.push_back(static_cast<std::int32_t>(rows));
      const int pages = (stream.offset + stream.tokens + 63) / 64;
      pages_of.push_back(pages);
      for (int page = 0; page < pages; ++page) page_ids.push_back(static_cast<std::int32_t>(page_ids.size()));
      rows += static_cast<std::int64_t>(stream.queries.size()) + shape.skipped_rows;
    }
    rows_ = rows;
    pool_pages = static_cast<std::int64_t>(page_ids.size()) + 3;  // some are nobody's
    for (std::int32_t& id : page_ids) id += 2;
    std::shuffle(page_ids.begin(), page_ids.end(), random_);
    live.assign(page_ids.size(), 0);
    position.assign(static_cast<std::size_t>(rows), -1);
    q.assign(static_cast<std::size_t>(rows * stride()), kNanBf16);
    pool.assign(static_cast<std::size_t>(pool_pages * page_stride()), kNanBf16);
    for (std::size_t s = 0; s < shape.streams.size(); ++s) fill(s);
  }

  const PagedShape& shape() const { return shape_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t stride() const { return std::int64_t{shape_.heads} * shape_.head_dim + shape_.padding; }
  // The second of two layers.
  std::int64_t layer_offset() const { return std::int64_t{2} * shape_.kv_heads * 64 * shape_.head_dim; }
  std::int64_t value_offset() const { return std::int64_t{shape_.kv_heads} * 64 * shape_.head_dim; }
  std::int64_t page_stride() const { return 2 * layer_offset(); }
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_dim)); }
  /// Rows of q and out of a stream's query.
  std::int64_t row(std::size_t stream, std::size_t query) const {
    return first_row[stream] + static_cast<std::int64_t>(query);
  }

  /// One head of one query, exactly.
  std::vector<double> expected(std::size_t stream, std::size_t query, int head) const {
    const int dim = shape_.head_dim;
    const int kv_head = head / (shape_.heads / shape_.kv_heads);
    const std::uint16_t* asks = q.data() + row(stream, query) * stride() + std::int64_t{head} * dim;
    std::vector<double> question(static_cast<std::size_t>(dim));
    for (int d = 0; d < dim; ++d)
      question[static_cast<std::size_t>(d)] = double{from_bf16(asks[d])} * scale();
    std::vector<double> scores;
    std::vector<const std::uint16_t*> values;
    double largest = -std::numeric_limits<double>::infinity();
    const int last = position[static_cast<std::size_t>(row(stream, query))];
    for (int place = 0; place <= last; ++place) {
      const auto page = static_cast<std::size_t>(first_page[stream] + place / 64);
      if ((live[page] >> (place % 64) & 1) == 0) continue;
      const std::uint16_t* key = pool.data() + page_ids[page] * page_stride() + layer_offset() +
                                 (std::int64_t{kv_head} * 64 + place % 64) * dim;
      double score = 0;
      for (int d = 0; d < dim; ++d)
        score += question[static_cast<std::size_t>(d)] * double{from_bf16(key[d])};
      scores.push_back(score);
      values.push_back(key + value_offset());
      largest = std::max(largest, score);
    }
    double total = 0;
    for (double& score : scores) total += score = std::exp(score - largest);
    std::vector<double> result(static_cast<std::size_t>(dim), 0.0);
    for (std::size_t j = 0; j < scores.size(); ++j)
      for (int d = 0; d < dim; ++d)
        result[static_cast<std::size_t>(d)] += scores[j] / total * double{from_bf16(values[j][d])};
    return result;
  }

  struct Errors {
    double whole = 0;    // relative error of all that was looked at, in norm
    double worst = 0;    // of one head of one query
    std::string strays;  // what was written where nothing belongs, or not written
  };
  /// Compares `out` (poisoned with 0xFF before) in about `sample` rows.
  Errors compare(const std::vector<std::uint16_t>& out, std::size_t sample = 4000) const {
    Errors errors;
    std::vector<char> known(static_cast<std::size_t>(rows_), 0);
    std::vector<std::pair<std::size_t, std::size_t>> asked;
    for (std::size_t s = 0; s < shape_.streams.size(); ++s)
      for (std::size_t i = 0; i < shape_.streams[s].queries.size(); ++i) {
        asked.emplace_back(s, i);
        known[static_cast<std::size_t>(row(s, i))] = 1;
      }
    const std::int64_t columns = std::int64_t{shape_.heads} * shape_.head_dim;
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t c = 0; c < stride(); ++c) {
        const std::uint16_t bits = out[static_cast<std::size_t>(r * stride() + c)];
        const bool inside = known[static_cast<std::size_t>(r)] != 0 && c < columns;
        const bool fine = inside ? std::isfinite(from_bf16(bits)) : bits == 0xFFFF;
        if (!fine && errors.strays.empty())
          errors.strays = "row " + std::to_string(r) + " column " + std::to_string(c) +
                          (inside ? " is not finite" : " was written");
      }
    const std::size_t step = std::max<std::size_t>(1, asked.size() / sample);
    std::atomic<std::size_t> next{0};
    struct Part {
      double error = 0, norm = 0, worst = 0;
    };
    std::vector<Part> parts(std::max(1U, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    threads.reserve(parts.size());
    for (Part& part : parts)
      threads.emplace_back([&] {
        for (std::size_t i = next.fetch_add(step); i < asked.size(); i = next.fetch_add(step))
          for (int head = 0; head < shape_.heads; ++head) {
            const std::vector<double> truth = expected(asked[i].first, asked[i].second, head);
            const std::uint16_t* got = out.data() + row(asked[i].first, asked[i].second) * stride() +
                                       std::int64_t{head} * shape_.head_dim;
            double error = 0;
            double norm = 0;
            for (int d = 0; d < shape_.head_dim; ++d) {
              const double difference = double{from_bf16(got[d])} - truth[static_cast<std::size_t>(d)];
              error += difference * difference;
              norm += truth[static_cast<std::size_t>(d)] * truth[static_cast<std::size_t>(d)];
            }
            part.error += error;
            part.norm += norm;
            // NaN must not get lost in a maximum.
            part.worst = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                           : std::max(part.worst, std::sqrt(error / norm));
          }
      });
    for (std::thread& thread : threads) thread.join();
    double error = 0;
    double norm = 0;
    for (const Part& part : parts) {
      error += part.error;
      norm += part.norm;
      errors.worst = std::max(errors.worst, part.worst);
    }
    errors.whole = std::sqrt(error / norm);
    return errors;
  }

  std::int64_t pool_pages = 0;
  std::vector<std::int32_t> first_page, pages_of, first_row;  // of each stream
  std::vector<std::int32_t> page_ids;
  std::vector<std::uint64_t> live;
  std::vector<std::int32_t> position;  // of each row; -1 where none asks
  std::vector<std::uint16_t> q, pool;

 private:
  std::uint16_t draw(float spread) { return to_bf16(spread * normal_(random_)); }

  void fill(std::size_t s) {
    const StreamShape& stream = shape_.streams[s];
    std::vector<char> asks(static_cast<std::size_t>(stream.tokens), 0);
    for (std::size_t i = 0; i < stream.queries.size(); ++i) {
      asks[static_cast<std::size_t>(stream.queries[i])] = 1;
      const std::int64_t r = row(s, i);
      position[static_cast<std::size_t>(r)] = stream.offset + stream.queries[i];
      for (std::int64_t c = 0; c < std::int64_t{shape_.heads} * shape_.head_dim; ++c)
        q[static_cast<std::size_t>(r * stride() + c)] = draw(shape_.spread);
    }
    for (int token = 0; token < stream.tokens; ++token) {
      const int place = stream.offset + token;
      const int ordinal = place / 64;
      const bool dies =
          uniform_(random_) < shape_.dead ||
          (shape_.dead_page > 0 && ordinal % shape_.dead_page == 0 && ordinal + 1 < pages_of[s]);
      if (dies && asks[static_cast<std::size_t>(token)] == 0) continue;
      const auto page = static_cast<std::size_t>(first_page[s] + ordinal);
      live[page] |= std::uint64_t{1} << (place % 64);
      for (int head = 0; head < shape_.kv_heads; ++head) {
        const std::int64_t at = page_ids[page] * page_stride() + layer_offset() +
                                (std::int64_t{head} * 64 + place % 64) * shape_.head_dim;
        for (int d = 0; d < shape_.head_dim; ++d) {
          pool[static_cast<std::size_t>(at + d)] = draw(1);
          pool[static_cast<std::size_t>(at + value_offset() + d)] = draw(1);
        }
      }
    }
  }

  PagedShape shape_;
  std::int64_t rows_ = 0;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  std::uniform_real_distribution<double> uniform_;
};

}  // namespace vigil::kernels::test
