#include "engine/kv/retrieval/retriever.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/device/element.h"

namespace vigil::retrieval {

using kernels::ClusterBits;
using kernels::ConstMatrix;
using kernels::DType;
using kernels::Stream;
using kernels::WicsumRows;
using kernels::WicsumScores;

namespace {

/// Tokens of a call with keys of all layers.
std::int64_t tokens_of(const NewKeys& keys, const KeyShape& shape) {
  if (keys.keys.cols != shape.cols() || keys.keys.rows % shape.layers != 0)
    throw std::invalid_argument("keys do not fit their stream");
  return keys.keys.rows / shape.layers;
}

void check_asked(const Asked& asked, const KeyShape& shape) {
  if (asked.layer < 0 || asked.layer >= shape.layers || asked.q.cols < 1 || asked.q.cols % shape.cols() != 0)
    throw std::invalid_argument("queries do not fit their stream");
  if (asked.tokens < 0) throw std::invalid_argument("fewer than no tokens");
}

ChosenTokens tokens_in(const std::vector<std::int32_t>& assigned,
                       const std::vector<std::vector<std::int32_t>>& lists) {
  ChosenTokens chosen;
  for (const std::vector<std::int32_t>& list : lists) chosen.push_back(ranges_of(assigned, list));
  return chosen;
}

class Resv final : public Retriever {
 public:
  Resv(const Stream& stream, const KeyShape& shape, const ResvSettings& settings)
      : table_(stream, shape, settings) {}

  void append(Stream& stream, const NewKeys& keys) override { table_.append(stream, keys); }

  ChosenTokens choose(Stream& stream, const Asked& asked) override {
    ClusterStore& store = table_.store();
    check_asked(asked, store.shape());
    const auto lists = store.choose(stream, store.keys(asked.layer), asked.q, asked.scale, table_.choice());
    return tokens_in(store.assigned(stream, asked.layer), lists);
  }

  std::int64_t bytes() const override { return table_.store().bytes(); }

 private:
  HcTable table_;
};

/// Those that look at no key.
class Blind : public Retriever {
 public:
  explicit Blind(const KeyShape& shape) : shape_(shape) {}

  void append(Stream&, const NewKeys& keys) override { tokens_ += tokens_of(keys, shape_); }

  ChosenTokens choose(Stream&, const Asked& asked) override {
    check_asked(asked, shape_);
    ChosenTokens chosen;
    for (int head = 0; head < shape_.kv_heads; ++head)
      chosen.push_back(of_head(asked, head, std::min(asked.tokens, tokens_)));
    return chosen;
  }

  std::int64_t bytes() const override { return 0; }

 protected:
  /// `count`: as many as may be, of those that there are.
  virtual std::vector<TokenRange> of_head(const Asked& asked, int head, std::int64_t count) const = 0;
  std::int64_t tokens() const { return tokens_; }

