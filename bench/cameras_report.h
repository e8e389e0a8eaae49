// What `vigil bench cameras` found, as JSON lines or as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/floor.h"
#include "bench/pipeline_figures.h"
#include "bench/read_cost.h"

namespace vigil::bench {

/// Where and with what it was measured.
struct CamerasMachine {
  /// Of its processors, of which there are so many.
  std::string name;
  unsigned processors = 1;
  std::string commit;
};

/// What was run, the same in all steps.
struct CamerasRun {
  /// Of the windows, in seconds.
  double length = 0;
  double stride = 0;
  /// Frames a second, and their size in the user's words.
  double fps = 0;
  std::string size;
  /// Asked of every window.
  std::size_t rules = 0;
  std::string model;
  std::string device;
  std::string decode_device;
  std::int64_t kv_tokens = 0;
  std::string dtype;
  std::string quantization;
  /// FLOP/s that the processors do in large products, were nothing else to do; nothing if others compute.
  std::optional<double> product_limit;
  /// Of a GPU; nothing elsewhere.
  std::optional<Floor> floor = std::nullopt;
};

/// Of the windows' latencies in seconds, the smallest that at least a share of them do not exceed; 0 without
/// windows.
double latency(const PipelineFigures& figures, double share);

/// Not thread-safe.
class CamerasReport {
 public:
  /// `json`: every step as a line, else a table of the last ones. `out` has to outlive it.
  CamerasReport(CamerasMachine machine, bool json, std::ostream& out)
      : machine_(std::move(machine)), json_(json), out_(out) {}

  /// What reading a camera's file costs, one for each that cameras are copies of, in order; at least one
  /// before the first step. `first`: of this file. `load`: of the machine, as it is now.
  void read(const std::string& file, const ReadCost& cost, bool first, double load);

  /// `held`: cameras that were held in the end, if that is known.
  void step(const CamerasRun& run, const char* figure, const PipelineFigures& figures,
            std::optional<int> held = {}) const;

 private:
  const CamerasMachine machine_;
  const bool json_;
  std::ostream& out_;
  std::vector<ReadCost> costs_;
};

}  // namespace vigil::bench
