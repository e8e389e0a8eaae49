#include "engine/model/verify/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

using kernels::DType;

constexpr std::string_view kFormat = "vigil-golden-1";
constexpr double kMostSeconds = 1e9;
constexpr std::int64_t kMostSide = 1 << 16;

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// The tensors of one case, by the last part of their names.
class CaseTensors {
 public:
  CaseTensors(const SafetensorsFile& file, std::string name) : file_(file), name_(std::move(name)) {}

  [[noreturn]] void fail(std::string_view tensor, const std::string& reason) const {
    throw ModelError(file_.name() + ": tensor " + in_quotes(name_ + "/" + std::string(tensor)) + ": " +
                     reason);
  }

  /// A size of -1 in `shape` stands for any.
  const TensorView& get(std::string_view tensor, DType dtype,
                        std::initializer_list<std::int64_t> shape) const {
    const TensorView* view = file_.find(name_ + "/" + std::string(tensor));
    if (view == nullptr) fail(tensor, "missing");
    if (view->dtype != dtype)
      fail(tensor, std::string("is ") + kernels::name_of(view->dtype) + ", not " + kernels::name_of(dtype));
    const bool fits =
        view->shape.size() == shape.size() &&
        std::equal(shape.begin(), shape.end(), view->shape.begin(),
                   [](std::int64_t wanted, std::int64_t has) { return wanted == -1 || wanted == has; });
    if (!fits)
      fail(tensor, "has the shape " + shape_text(view->shape) + ", not " +
                       shape_text(std::vector<std::int64_t>(shape)) + " (-1: any)");
    return *view;
  }

  template <typename T>
  std::vector<T> values(std::string_view tensor, DType dtype,
                        std::initializer_list<std::int64_t> shape) const {
    return copy<T>(get(tensor, dtype, shape));
  }

  /// Finite values, at least one.
  GoldenMatrix matrix(std::string_view tensor, std::int64_t rows, std::int64_t cols) const {
    const TensorView& view = get(tensor, DType::f32, {rows, cols});
    GoldenMatrix result{view.shape[0], view.shape[1], copy<float>(view)};
    if (result.values.empty()) fail(tensor, "is empty");
    require_finite(tensor, result.values);
    return result;
  }

  /// Ascending indexes below `count`, at least one.
  std::vector<std::int32_t> indexes(std::string_view tensor, std::int64_t count) const {
    auto result = values<std::int32_t>(tensor, DType::i32, {-1});
    if (result.empty()) fail(tensor, "is empty");
    const bool ascending =
        std::adjacent_find(result.begin(), result.end(), std::greater_equal<>()) == result.end();
    if (!ascending || result.front() < 0 || result.back() >= count)
      fail(tensor, "the indexes are not ascending and below " + std::to_string(count));
    return result;
  }

  float error(std::string_view tensor) const {
    const auto result = values<float>(tensor, DType::f32, {1});
    require_finite(tensor, result);
    return result.front();
  }

  void require_finite(std::string_view tensor, std::span<const float> values) const {
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
      fail(tensor, "holds values that are not finite");
  }

 private:
  template <typename T>
  static std::vector<T> copy(const TensorView& view) {
    std::vector<T> result(static_cast<std::size_t>(view.elements()));
    if (!result.empty()) std::memcpy(result.data(), view.data, view.bytes());
    return result;
  }

  const SafetensorsFile& file_;
  std::string name_;
};

GoldenCase::Kind kind_of(const JsonObject& described) {
  const std::string kind = described.string("kind");
  if (kind == "text") return GoldenCase::Kind::text;
  if (kind == "image") return GoldenCase::Kind::image;
  if (kind == "video") return GoldenCase::Kind::video;
  described.fail("kind", in_quotes(kind) + " is not text, image or video");
}

/// pixel_values[p, j] = table[j / (dim / channels), levels[p, j]]: an 8-bit level and a table hold the same
/// floats in a quarter of the bytes.
GoldenMatrix read_pixel_values(const CaseTensors& tensors, std::int64_t patches) {
  const TensorView& levels = tensors.get("pixel_levels", DType::u8, {patches, -1});
  const TensorView& table = tensors.get("pixel_table", DType::f32, {-1, 256});
  const std::int64_t dim = levels.shape[1];
  const std::int64_t channels = table.shape[0];
  if (channels == 0 || dim == 0 || dim % channels != 0)
    tensors.fail("pixel_levels", "patches of " + std::to_string(dim) + " values do not divide into " +
                                     std::to_string(channels) + " channels");
  const auto factors = tensors.values<float>("pixel_table", DType::f32, {channels, 256});
  tensors.require_finite("pixel_table", factors);
  GoldenMatrix result{patches, dim, std::vector<float>(static_cast<std::size_t>(patches * dim))};
  const std::int64_t per_channel = dim / channels;
  for (std::int64_t i = 0; i < patches * dim; ++i) {
    const auto level = std::to_integer<std::int64_t>(levels.data[i]);
    result.values[static_cast<std::size_t>(i)] =
        factors[static_cast<std::size_t>(i % dim / per_channel * 256 + level)];
  }
  return result;
}

