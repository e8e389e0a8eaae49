// The cases of tests/golden/resv.txt (tools/golden_resv.py tells what its lines are).
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace vigil {

struct ResvGolden {
  /// Of a layer.
  struct Clusters {
    std::vector<std::int32_t> assigned, counts;
    std::vector<std::uint64_t> bits;
  };
  struct Choice {
    /// Of its own first token, or of the mean key.
    std::string compared;
    std::size_t layer = 0;
    std::string scores, rows;
    double ratio = 0;
    std::int64_t tokens = 0;
    /// A list a KV head.
    std::vector<std::vector<std::int32_t>> chosen;
  };

  std::string name;
  std::int64_t layers = 0, kv_heads = 0, head_dim = 0, heads = 0, tokens = 0, asked = 0, planes = 0;
  int threshold = 0;
  std::uint64_t seed = 0;
  float scale = 0;
  std::vector<std::int64_t> calls;
  /// [layers, tokens, kv_heads * head_dim] and [asked, heads * head_dim].
  std::vector<float> keys, queries;
  std::vector<std::uint64_t> hashes;
  std::vector<Clusters> first, mean;
  std::vector<Choice> choices;

  std::int64_t cols() const { return kv_heads * head_dim; }
};

class ResvGoldenFile {
 public:
  static std::vector<ResvGolden> read() {
    ResvGoldenFile file;
    std::vector<ResvGolden> cases;
    for (std::string word; file.in_ >> word;) {
      if (word != "case") throw std::runtime_error("resv.txt: " + word + " where a case begins");
      cases.push_back(file.one());
    }
    return cases;
  }

 private:
  ResvGoldenFile() : in_(VIGIL_SOURCE_DIR "/tests/golden/resv.txt") {}

  template <typename T>
  T next() {
    T value{};
    if (!(in_ >> value)) throw std::runtime_error("resv.txt: it ends within a case");
    return value;
  }
  template <typename T>
  std::vector<T> some(std::int64_t count) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(next<T>());
    return values;
  }
  std::vector<float> eighths(std::int64_t count) {
    std::vector<float> values = some<float>(count);
    for (float& value : values) value /= 8;
    return values;
  }
  std::vector<std::uint64_t> words(std::int64_t count) {
    std::vector<std::uint64_t> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(std::stoull(next<std::string>(), nullptr, 16));
    return values;
  }
  void expect(const std::string& word) {
    if (const auto found = next<std::string>(); found != word)
      throw std::runtime_error("resv.txt: " + found + " in place of " + word);
  }

  std::vector<ResvGolden::Clusters> clusters(const ResvGolden& of, const std::string& kind) {
    expect("clusters");
    expect(kind);
    std::vector<ResvGolden::Clusters> all;
    for (std::int64_t layer = 0; layer < of.layers; ++layer) {
      ResvGolden::Clusters one;
      one.assigned = some<std::int32_t>(of.tokens);
      one.counts = some<std::int32_t>(next<std::int64_t>());
      one.bits = words(static_cast<std::int64_t>(one.counts.size()));
      all.push_back(one);
    }
    return all;
  }

  ResvGolden one() {
    ResvGolden now;
    in_ >> now.name >> now.layers >> now.kv_heads >> now.head_dim >> now.heads >> now.tokens >> now.asked >>
        now.planes >> now.threshold >> now.seed >> now.scale;
    expect("calls");
    now.calls = some<std::int64_t>(next<std::int64_t>());
    expect("keys");
    now.keys = eighths(now.layers * now.tokens * now.cols());
    expect("queries");
    now.queries = eighths(now.asked * now.heads * now.head_dim);
    expect("hashes");
    now.hashes = words(now.layers * now.tokens);
    now.first = clusters(now, "first");
    now.mean = clusters(now, "mean");
    expect("choices");
    now.choices.resize(next<std::size_t>());
    for (ResvGolden::Choice& choice : now.choices) {
      expect("choose");
      in_ >> choice.compared >> choice.layer >> choice.scores >> choice.rows >> choice.ratio >> choice.tokens;
      for (std::int64_t head = 0; head < now.kv_heads; ++head)
        choice.chosen.push_back(some<std::int32_t>(next<std::int64_t>()));
    }
    expect("end");
    return now;
  }

  std::ifstream in_;
};

}  // namespace vigil
