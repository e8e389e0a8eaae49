// What a pass of the language model costs, by the rows of a window that it holds and the texts that take a
// token beside them: what the limits of passes are chosen by. A JSON object a line.
//
//   bench_passes SHAPE TOKENIZER_FOLDER [DEVICE]        (SHAPE: loadtest/shapes/*.json; DEVICE: cpu, cuda:0)
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/model_folder.h"
#include "engine/run/cached_model.h"
#include "engine/run/device.h"
#include "engine/run/pass_runner.h"
#include "kernels/device/buffer.h"
#include "loadtest/engine/median.h"

namespace {

using namespace vigil;

/// Keys before a window's rows, and before a text's.
constexpr std::int64_t kContext = 5120;
constexpr std::int64_t kTextContext = 10240;

/// A window's rows in mid-window and texts of one pending token each.
class Mixture {
 public:
  Mixture(run::CachedModel& model, run::PassRunner& passes, std::int64_t rows, std::size_t texts)
      : passes_(passes), window_(model.book) {
    const std::int64_t width = model.folder->config.text.hidden_size;
    own_.reserve(static_cast<std::size_t>(rows) + texts);
    tokens_.assign(texts, 100);
    for (std::size_t i = 0; i < texts; ++i) {
      auto& text = texts_.emplace_back(model.book);
      if (!text.append(kTextContext)) std::abort();
      own_.push_back(kTextContext - 1);
      add(text, i, 1, kTextContext - 1);
      pass_.rows.push_back({std::span(tokens_).subspan(i, 1), {}});
      pass_.outputs.push_back(static_cast<std::int32_t>(i));
    }
    if (rows == 0) return;
    if (!window_.append(kContext + rows)) std::abort();
    for (std::int64_t i = 0; i < rows; ++i) own_.push_back(static_cast<std::int32_t>(kContext + i));
    add(window_, texts, static_cast<std::size_t>(rows), kContext);
    std::vector<float> values(static_cast<std::size_t>(rows * width));
    std::uint32_t state = 1;
    for (float& value : values) {
      state = state * 1664525U + 1013904223U;
      value = static_cast<float>(state >> 8U) * 0x1p-23F - 1;
    }
    embedded_ = kernels::Buffer(passes.stream(), values.size() * sizeof(float));
    kernels::upload(passes.stream(), embedded_.data(), values.data(), values.size() * sizeof(float));
    pass_.rows.push_back(
        {{}, kernels::dense(static_cast<const void*>(embedded_.data()), kernels::DType::f32, rows, width)});
  }

  void run() {
    passes_.run(pass_);
    passes_.settle();
  }

 private:
  void add(const kv::View& view, std::size_t first, std::size_t count, std::int64_t position) {
    pass_.segments.push_back(
        {view.slots(), std::span(own_.data() + first, count), static_cast<std::int64_t>(first)});
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::int32_t>(position + static_cast<std::int64_t>(i));
      pass_.positions.push_back({at, at, at});
    }
  }

  run::PassRunner& passes_;
  kv::View window_;
  std::vector<kv::View> texts_;
  std::vector<std::int32_t> own_, tokens_;
  kernels::Buffer embedded_;
  run::Pass pass_;
};

int measure(const std::string& shape, const std::string& text, const std::string& device) {
  const auto folder = model::ModelFolder::made_up(shape, text, 1);
  const run::Device where = run::parse_device(device);
  const bool gpu = where.kind == kernels::DeviceKind::cuda;
  constexpr std::int64_t kMostTexts = 8;
  run::CachedModel model(folder, {.memory = run::make_streams(where, 0),
                                  .compute = model::choose_compute(*folder, {}, where.kind),
                                  .kv_tokens = kContext + 16384 + kMostTexts * (kTextContext + 64)});
  run::PassRunner passes(model, run::make_streams(where, 0));
  for (const std::int64_t rows :
       {0, 64, 128, 256, 384, 512, 768, 1024, 1152, 1536, 2048, 2304, 3072, 4096, 8192})
    for (const std::size_t texts : {0U, 1U, 2U, 4U, 8U}) {
      if ((rows == 0 && texts == 0) || (!gpu && rows > 1024)) continue;
      Mixture mixture(model, passes, rows, texts);
      std::printf(
          "{\"bench\": \"passes\", \"device\": \"%s\", \"rows\": %ld, \"texts\": %zu, \"ms\": %.3f}\n",
          device.c_str(), static_cast<long>(rows), texts, median_ms([] {}, [&] { mixture.run(); }));
      std::fflush(stdout);
    }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || count > 4) {
    std::fprintf(stderr, "usage: bench_passes SHAPE TOKENIZER_FOLDER [DEVICE]\n");
    return EXIT_FAILURE;
  }
  try {
    return measure(arguments[1], arguments[2], count > 3 ? arguments[3] : "cpu");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_passes: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
