// What leaves streams, counted on its way to whoever remembers it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "actors/status/metrics.h"
#include "engine/stream/page_sink.h"

namespace vigil::actors {

class CountedPages final : public stream::PageSink {
 public:
  /// The metrics have to outlive it. `to`: null if nothing is remembered, and all is let go at once.
  explicit CountedPages(Metrics& metrics, std::shared_ptr<stream::PageSink> to = nullptr)
      : metrics_(metrics), to_(std::move(to)) {}

  bool takes_keyless() const override { return to_ && to_->takes_keyless(); }
  void take(stream::LeavingTokens tokens) noexcept override {
    metrics_.left_stream(tokens.why, static_cast<std::uint64_t>(tokens.view.size()));
    if (to_) to_->take(std::move(tokens));
  }
  void let_go() noexcept override {
    if (to_) to_->let_go();
  }

 private:
  Metrics& metrics_;
  std::shared_ptr<stream::PageSink> to_;
};

}  // namespace vigil::actors
