// A frame of a streaming video model in a pass of the engine, as V-Rex has it (section VI): a few tokens
// after so many in the cache's pages and many more in a past in the host's memory, of which each layer and KV
// head fetches what it chooses (ReSV). loadtest/kernels/bench_resv_frame has the kernels alone. One JSON
// object; milliseconds are medians of whole passes, with the head's products for all rows of the frame.
//
//   bench_past_frame SHAPE TOKENIZER_FOLDER [DEVICE [NEAR [PAST [TOKENS_A_CLUSTER [SHARE]]]]]
//   (cpu, 8192, 32768, 32, 0.327)
//
//   ahead    each layer's clusters are chosen by guessed queries and brought while the layer before computes
//   serial   by its own queries, when they are there
//   near     without a past
//   on_gpu   all of it in the cache's pages, in the model's type
//
// Weights and keys are random, so each key has about the same attention: clusters are made (half of their
// tokens' keys are alike by halves of the size, the others by one and a half), and the threshold is what
// brings the share.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/kv/view.h"
#include "engine/model/model_folder.h"
#include "engine/past/past_attend.h"
#include "engine/run/cached_model.h"
#include "engine/run/device.h"
#include "engine/run/parts_past.h"
#include "engine/run/pass_runner.h"
#include "kernels/random/random.h"
#include "loadtest/engine/median.h"

namespace {

using namespace vigil;

constexpr std::int64_t kFrame = 10, kPatch = 1024, kPageTokens = 64;

struct Sizes {
  std::int64_t near = 8192, past = 32768, cluster = 32;
  double share = 0.327;
};

std::vector<std::int32_t> counted(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::int32_t>(first));
  return numbers;
}

class Bench {
 public:
  Bench(const std::string& shape, const std::string& text, const run::Device& device, const Sizes& sizes)
      : sizes_(sizes),
        folder_(model::ModelFolder::made_up(shape, text, 1)),
        model_(folder_, {.memory = run::make_streams(device, 0),
                         .compute = model::choose_compute(*folder_, {}, device.kind),
                         .kv_tokens = sizes.near + sizes.past + 2 * kFrame + 4 * kPageTokens,
                         .page_tokens = kPageTokens}),
        passes_(model_, run::make_streams(device, 0)),
        stream_(passes_.stream()) {
    if (model_.ranks() != 1) throw std::invalid_argument("a frame of one device");
    fill();
  }

  void run() {
    double threshold = sizes_.share;
    std::unique_ptr<run::SequencePast> past = make_past(threshold, false);
    double share = measured_share(*past);
    if (std::abs(share - sizes_.share) > 0.005) {
      threshold = std::clamp(threshold * sizes_.share / share, 0.0, 1.0);
      past = make_past(threshold, false);
      share = measured_share(*past);
    }
    const double serial = milliseconds(sizes_.near, past.get());
    const auto clusters = dynamic_cast<const run::PartsPast&>(*past).parts().front()->units(0);
    past.reset();
    past = make_past(threshold, true);
    const double ahead_share = measured_share(*past);
    const double ahead = milliseconds(sizes_.near, past.get());
    const std::int64_t host = past->host_bytes(), device = past->device_bytes();
    past.reset();
    const double near = milliseconds(sizes_.near, nullptr);
    const double on_gpu = milliseconds(sizes_.near + sizes_.past, nullptr);
    const model::TextConfig& text = folder_->config.text;
    // In FP8: an element a byte, and a scale of two for each token of a head.
    const double bytes = ahead_share * static_cast<double>(sizes_.past) * text.num_hidden_layers * 2.0 *
                         static_cast<double>(text.num_key_value_heads) *
                         (static_cast<double>(text.head_dim) + 2);
    std::printf(
        R"({"frame": %ld, "near": %ld, "past": %ld, "clusters": %ld, "threshold": %.4f, "share": %.4f, )"
        R"("ahead_share": %.4f, "bytes": %.0f, "floor_ms_at_55_gb_s": %.2f, "ahead_ms": %.2f, )"
        R"("serial_ms": %.2f, "near_ms": %.2f, "on_gpu_ms": %.2f, "host_bytes": %ld, "device_bytes": %ld})"
        "\n",
        static_cast<long>(kFrame), static_cast<long>(sizes_.near), static_cast<long>(sizes_.past),
        static_cast<long>(clusters), threshold, share, ahead_share, bytes, bytes / 55e6, ahead, serial, near,
        on_gpu, static_cast<long>(host), static_cast<long>(device));
  }

 private:
  /// All pages get random keys and values.
  void fill() {
    const kv::PageStore& pages = model_.parts.front()->pages;
    kernels::Stream stream = stream_;
    kernels::fill_random(stream,
                         kernels::dense(static_cast<void*>(pages.page(0)), pages.layout().dtype,
                                        pages.pages(), pages.layout().page_elements()),
                         7, 0.05F);
    stream.synchronize();
  }

