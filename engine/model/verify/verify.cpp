#include "engine/model/verify/verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "engine/kv/view.h"
#include "engine/model/files/error.h"
#include "engine/model/language/decoder.h"
#include "engine/model/vision/preprocess.h"
#include "engine/model/vision/vision_tower.h"

namespace vigil::model {
namespace {

using kernels::DType;

/// |a - b| / |b|
double relative_error(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

double root_mean_square(std::span<const float> values) {
  const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

/// Values in the type of computation, on the stream's device.
kernels::Buffer to_compute(const kernels::Stream& stream, std::span<const float> values, DType compute) {
  kernels::Buffer buffer(stream, values.size() * kernels::size_of(compute));
  if (compute == DType::f32) {
    kernels::upload(stream, buffer.data(), values.data(), values.size_bytes());
  } else {
    std::vector<kernels::bf16> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), kernels::to_bf16);
    kernels::upload(stream, buffer.data(), rounded.data(), rounded.size() * sizeof(kernels::bf16));
  }
  return buffer;
}

/// An f32 matrix without gaps, on the host.
std::vector<float> to_host(const kernels::Stream& stream, const kernels::Matrix& matrix) {
  std::vector<float> values(static_cast<std::size_t>(matrix.rows * matrix.cols));
  kernels::download(stream, values.data(), matrix.data, values.size() * sizeof(float));
  return values;
}

class CaseRun {
 public:
  CaseRun(const ModelFolder& folder, const GoldenCase& golden, kernels::Stream& stream,
          const VerifyOptions& options)
      : config_(folder.config), golden_(golden), stream_(stream), options_(options) {
    const TextConfig& text = config_.text;
    if (golden.logits.cols != text.vocab_size || golden.hidden.cols != text.hidden_size)
      throw ModelError("the golden case \"" + golden.name + "\" has a vocabulary of " +
                       std::to_string(golden.logits.cols) + " and a width of " +
                       std::to_string(golden.hidden.cols) + ", " + folder.path.string() + " has " +
                       std::to_string(text.vocab_size) + " and " + std::to_string(text.hidden_size));
  }

  std::vector<VerifiedPart> run(const PreprocessConfig& preprocessing, VisionTower& vision,
                                Decoder& decoder) {
    std::vector<float> embeddings = embed(decoder, golden_.input_ids);
    if (golden_.kind != GoldenCase::Kind::text) {
      preprocess(preprocessing);
      const std::vector<float> tokens = encode(vision);
      place_visual_tokens(tokens, embeddings);
    }
    check_positions();
    decode(decoder, embeddings);
    return std::move(parts_);
  }

 private:
  /// Of a part that is quantised or not.
  double limit(Quantization quantization) const {
    // Elements of E4M3 are off by up to a sixteenth, 2.6 % on average, and what follows adds up.
    constexpr double kQuantized = 0.2;
    if (quantization != Quantization::none) return kQuantized;
    return options_.compute == DType::f32 ? 1e-3 : 2e-2;
  }
  double vision_limit() const { return limit(of_vision(options_.quantization)); }
  double logits_limit() const { return limit(of_decoder(options_.quantization)); }

  /// The token that stands in a prompt where visual tokens go.
  std::int32_t placeholder() const {
    return golden_.kind == GoldenCase::Kind::image ? config_.image_token_id : config_.video_token_id;
  }

  void add(const char* part, double error, double limit, double transformers_bf16, int equal_tokens = -1) {
    parts_.push_back({golden_.name, part, error, limit, transformers_bf16, equal_tokens});
  }

  void preprocess(const PreprocessConfig& settings) {
    const Preprocessor preprocessor(golden_.kind == GoldenCase::Kind::image ? settings.image : settings.video,
                                    config_.vision);
    std::vector<PictureView> frames;
    frames.reserve(static_cast<std::size_t>(golden_.frames));
    for (std::int64_t i = 0; i < golden_.frames; ++i) frames.push_back(golden_.frame(i));
    kernels::Stream cpu = kernels::Stream::cpu();
    const PixelValues made = preprocessor.process(cpu, frames);
    const std::vector<float>& wanted = golden_.pixel_values.values;
    double largest = made.values.size() == wanted.size() &&
                             std::array{made.grid_time, made.grid_height, made.grid_width} == golden_.grid
                         ? 0
                         : std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < std::min(made.values.size(), wanted.size()); ++i)
      largest = std::max(largest, std::abs(double{made.values[i]} - wanted[i]));
    // One of the 256 levels of a colour is 1.4e-2 apart from the next.
    add("preprocessing", largest, 1e-5, -1);
  }

