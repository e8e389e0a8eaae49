// A model that has read a past and a window, and is asked about both.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/view.h"
#include "engine/past/past.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "tests/engine/made_up_model.h"
#include "tests/kernels/on_device.h"

namespace vigil::past::testing {

using kernels::DType;
using kernels::tests_on_gpu;

constexpr int kLayers = 3;
/// Tokens of the past, of the window that follows, and of the question after it.
constexpr std::int32_t kPast = 90, kWindow = 20, kQuestion = 7;

inline std::vector<kernels::Stream> a_stream_each(int ranks) {
  std::vector<kernels::Stream> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.push_back(tests_on_gpu() ? kernels::Stream::cuda(rank) : kernels::Stream::cpu(1));
  return streams;
}

inline std::vector<std::int32_t> counted(std::int32_t first, std::int32_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// A model that has read past and window, with a cache that holds numbers of bf16 alone.
struct Asked {
  std::vector<kernels::Stream> streams;
  run::CachedModel model;
  run::PassRunner passes;
  kv::View view;

  explicit Asked(int ranks = 1, DType dtype = DType::f32)
      : streams(a_stream_each(ranks)),
        model(stream::testing::made_up_model(kLayers),
              {.memory = a_stream_each(ranks), .compute = dtype, .kv_tokens = 256, .page_tokens = 8}),
        passes(model, streams),
        view(model.book) {
    view.append(kPast + kWindow + kQuestion);
    const auto tokens = counted(40, kPast + kWindow), own = counted(0, kPast + kWindow);
    run::Pass pass;
    pass.rows.push_back({tokens, {}});
    for (const std::int32_t i : own) pass.positions.push_back({i, i % 5, i % 3});
    pass.segments.push_back({view.slots().first(own.size()), own, 0});
    passes.run(pass);
    passes.settle();
    if (dtype == DType::bf16) return;
    for (std::size_t rank = 0; rank < streams.size(); ++rank) {
      const kv::PageStore& pages = model.parts[rank]->pages;
      std::vector<float> values(static_cast<std::size_t>(pages.pages() * pages.layout().page_elements()));
      const std::size_t bytes = values.size() * sizeof(float);
      kernels::download(streams[rank], values.data(), pages.page(0), bytes);
      for (float& value : values) value = kernels::to_float(kernels::to_bf16(value));
      kernels::upload(streams[rank], pages.page(0), values.data(), bytes);
      streams[rank].synchronize();
    }
  }

  std::span<const std::int32_t> slots() const { return view.slots(); }
  /// What of them are not in a past that has so many tokens.
  std::span<const std::int32_t> seen(std::int32_t past = kPast) const {
    return slots().subspan(static_cast<std::size_t>(past));
  }

  /// The pasts of all parts, of patches of ten tokens.
  std::vector<std::unique_ptr<Past>> pasts(const PastOptions& options, std::int32_t tokens = kPast) {
    std::vector<std::unique_ptr<Past>> pasts;
    for (std::size_t rank = 0; rank < streams.size(); ++rank) {
      const kv::PageStore& pages = model.parts[rank]->pages;
      pasts.push_back(
          std::make_unique<Past>(streams[rank], model.folder->config.text, pages.layout(), options));
      for (std::int32_t first = 0; first < tokens; first += 10) {
        const std::int32_t count = std::min(10, tokens - first);
        pasts.back()->append(
            streams[rank], pages,
            slots().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
            counted(first, count));
      }
      pasts.back()->lay(streams[rank]);
    }
    return pasts;
  }

  /// The logits after the question, whose pages are these; with two, of two questions in one pass, of which
  /// the second sees other pages.
  std::vector<std::vector<float>> ask(const std::vector<std::span<const std::int32_t>>& keys,
                                      const model::Attend& attend, run::SequencePast* before = nullptr) {
    const auto tokens = counted(7, kQuestion);
    std::vector<std::vector<std::int32_t>> own;
    run::Pass pass;
    pass.attend = &attend;
    if (before != nullptr) pass.before.push_back({0, before, kPast + kWindow});
    for (const auto& each : keys) {
      own.push_back(counted(static_cast<std::int32_t>(each.size()) - kQuestion, kQuestion));
      pass.rows.push_back({tokens, {}});
      for (std::int32_t i = 0; i < kQuestion; ++i) {
        const std::int32_t at = kPast + kWindow + i;
        pass.positions.push_back({at, at, at});
      }
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      pass.segments.push_back({keys[i], own[i], static_cast<std::int64_t>(i) * kQuestion});
      pass.outputs.push_back(static_cast<std::int32_t>(i + 1) * kQuestion - 1);
    }
    passes.run(pass);
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = passes.logits(i);
      logits.emplace_back(found.begin(), found.end());
    }
    return logits;
  }
};

inline std::vector<Past*> parts_of(const std::vector<std::unique_ptr<Past>>& pasts) {
  std::vector<Past*> parts;
  for (const auto& past : pasts) parts.push_back(past.get());
  return parts;
}

inline PastOptions everything(const std::string& method = "resv") {
  PastOptions options{.method = method};
  if (method != "all") {
    options.settings = retrieval::resv_named(method);
    options.settings->th_wics = 1;
  }
  return options;
}

/// The largest difference of logits, of which the largest is about 1.
inline double off(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return std::isfinite(most) ? most : 1e9;
}
// Keys are added up in another order, in f32.
constexpr double kOff = 2e-5;

}  // namespace vigil::past::testing
