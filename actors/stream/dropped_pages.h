// Where keys and values go that streams keep no longer, as long as the cache has one tier.
#pragma once

#include <cstdint>
#include <string>

#include "actors/status/metrics.h"
#include "engine/stream/page_sink.h"

namespace vigil::actors {

/// Lets them go at once, and counts them.
class DroppedPages final : public stream::PageSink {
 public:
  /// They have to outlive it.
  explicit DroppedPages(Metrics& metrics) : metrics_(metrics) {}

  void take(stream::LeavingTokens tokens) noexcept override {
    metrics_.left_stream(tokens.why, static_cast<std::uint64_t>(tokens.view.size()));
  }

 private:
  Metrics& metrics_;
};

}  // namespace vigil::actors