  std::vector<float> encode(VisionTower& vision) {
    const PatchGrid grid{golden_.grid[0], golden_.grid[1], golden_.grid[2]};
    const auto width = static_cast<std::size_t>(config_.vision.out_hidden_size);
    const kernels::Buffer patches = to_compute(stream_, golden_.pixel_values.values, options_.compute);
    std::vector<float> tokens = to_host(
        stream_, vision.encode(stream_,
                               kernels::dense(static_cast<const void*>(patches.data()), options_.compute,
                                              golden_.pixel_values.rows, golden_.pixel_values.cols),
                               std::span(&grid, 1)));
    std::vector<float> compared;
    for (const std::int32_t row : golden_.vision_rows) {
      const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width);
      compared.insert(compared.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
    add("vision", relative_error(compared, golden_.vision_embeddings.values), vision_limit(),
        golden_.vision_bf16_error);
    return tokens;
  }

  std::vector<float> embed(Decoder& decoder, std::span<const std::int32_t> tokens) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    const kernels::Buffer rows(stream_,
                               static_cast<std::size_t>(count * config_.text.hidden_size) * sizeof(float));
    const kernels::Matrix to = kernels::dense(rows.data(), DType::f32, count, config_.text.hidden_size);
    decoder.embed(stream_, workspace_, tokens, to);
    return to_host(stream_, to);
  }

  void place_visual_tokens(const std::vector<float>& tokens, std::vector<float>& embeddings) const {
    const auto width = static_cast<std::size_t>(config_.text.hidden_size);
    const auto places = std::count(golden_.input_ids.begin(), golden_.input_ids.end(), placeholder());
    if (static_cast<std::size_t>(places) * width != tokens.size())
      throw ModelError("the golden case \"" + golden_.name + "\" has " + std::to_string(places) +
                       " placeholders for " + std::to_string(tokens.size() / width) + " visual tokens");
    std::size_t next = 0;
    for (std::size_t i = 0; i < golden_.input_ids.size(); ++i)
      if (golden_.input_ids[i] == placeholder())
        std::memcpy(embeddings.data() + i * width, tokens.data() + width * next++, width * sizeof(float));
  }

  void check_positions() {
    PositionBuilder builder;
    const auto& ids = golden_.input_ids;
    for (std::size_t i = 0; i < ids.size();) {
      if (golden_.kind != GoldenCase::Kind::text && ids[i] == placeholder()) {
        const std::int64_t merge = config_.vision.spatial_merge_size;
        builder.grid(golden_.grid[0], golden_.grid[1] / merge, golden_.grid[2] / merge,
                     golden_.kind == GoldenCase::Kind::video
                         ? time_interval(config_.vision, golden_.seconds_per_grid)
                         : 1);
        i = builder.positions().size();
      } else {
        builder.text(1);
        ++i;
      }
    }
    positions_ = builder.positions();
    next_position_ = builder.next();
    int different = 0;
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (i >= positions_.size() ||
          positions_[i] !=
              Position{golden_.position_ids[0][i], golden_.position_ids[1][i], golden_.position_ids[2][i]})
        ++different;
    add("positions", different, 0, -1);
  }

