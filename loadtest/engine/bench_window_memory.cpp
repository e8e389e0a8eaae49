// What a window's memory costs a camera (docs/memory.md, "A window with a memory"): the time of a window that
// is asked one question, and of what slides out of it, by how long its memory is. A JSON object a line.
//
//   bench_window_memory MODEL VIDEO DEVICE WINDOW STRIDE MEMORY...        (DEVICE: cpu, cuda:0)
//
// Window, stride and memories in seconds. The video's pictures, two a second and nothing pruned, are shown
// again and again until the memory is full, and then for ten windows more, which count: medians. `window_ms`:
// until a window has its answer. `slid_ms`: until what slid out of it is part of the memory. A memory of 0 is
// none.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/run/cached_model.h"
#include "engine/run/device.h"
#include "engine/run/pass_runner.h"
#include "engine/run/tower_encoder.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"
#include "loadtest/engine/video_patches.h"

namespace {

using namespace vigil;
using Json = nlohmann::json;

constexpr double kFps = 2;
constexpr double kSecondsRead = 64;
constexpr std::int64_t kCounted = 10;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

/// A camera that shows some patches again and again, at a desk of its own.
class Camera {
 public:
  Camera(const std::string& folder, const std::string& video, const run::Device& device, double window,
         double stride)
      : folder_(model::ModelFolder::open(folder)),
        type_(model::choose_compute(*folder_, {}, device.kind)),
        stream_(run::make_streams(device, 0).front()),
        encoder_(folder_, type_, stream_),
        patches_(patches_of(video, 0, kSecondsRead, kFps, encoder_)),
        window_(static_cast<std::int64_t>(window * kFps / 2)),
        stride_(static_cast<std::int64_t>(stride * kFps / 2)),
        model_(folder_, {.memory = {stream_},
                         .compute = type_,
                         .kv_tokens = (window_ + 2 * stride_ + 2) * patches_.front()->count() + 2048}),
        passes_(model_, {stream_}),
        questions_(*folder_, model_.prompts) {
    if (window_ < 1 || stride_ < 1)
      throw std::invalid_argument("a window and a stride are a second at least");
  }

  Json measure(std::int64_t memory) {
    stream::StreamDesk desk(*folder_, model_.prompts, model_.book, passes_, {});
    desk.open("camera", stream::make_refresh("none"));
    desk.set_memory("camera", std::chrono::seconds(memory));
    const auto question =
        questions_.compile({.text = "Is a person present?", .max_tokens = 1, .sampling = {}, .on_text = {}});
    std::vector<double> answered, slid;
    std::int64_t shown = 0;
    const std::int64_t windows = memory / stride_ + window_ / stride_ + 2 + kCounted;
    for (std::int64_t number = 0; number < windows; ++number) {
      while (shown < window_ + number * stride_) append(desk, shown++);
      stream::Asking asking;
      asking.patches = {shown - window_, shown};
      asking.questions.push_back({question, {}});
      stream_.synchronize();
      auto begin = std::chrono::steady_clock::now();
      desk.slide("camera", shown - window_);
      stream_.synchronize();
      if (number + kCounted >= windows) slid.push_back(milliseconds_since(begin));
      begin = std::chrono::steady_clock::now();
      const stream::WindowId id = desk.ask("camera", std::move(asking));
      while (desk.due()) desk.work({base::Clock::TimePoint()});
      const stream::DeskNews news = desk.take_news();
      if (news.answered.size() != 1 || !news.forgotten.empty())
        throw std::runtime_error(news.forgotten.empty() ? "a window has no answer"
                                                        : news.forgotten[0].reason);
      if (number + kCounted >= windows) answered.push_back(milliseconds_since(begin));
      desk.done(id);
    }
    const auto held = desk.window_memory();
    return {{"memory_s", memory},
            {"window_ms", median(answered)},
            {"slid_ms", median(slid)},
            {"window_tokens", window_ * patches_.front()->count()},
            {"memory_tokens", held.tokens},
            {"host_bytes", held.host_bytes},
            {"device_bytes", held.device_bytes}};
  }

 private:
  void append(stream::StreamDesk& desk, std::int64_t number) {
    const model::VisualTokens& patch = *patches_[static_cast<std::size_t>(number) % patches_.size()];
    auto again = std::make_shared<model::VisualTokens>();
    again->dtype = patch.dtype;
    again->width = patch.width;
    again->kept = patch.kept;
    again->seconds = static_cast<double>(number) * 2 / kFps;
    again->duration = 2 / kFps;
    again->embeddings = kernels::Buffer(stream_, patch.bytes());
    kernels::copy(stream_, again->embeddings.data(), patch.embeddings.data(), patch.bytes());
    stream_.synchronize();
    desk.append("camera", std::move(again));
  }

  std::shared_ptr<const model::ModelFolder> folder_;
  kernels::DType type_;
  kernels::Stream stream_;
  run::TowerEncoder encoder_;
  std::vector<model::VisualTokensPtr> patches_;
  std::int64_t window_, stride_;
  run::CachedModel model_;
  run::PassRunner passes_;
  stream::QuestionCompiler questions_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 7) {
    std::fprintf(stderr, "bench_window_memory MODEL VIDEO DEVICE WINDOW STRIDE MEMORY...\n");
    return 2;
  }
  try {
    Camera camera(words[1], words[2], run::parse_device(words[3]), std::stod(words[4]), std::stod(words[5]));
    for (int i = 6; i < count; ++i) {
      Json line = camera.measure(std::stol(words[i]));
      line["device"] = words[3];
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_window_memory: %s\n", error.what());
    return 1;
  }
  return 0;
}
