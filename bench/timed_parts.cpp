#include "bench/timed_parts.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace vigil::bench {
namespace {

class TimedEncoder final : public run::VisionEncoder {
 public:
  TimedEncoder(run::VisionEncoder& part, StageLog& log, const base::Clock& clock)
      : part_(part), log_(log), clock_(clock) {}
  int frames_per_patch() const override { return part_.frames_per_patch(); }
  model::PictureSize frame_size(model::PictureSize source) const override { return part_.frame_size(source); }
  std::vector<model::VisualTokensPtr> encode(std::span<const run::PatchFrames> patches) override {
    const StageTimer timer(log_, clock_);
    return part_.encode(patches);
  }

 private:
  run::VisionEncoder& part_;
  StageLog& log_;
  const base::Clock& clock_;
};

class TimedPrefiller final : public stream::WindowPrefiller {
 public:
  TimedPrefiller(stream::WindowPrefiller& part, StageLog& log, const base::Clock& clock)
      : part_(part), log_(log), clock_(clock) {}
  std::int64_t max_visual_tokens() const override { return part_.max_visual_tokens(); }
  std::int64_t room() const override { return part_.room(); }
  std::int64_t room_for(const stream::WindowRequest& request) const override {
    return part_.room_for(request);
  }
  std::vector<stream::AskedWindowPtr> ask(std::span<const stream::WindowRequest> requests) override {
    const StageTimer timer(log_, clock_);
    return part_.ask(requests);
  }

 private:
  stream::WindowPrefiller& part_;
  StageLog& log_;
  const base::Clock& clock_;
};

class TimedGenerator final : public stream::AnswerGenerator {
 public:
  TimedGenerator(stream::AnswerGenerator& part, StageLog& log, const base::Clock& clock)
      : part_(part), log_(log), clock_(clock) {}
  std::vector<stream::Completion> generate(std::span<const stream::Continuation> continuations) override {
    const StageTimer timer(log_, clock_);
    return part_.generate(continuations);
  }

 private:
  stream::AnswerGenerator& part_;
  StageLog& log_;
  const base::Clock& clock_;
};

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

std::shared_ptr<run::VisionEncoder> timed(run::VisionEncoder& part, StageLog& log,
                                             const base::Clock& clock) {
  return std::make_shared<TimedEncoder>(part, log, clock);
}

std::shared_ptr<stream::WindowPrefiller> timed(stream::WindowPrefiller& part, StageLog& log,
                                               const base::Clock& clock) {
  return std::make_shared<TimedPrefiller>(part, log, clock);
}

std::shared_ptr<stream::AnswerGenerator> timed(stream::AnswerGenerator& part, StageLog& log,
                                               const base::Clock& clock) {
  return std::make_shared<TimedGenerator>(part, log, clock);
}

std::unique_ptr<media::VideoReader> timed(std::unique_ptr<media::VideoReader> reader, StageLog& log,
                                          const base::Clock& clock) {
  return std::make_unique<TimedReader>(std::move(reader), log, clock);
}

}  // namespace vigil::bench
