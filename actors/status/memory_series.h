// What is remembered and asked about, as series of Prometheus beside those of the process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "actors/messages/past.h"
#include "actors/status/metrics.h"
#include "engine/memory/coverage.h"

namespace vigil::actors {

/// The metrics `vigil_memory_` and `vigil_past_`, in the registry of others, at 0 from the start.
/// Thread-safe.
class MemorySeries {
 public:
  explicit MemorySeries(Metrics& metrics);

  struct Usage {
    std::uint64_t host_bytes = 0, host_budget = 0;
    /// On the way to the disk.
    std::uint64_t waiting_bytes = 0;
  };
  void usage(const Usage& usage);
  /// Pages that were kept, and those that were not, by why.
  void kept(std::uint64_t pages) { kept_.Increment(static_cast<double>(pages)); }
  void lost(memory::Gap why, std::uint64_t pages);
  /// Pages that were kept, but not by the disk that was to have them.
  void unwritten(std::uint64_t pages) { unwritten_.Increment(static_cast<double>(pages)); }
  /// On the disk.
  void written(std::uint64_t bytes) { written_.Increment(static_cast<double>(bytes)); }
  void removed(std::uint64_t bytes) { removed_.Increment(static_cast<double>(bytes)); }
  void failed_writes(std::uint64_t parts) { failures_.Increment(static_cast<double>(parts)); }

  /// A question got its last word, after so many seconds. That its time is over, `AskSeries` tells.
  void question(PastOutcome outcome, double seconds);
  void erasures(std::uint64_t count) { erasures_.Increment(static_cast<double>(count)); }
  /// What a question has read of each tier.
  void read(std::uint64_t host_bytes, std::uint64_t disk_bytes);

 private:
  prometheus::Family<prometheus::Gauge>& bytes_;
  prometheus::Gauge& host_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& budget_;
  prometheus::Family<prometheus::Counter>& pages_;
  prometheus::Counter& kept_;
  std::array<prometheus::Counter*, memory::kGapNames.size()> lost_{};
  prometheus::Counter& unwritten_;
  prometheus::Counter& written_;
  prometheus::Counter& removed_;
  prometheus::Counter& failures_;
  prometheus::Family<prometheus::Counter>& questions_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& erasures_;
  prometheus::Family<prometheus::Counter>& read_;
  prometheus::Counter& read_host_;
  prometheus::Counter& read_disk_;
};

/// What the socket for questions adds to `vigil_past_questions_total`: those that were refused since as many
/// as may be were under way, and those whose time was over; at 0 from the start. Thread-safe.
class AskSeries {
 public:
  explicit AskSeries(Metrics& metrics);

  void busy(std::size_t questions) { busy_.Increment(static_cast<double>(questions)); }
  void too_late(std::size_t questions) { too_late_.Increment(static_cast<double>(questions)); }

 private:
  prometheus::Counter& busy_;
  prometheus::Counter& too_late_;
};

}  // namespace vigil::actors
