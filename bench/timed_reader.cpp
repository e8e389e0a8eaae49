#include "bench/timed_reader.h"

#include <optional>
#include <utility>
#include <vector>

namespace vigil::bench {
namespace {

class TimedReader final : public media::VideoReader {
 public:
  TimedReader(std::unique_ptr<media::VideoReader> reader, StageLog& log, const base::Clock& clock)
      : reader_(std::move(reader)), log_(log), clock_(clock) {}
  const media::SourceInfo& info() const override { return reader_->info(); }
  const media::ReadStats& stats() const override { return reader_->stats(); }
  const std::vector<media::FrameMotion>& rest() const override { return reader_->rest(); }
  std::optional<media::SampledFrame> next() override {
    const StageTimer timer(log_, clock_);
    return reader_->next();
  }

 private:
  std::unique_ptr<media::VideoReader> reader_;
  StageLog& log_;
  const base::Clock& clock_;
};

}  // namespace

std::unique_ptr<media::VideoReader> timed(std::unique_ptr<media::VideoReader> reader, StageLog& log,
                                          const base::Clock& clock) {
  return std::make_unique<TimedReader>(std::move(reader), log, clock);
}

}  // namespace vigil::bench