  void decode(Decoder& decoder, std::span<const float> embeddings) {
    const auto hidden_size = static_cast<std::size_t>(config_.text.hidden_size);
    const auto vocabulary = static_cast<std::size_t>(config_.text.vocab_size);
    const kernels::Buffer rows = to_compute(stream_, embeddings, DType::f32);
    const auto prompt = static_cast<std::int64_t>(golden_.input_ids.size());
    const auto steps = static_cast<std::int64_t>(golden_.greedy_tokens.size());
    const kv::PageLayout layout{config_.text.num_hidden_layers, config_.text.num_key_value_heads,
                                config_.text.head_dim, options_.page_tokens, options_.compute};
    const kv::PageStore pages(stream_, layout, (prompt + steps) / options_.page_tokens + 1);
    kv::Book book(pages.pages(), options_.page_tokens);
    kv::View view(book);
    view.append(prompt);

    std::vector<std::int32_t> own(static_cast<std::size_t>(prompt));
    std::iota(own.begin(), own.end(), 0);
    std::vector<float> logits;
    for (std::int64_t begin = 0; begin < prompt; begin += options_.chunk) {
      const std::int64_t end = std::min(begin + options_.chunk, prompt);
      std::vector<std::int32_t> outputs;
      for (const std::int32_t row : golden_.rows)
        if (row >= begin && row < end) outputs.push_back(row - static_cast<std::int32_t>(begin));
      const auto first = static_cast<std::size_t>(begin);
      const auto count = static_cast<std::size_t>(end - begin);
      const kernels::AttentionSegment segment{view.slots().first(static_cast<std::size_t>(end)),
                                              std::span(own).subspan(first, count), 0};
      const kernels::Matrix states =
          decoder.forward(stream_, workspace_,
                          {rows.as<float>() + first * hidden_size,
                           std::span(positions_).subspan(first, count), std::span(&segment, 1), outputs},
                          pages);
      const std::vector<float> found = to_host(stream_, decoder.logits(stream_, workspace_, states));
      logits.insert(logits.end(), found.begin(), found.end());
    }
    add("logits", relative_error(logits, golden_.logits.values), logits_limit(), golden_.logits_bf16_error);

    // Along the file's tokens, so that one near tie does not send all later steps another way.
    std::vector<float> step(logits.end() - static_cast<std::ptrdiff_t>(vocabulary), logits.end());
    double shortfall = 0;
    int equal = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int32_t token = golden_.greedy_tokens[static_cast<std::size_t>(i)];
      const auto best = std::max_element(step.begin(), step.end());
      if (best - step.begin() == token) ++equal;
      shortfall =
          std::max(shortfall, (*best - step[static_cast<std::size_t>(token)]) / root_mean_square(step));
      view.append(1);
      const kernels::Buffer hidden = to_compute(stream_, embed(decoder, {&token, 1}), DType::f32);
      const auto at = static_cast<std::int32_t>(prompt + i);
      const std::int32_t moved = next_position_ + static_cast<std::int32_t>(i);
      const Position position{moved, moved, moved};
      const kernels::AttentionSegment segment{view.slots(), std::span(&at, 1), 0};
      const std::int32_t only = 0;
      const kernels::Matrix states = decoder.forward(
          stream_, workspace_,
          {hidden.as<float>(), std::span(&position, 1), std::span(&segment, 1), std::span(&only, 1)}, pages);
      step = to_host(stream_, decoder.logits(stream_, workspace_, states));
    }
    // Two logits that are each off by the limit may change places if they are as close as that.
    add("greedy", shortfall, logits_limit() <= 1e-3 ? 1e-3 : 5 * logits_limit(), -1, equal);
  }

  const ModelConfig& config_;
  const GoldenCase& golden_;
  kernels::Stream& stream_;
  const VerifyOptions& options_;
  Decoder::Workspace workspace_;
  std::vector<Position> positions_;
  std::int32_t next_position_ = 0;
  std::vector<VerifiedPart> parts_;
};

}  // namespace

std::vector<VerifiedPart> verify(const ModelFolder& folder, const GoldenFile& golden, kernels::Stream& stream,
                                 const VerifyOptions& options) {
  VisionTower vision(folder.config.vision,
                     folder.parameters(stream, options.compute, of_vision(options.quantization)));
  Decoder decoder(folder.config.text,
                  folder.parameters(stream, options.compute, of_decoder(options.quantization)));
  const PreprocessConfig preprocessing = read_preprocess_config(folder.path);
  std::vector<VerifiedPart> parts;
  for (const GoldenCase& golden_case : golden.cases) {
    std::vector<VerifiedPart> of_case =
        CaseRun(folder, golden_case, stream, options).run(preprocessing, vision, decoder);
    parts.insert(parts.end(), of_case.begin(), of_case.end());
  }
  return parts;
}

}  // namespace vigil::model