void read_pictures(const CaseTensors& tensors, const JsonObject& described, GoldenCase& into) {
  into.frames = described.integer("frames", 1, kMostSide);
  into.size.height = static_cast<int>(described.integer("height", 1, kMostSide));
  into.size.width = static_cast<int>(described.integer("width", 1, kMostSide));
  into.pixels =
      tensors.values<std::uint8_t>("pixels", DType::u8, {into.frames, into.size.height, into.size.width, 3});
  const auto grid = tensors.values<std::int32_t>("grid_thw", DType::i32, {3});
  std::int64_t patches = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] < 1 || grid[axis] > kMostSide)
      tensors.fail("grid_thw", "a size lies outside of 1 and 65536");
    into.grid[axis] = grid[axis];
    patches *= grid[axis];
  }
  into.pixel_values = read_pixel_values(tensors, patches);
  into.vision_rows = tensors.indexes("vision_rows", patches);
  into.vision_embeddings =
      tensors.matrix("vision_embeddings", static_cast<std::int64_t>(into.vision_rows.size()), -1);
  into.vision_bf16_error = tensors.error("vision_bf16_error");
}

GoldenCase read_case(const SafetensorsFile& file, const JsonObject& described) {
  GoldenCase result;
  result.name = described.string("name");
  result.kind = kind_of(described);
  result.prompt = described.string("prompt", "");
  result.fps = described.number("fps", 0, kMostSeconds, 0);
  result.seconds_per_grid = described.number("seconds_per_grid", 0, kMostSeconds, 0);

  const CaseTensors tensors(file, result.name);
  result.input_ids = tensors.values<std::int32_t>("input_ids", DType::i32, {-1});
  if (result.input_ids.empty()) tensors.fail("input_ids", "is empty");
  if (std::any_of(result.input_ids.begin(), result.input_ids.end(), [](std::int32_t id) { return id < 0; }))
    tensors.fail("input_ids", "holds a negative id");
  const auto count = static_cast<std::int64_t>(result.input_ids.size());
  const auto positions = tensors.values<std::int32_t>("position_ids", DType::i32, {3, count});
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto begin = positions.begin() + static_cast<std::ptrdiff_t>(axis) * count;
    result.position_ids[axis].assign(begin, begin + count);
  }
  if (result.kind != GoldenCase::Kind::text) read_pictures(tensors, described, result);

  result.rows = tensors.indexes("rows", count);
  if (result.rows.back() != count - 1) tensors.fail("rows", "the last position is not among them");
  const auto rows = static_cast<std::int64_t>(result.rows.size());
  result.hidden = tensors.matrix("hidden", rows, -1);
  result.logits = tensors.matrix("logits", rows, -1);
  result.logits_bf16_error = tensors.error("logits_bf16_error");
  if (result.kind != GoldenCase::Kind::text && result.vision_embeddings.cols != result.hidden.cols)
    tensors.fail("vision_embeddings", "is " + std::to_string(result.vision_embeddings.cols) +
                                          " wide, the hidden states are " +
                                          std::to_string(result.hidden.cols));

  result.greedy_tokens = tensors.values<std::int32_t>("greedy_tokens", DType::i32, {-1});
  const auto in_vocabulary = [&](std::int32_t id) { return id >= 0 && id < result.logits.cols; };
  if (!std::all_of(result.greedy_tokens.begin(), result.greedy_tokens.end(), in_vocabulary))
    tensors.fail("greedy_tokens",
                 "holds an id outside of the vocabulary of " + std::to_string(result.logits.cols));
  result.greedy_gap = tensors.values<float>("greedy_gap", DType::f32,
                                            {static_cast<std::int64_t>(result.greedy_tokens.size())});
  tensors.require_finite("greedy_gap", result.greedy_gap);
  return result;
}

std::string metadata(const SafetensorsFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? std::string() : found->second;
}

}  // namespace

PictureView GoldenCase::frame(std::int64_t index) const {
  const std::int64_t bytes = std::int64_t{3} * size.height * size.width;
  return {pixels.data() + index * bytes, size.width, size.height};
}

GoldenFile read_golden(const SafetensorsFile& file) {
  const std::string format = metadata(file, "format");
  if (format != kFormat)
    throw ModelError(file.name() + ": not a golden file: its format is " + in_quotes(format) + ", not '" +
                     std::string(kFormat) + "'");
  GoldenFile result{metadata(file, "model"),
                    metadata(file, "transformers"),
                    metadata(file, "torch"),
                    metadata(file, "processor"),
                    {}};
  const std::string where = file.name() + ": cases";
  const Json cases = parse_json(metadata(file, "cases"), where);
  if (!cases.is_array() || cases.empty()) throw ModelError(where + ": a list of cases was expected");
  for (const Json& described : cases) result.cases.push_back(read_case(file, JsonObject(described, where)));
  return result;
}

GoldenFile read_golden(const std::filesystem::path& path) {
  return read_golden(*SafetensorsFile::open(path));
}

}  // namespace vigil::model