 private:
  KeyShape shape_;
  std::int64_t tokens_ = 0;
};

class All final : public Blind {
  using Blind::Blind;
  std::vector<TokenRange> of_head(const Asked&, int, std::int64_t) const override {
    if (tokens() == 0) return {};
    return {{0, tokens()}};
  }
};

class Recent final : public Blind {
  using Blind::Blind;
  std::vector<TokenRange> of_head(const Asked&, int, std::int64_t count) const override {
    if (count == 0) return {};
    return {{tokens() - count, count}};
  }
};

/// Evenly spread (SplitMix64).
std::uint64_t draw(std::uint64_t which, std::uint64_t token) {
  std::uint64_t z = which * 0xD1B54A32D192ED03ULL + (token + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

class Any final : public Blind {
  using Blind::Blind;
  std::vector<TokenRange> of_head(const Asked& asked, int head, std::int64_t count) const override {
    const std::uint64_t which =
        draw(draw(static_cast<std::uint64_t>(asked.layer), static_cast<std::uint64_t>(head)),
             static_cast<std::uint64_t>(tokens()));
    std::vector<std::pair<std::uint64_t, std::int64_t>> draws;
    draws.reserve(static_cast<std::size_t>(tokens()));
    for (std::int64_t token = 0; token < tokens(); ++token)
      draws.emplace_back(draw(which, static_cast<std::uint64_t>(token)), token);
    const auto end = draws.begin() + count;
    std::partial_sort(draws.begin(), end, draws.end());
    std::sort(draws.begin(), end, [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<TokenRange> ranges;
    for (auto one = draws.begin(); one != end; ++one) add_token(one->second, ranges);
    return ranges;
  }
};

/// Clusters that are given, and not found: those of a hash that only they have.
class Given : public Retriever {
 public:
  Given(const Stream& stream, const KeyShape& shape) : store_(stream, shape, 64, ClusterBits::first) {}

  void append(Stream& stream, const NewKeys& keys) override {
    const std::int64_t count = tokens_of(keys, store_.shape());
    if (count == 0) return;
    std::vector<std::uint64_t> hashes;
    for (int layer = 0; layer < store_.shape().layers; ++layer)
      for (std::int64_t i = 0; i < count; ++i)
        hashes.push_back(by_token() ? static_cast<std::uint64_t>(store_.tokens() + i) : patches_);
    ++patches_;
    hashes_.assign(stream, hashes);
    // Those that differ nowhere.
    store_.append(stream, keys.keys, hashes_.data(), nullptr, 1);
  }

  std::int64_t bytes() const override { return store_.bytes(); }

 protected:
  virtual bool by_token() const = 0;
  ClusterStore& store() { return store_; }

 private:
  ClusterStore store_;
  kernels::DeviceArray<std::uint64_t> hashes_;
  std::uint64_t patches_ = 0;
};

class TopK final : public Given {
 public:
  using Given::Given;

  ChosenTokens choose(Stream& stream, const Asked& asked) override {
    check_asked(asked, store().shape());
    if (asked.tokens == 0) return ChosenTokens(static_cast<std::size_t>(store().shape().kv_heads));
    const auto lists = store().choose(stream, store().keys(asked.layer), asked.q, asked.scale,
                                      {WicsumScores::exp, WicsumRows::pooled, 0, asked.tokens});
    return tokens_in(store().assigned(stream, asked.layer), lists);
  }

 private:
  bool by_token() const override { return true; }
};

class Rekv final : public Given {
 public:
  using Given::Given;

  ChosenTokens choose(Stream& stream, const Asked& asked) override {
    const KeyShape& shape = store().shape();
    check_asked(asked, shape);
    const auto heads = static_cast<std::size_t>(shape.kv_heads);
    if (asked.tokens == 0 || asked.q.rows == 0) return ChosenTokens(heads);
    const std::vector<float> mean = mean_query(stream, asked.q);
    query_.assign(stream, mean);
    // One head of all elements.
    kernels::ClusterKeys keys = store().keys(asked.layer);
    keys.head_dim *= std::exchange(keys.kv_heads, 1);
    const auto lists = store().choose(
        stream, keys, kernels::dense(static_cast<const void*>(query_.data()), DType::f32, 1, shape.cols()),
        asked.scale, {WicsumScores::raw, WicsumRows::united, 0, asked.tokens});
    return ChosenTokens(heads, ranges_of(store().assigned(stream, asked.layer), lists.front()));
  }

 private:
  bool by_token() const override { return false; }

  /// Of all rows, and of the query heads that share a KV head: [kv_heads * head_dim].
  std::vector<float> mean_query(const Stream& stream, ConstMatrix q) {
    const KeyShape& shape = store().shape();
    const std::size_t element = kernels::size_of(q.dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>((q.rows - 1) * q.stride + q.cols) * element);
    kernels::download(stream, bytes.data(), q.data, bytes.size());
    q.data = bytes.data();
    const std::int64_t group = q.cols / shape.cols();
    std::vector<double> sums(static_cast<std::size_t>(shape.cols()));
    for (std::int64_t i = 0; i < q.rows; ++i)
      for (std::int64_t j = 0; j < q.cols; ++j) {
        const std::int64_t kv_head = j / shape.head_dim / group;
        sums[static_cast<std::size_t>(kv_head * shape.head_dim + j % shape.head_dim)] +=
            double{kernels::element(q, i, j)};
      }
    std::vector<float> mean;
    mean.reserve(sums.size());
    for (const double sum : sums)
      mean.push_back(static_cast<float>(sum / static_cast<double>(q.rows * group)));
    return mean;
  }

  kernels::DeviceArray<float> query_;
};

}  // namespace

RetrieverPtr make_resv(const Stream& stream, const KeyShape& shape, const ResvSettings& settings) {
  return std::make_unique<Resv>(stream, shape, settings);
}

RetrieverPtr make_retriever(std::string_view name, const Stream& stream, const KeyShape& shape) {
  if (shape.layers < 1 || shape.kv_heads < 1 || shape.head_dim < 1)
    throw std::invalid_argument("a stream of keys without layers, heads or elements");
  if (std::find(kResvForms.begin(), kResvForms.end(), name) != kResvForms.end())
    return make_resv(stream, shape, resv_named(name));
  if (name == "all") return std::make_unique<All>(shape);
  if (name == "recent") return std::make_unique<Recent>(shape);
  if (name == "random") return std::make_unique<Any>(shape);
  if (name == "topk") return std::make_unique<TopK>(stream, shape);
  if (name == "rekv") return std::make_unique<Rekv>(stream, shape);
  std::string known;
  for (const std::string_view each : kResvForms) known += std::string(each) + ", ";
  for (const std::string_view each : kControls) known += (each == "all" ? "" : ", ") + std::string(each);
  throw std::invalid_argument("\"" + std::string(name) + "\" is no retriever: " + known);
}

}  // namespace vigil::retrieval
