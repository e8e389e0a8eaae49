// A log that nobody has to read.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string_view>

#include <spdlog/sinks/base_sink.h>

namespace vigil::cluster {

/// Writes to a descriptor without waiting for whoever reads it: lines that a full pipe does not take are
/// lost, and the next one that it takes is preceded by their number. A slow reader is waited for 50 ms a
/// second at most. Of a pipe whose reader is gone, all are lost; SIGPIPE has to be ignored. Thread-safe.
class UnblockedSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit UnblockedSink(int descriptor) : descriptor_(descriptor) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool has_room();
  void write_line(std::string_view text);

  const int descriptor_;
  std::size_t lost_ = 0;
  /// The last line has no end yet.
  bool cut_off_ = false;
  std::chrono::steady_clock::time_point patient_again_;
};

}  // namespace vigil::cluster