  /// The next tokens of the past: their keys are alike within a cluster, in all layers and heads.
  std::unique_ptr<run::SequencePast> make_past(double threshold, bool ahead) {
    past::PastOptions options{.method = "resv-pooled"};
    options.settings = retrieval::resv_named("resv-pooled");
    options.settings->th_wics = threshold;
    options.settings->th_hp = 1;
    options.form = kernels::PackedForm::fp8;
    options.host_bytes = std::int64_t{64} << 30U;
    options.ahead = ahead;
    auto past = passes_.make_past(options);
    kv::View view(model_.book);
    if (!view.append(kPatch)) throw std::runtime_error("no room for a patch");
    std::int64_t cluster = 0, left = 0;
    for (std::int64_t first = 0; first < sizes_.past; first += kPatch) {
      std::vector<std::int64_t> of;
      for (std::int64_t i = 0; i < kPatch; ++i) {
        if (left == 0) left = ++cluster % 2 == 0 ? sizes_.cluster / 2 : sizes_.cluster * 3 / 2;
        --left;
        of.push_back(cluster);
      }
      write_keys(view.slots(), of);
      past->append(view.slots(),
                   std::vector<std::int32_t>(kPatch, static_cast<std::int32_t>(first / kPatch)));
    }
    past->lay();
    return past;
  }

  void write_keys(std::span<const std::int32_t> slots, const std::vector<std::int64_t>& clusters) {
    const kv::PageStore& pages = model_.parts.front()->pages;
    const kv::PageLayout& layout = pages.layout();
    const std::size_t element = kernels::size_of(layout.dtype);
    for (int layer = 0; layer < layout.layers; ++layer) {
      const kernels::KvLayer kv = pages.layer(layer);
      for (int head = 0; head < layout.kv_heads; ++head) {
        std::vector<std::byte> rows;
        std::vector<std::byte> row(static_cast<std::size_t>(layout.head_dim) * element);
        std::int64_t made = -1;
        for (std::size_t i = 0; i < slots.size(); ++i) {
          if (clusters[i] != made) {
            made = clusters[i];
            std::minstd_rand random(
                static_cast<unsigned>((made * layout.layers + layer) * layout.kv_heads + head + 1));
            for (int column = 0; column < layout.head_dim; ++column) {
              const float value = 0.1F * (static_cast<float>(random() % 65536) / 32768.0F - 1);
              std::uint32_t bits = 0;
              std::memcpy(&bits, &value, 4);
              if (element == 2) bits >>= 16U;
              std::memcpy(row.data() + static_cast<std::size_t>(column) * element, &bits, element);
            }
          }
          rows.insert(rows.end(), row.begin(), row.end());
          // Slots of a page follow each other.
          const bool ends =
              i + 1 == slots.size() || slots[i + 1] != slots[i] + 1 || slots[i + 1] % kPageTokens == 0;
          if (!ends) continue;
          const std::size_t count = rows.size() / row.size();
          auto* to = static_cast<std::byte*>(kv.base) +
                     static_cast<std::size_t>(kv.offset(slots[i + 1 - count], head)) * element;
          kernels::upload(stream_, to, rows.data(), rows.size());
          rows.clear();
        }
      }
    }
    stream_.synchronize();
  }

  struct Asked {
    explicit Asked(kv::Book& book) : view(book) {}
    kv::View view;
    std::vector<std::int32_t> tokens, own;
    run::Pass pass;
  };
  std::unique_ptr<Asked> frame(std::int64_t before) {
    auto asked = std::make_unique<Asked>(model_.book);
    if (!asked->view.append(before + kFrame)) throw std::runtime_error("no room for a frame");
    asked->tokens = counted(100, kFrame);
    asked->own = counted(before, kFrame);
    asked->pass.rows.push_back({asked->tokens, {}});
    for (const std::int32_t at : asked->own) asked->pass.positions.push_back({at, at, at});
    asked->pass.segments.push_back({asked->view.slots(), asked->own, 0});
    asked->pass.outputs = counted(0, kFrame);
    return asked;
  }

  /// Of the past that a layer and a KV head fetch.
  double measured_share(run::SequencePast& past) {
    const auto asked = frame(sizes_.near);
    past::PastAttend attend;
    attend.count();
    attend.add(asked->pass.segments.front().keys, dynamic_cast<run::PartsPast&>(past).parts(), 0);
    asked->pass.attend = &attend;
    passes_.run(asked->pass);
    passes_.settle();
    return attend.counted(0).share();
  }

  double milliseconds(std::int64_t before, run::SequencePast* past) {
    const auto asked = frame(before);
    if (past != nullptr) asked->pass.before.push_back({0, past, 0});
    return median_ms([&] { passes_.settle(); }, [&] { passes_.run(asked->pass); });
  }

  Sizes sizes_;
  std::shared_ptr<const model::ModelFolder> folder_;
  run::CachedModel model_;
  run::PassRunner passes_;
  kernels::Stream stream_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(
        stderr,
        "bench_past_frame SHAPE TOKENIZER_FOLDER [DEVICE [NEAR [PAST [TOKENS_A_CLUSTER [SHARE]]]]]\n");
    return 2;
  }
  try {
    Sizes sizes;
    if (count > 4) sizes.near = std::atoll(words[4]);
    if (count > 5) sizes.past = std::atoll(words[5]) / kPatch * kPatch;
    if (count > 6) sizes.cluster = std::atoll(words[6]);
    if (count > 7) sizes.share = std::atof(words[7]);
    Bench(words[1], words[2], run::parse_device(count > 3 ? words[3] : "cpu"), sizes).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_past_frame: %s\n", error.what());
    return 1;
  }
  return 0;
}
