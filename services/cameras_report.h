// What `vigil bench cameras` found, as JSON lines or as a table.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/bench_pipeline.h"

namespace vigil::services {

/// What decoding and sampling a file costs, alone and in turns with FFmpeg's null decode of it.
struct ReadCost {
  double stream_seconds = 0;
  /// Processor seconds for a second of video.
  double read = 0;
  double null_decode = 0;
};

class CamerasReport {
 public:
  /// `size`: of the frames, in the user's words. `json`: every step as a line, else a table of the last ones.
  /// The options have to outlive it.
  CamerasReport(const BenchPipelineOptions& options, std::string size, bool json)
      : options_(options), size_(std::move(size)), json_(json) {}

  /// One for each camera of the options, in order; `first`: of this file.
  void read(const std::string& file, const ReadCost& cost, bool first);

  /// `held`: cameras that were held in the end, if that is known.
  void step(const BenchPipeline& pipeline, const char* figure, const bench::PipelineFigures& figures,
            std::optional<int> held = {}) const;

 private:
  const BenchPipelineOptions& options_;
  std::string size_;
  bool json_;
  std::vector<ReadCost> costs_;
};

}  // namespace vigil::services
