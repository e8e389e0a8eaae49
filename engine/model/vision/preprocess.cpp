#include "engine/model/vision/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

/// Of max_pixels: no camera has more, so that it is no bound.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 40U;
/// Of min_pixels, to which every frame is enlarged: about those of 8K.
constexpr std::int64_t kMostLeastPixels = std::int64_t{1} << 25U;
/// Means and deviations far beyond those of any levels: what is normalised with them stays so small that the
/// vision tower's sums of squares are finite.
constexpr double kMostMean = 1e3;
constexpr double kLeastDeviation = 1e-4;
constexpr double kMostDeviation = 1e4;
constexpr int kBicubic = 3;

/// One number for all colours, or one for each.
std::array<double, 3> colours(const JsonObject& from, std::string_view key, double least, double most,
                              std::array<double, 3> otherwise) {
  const Json* value = from.find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    otherwise.fill(from.number(key, least, most));
    return otherwise;
  }
  if (!value->is_array() || value->size() != 3) from.fail(key, "three numbers were expected");
  for (std::size_t c = 0; c < 3; ++c) {
    const Json& item = (*value)[c];
    if (!item.is_number()) from.fail(key, "three numbers were expected");
    otherwise[c] = item.get<double>();
    if (!(otherwise[c] >= least && otherwise[c] <= most)) {
      from.fail(key, item.dump() + " is not between " + Json(least).dump() + " and " + Json(most).dump());
    }
  }
  return otherwise;
}

/// The bounds on a frame's pixels. Throws ModelError if no frame can be within both.
void read_bounds(const JsonObject& from, PreprocessSettings& settings) {
  const char* named = "min_pixels";
  const auto read = [&](const JsonObject& in, const char* least, const char* most) {
    settings.min_pixels = in.integer(least, 1, kMostLeastPixels, settings.min_pixels);
    settings.max_pixels = in.integer(most, 1, kMostPixels, settings.max_pixels);
  };
  if (const auto size = from.optional_object("size")) {
    if (size->has("shortest_edge") && !size->has("min_pixels")) named = "size.shortest_edge";
    read(*size, size->has("min_pixels") ? "min_pixels" : "shortest_edge",
         size->has("max_pixels") ? "max_pixels" : "longest_edge");
  }
  if (from.has("min_pixels")) named = "min_pixels";
  read(from, "min_pixels", "max_pixels");
  if (settings.min_pixels > settings.max_pixels) {
    // Either may be a default, which is why both are told.
    from.fail(named, std::to_string(settings.min_pixels) + " is above the most pixels of a frame, " +
                         std::to_string(settings.max_pixels));
  }
}

PreprocessSettings settings_of(const JsonObject& from, PreprocessSettings settings) {
  settings.do_resize = from.boolean("do_resize", settings.do_resize);
  read_bounds(from, settings);
  settings.patch_size = static_cast<int>(from.integer("patch_size", 1, 1024, settings.patch_size));
  settings.temporal_patch_size =
      static_cast<int>(from.integer("temporal_patch_size", 1, 64, settings.temporal_patch_size));
  settings.merge_size = static_cast<int>(from.integer("merge_size", 1, 64, settings.merge_size));
  settings.do_rescale = from.boolean("do_rescale", settings.do_rescale);
  settings.rescale_factor = from.number("rescale_factor", 1e-9, 1e9, settings.rescale_factor);
  settings.do_normalize = from.boolean("do_normalize", settings.do_normalize);
  settings.mean = colours(from, "image_mean", -kMostMean, kMostMean, settings.mean);
  settings.std = colours(from, "image_std", kLeastDeviation, kMostDeviation, settings.std);
  if (from.integer("resample", 0, 5, kBicubic) != kBicubic) {
    from.fail("resample", "only " + std::to_string(kBicubic) + " (bicubic) is supported");
  }
  return settings;
}

/// The settings under `key` of processor_config.json (transformers 5), else those of the first of `files`
/// that exists.
PreprocessSettings read_settings(const std::filesystem::path& folder, const char* key,
                                 std::span<const char* const> files, const PreprocessSettings& defaults) {
  if (const auto path = folder / "processor_config.json"; is_there(path)) {
    const Json root = read_json_file(path);
    const JsonObject top(root, path.string());
    if (const auto nested = top.optional_object(key)) return settings_of(*nested, defaults);
  }
  for (const char* file : files) {
    const auto path = folder / file;
    if (!is_there(path)) continue;
    const Json root = read_json_file(path);
    return settings_of(JsonObject(root, path.string()), defaults);
  }
  throw ModelError(folder.string() + ": neither processor_config.json nor " + files.back() + " is here");
}

/// What a level becomes, in the arithmetic of the implementation that is followed: both are exact functions
/// of 256 levels.
float normalised(const PreprocessSettings& settings, std::size_t colour, int level) {
  const auto mean = static_cast<float>(settings.mean[colour]);
  const auto std = static_cast<float>(settings.std[colour]);
  if (settings.resize_like == kernels::ResizeLike::torch && settings.do_rescale && settings.do_normalize) {
    // torchvision takes the rescaling into mean and deviation.
    const auto whole = static_cast<float>(1.0 / settings.rescale_factor);
    return (static_cast<float>(level) - mean * whole) / (std * whole);
  }
  const auto value =
      settings.do_rescale ? static_cast<float>(level * settings.rescale_factor) : static_cast<float>(level);
  return settings.do_normalize ? (value - mean) / std : value;
}

std::string text_of(PictureSize size) {
  return std::to_string(size.width) + "x" + std::to_string(size.height);
}

}  // namespace

PreprocessConfig read_preprocess_config(const std::filesystem::path& folder) {
  PreprocessConfig config;
  constexpr std::array<const char*, 1> kImageFiles = {"preprocessor_config.json"};
  constexpr std::array<const char*, 2> kVideoFiles = {"video_preprocessor_config.json",
                                                      "preprocessor_config.json"};
  config.image = read_settings(folder, "image_processor", kImageFiles, PreprocessSettings{});
  // The defaults of Qwen2VLVideoProcessor; a published folder has one file, with bounds, for both.
  PreprocessSettings video;
  video.min_pixels = std::int64_t{128} * 28 * 28;
  video.max_pixels = std::int64_t{28} * 28 * 768;
  video.resize_like = kernels::ResizeLike::torch;
  config.video = read_settings(folder, "video_processor", kVideoFiles, video);
  return config;
}

Preprocessor::Preprocessor(const PreprocessSettings& settings, const VisionConfig& vision)
    : settings_(settings) {
  const auto require = [](const char* name, int ours, int theirs) {
    if (ours != theirs) {
      throw ModelError(std::string("the preprocessing has the ") + name + " " + std::to_string(ours) +
                       ", the vision tower " + std::to_string(theirs));
    }
  };
  require("patch_size", settings.patch_size, vision.patch_size);
  require("temporal_patch_size", settings.temporal_patch_size, vision.temporal_patch_size);
  require("merge_size", settings.merge_size, vision.spatial_merge_size);
  for (std::size_t c = 0; c < 3; ++c) {
    for (int level = 0; level < 256; ++level) {
      table_[c][static_cast<std::size_t>(level)] = normalised(settings_, c, level);
    }
  }
}

PictureSize Preprocessor::frame_size(PictureSize source) const {
  if (source.width <= 0 || source.height <= 0)
    throw std::invalid_argument("an empty picture: " + text_of(source));
  const int group = settings_.patch_size * settings_.merge_size;
  if (!settings_.do_resize) {
    if (source.width % group == 0 && source.height % group == 0) return source;
    throw std::invalid_argument("a picture of " + text_of(source) +
                                ": the model does not resize, its sides must be multiples of " +
                                std::to_string(group));
  }
  // The arithmetic of the published smart_resize, in double precision and with its order of operations.
  const double height = source.height;
  const double width = source.width;
  const double factor = group;
  if (std::max(height, width) / std::min(height, width) > 200) {
    throw std::invalid_argument("a picture of " + text_of(source) +
                                " is more than 200 times as long as wide");
  }
  double rows = std::nearbyint(height / factor) * factor;
  double columns = std::nearbyint(width / factor) * factor;
  const auto most = static_cast<double>(settings_.max_pixels);
  const auto least = static_cast<double>(settings_.min_pixels);
  if (rows * columns > most) {
    const double beta = std::sqrt((height * width) / most);
    rows = std::max(factor, std::floor(height / beta / factor) * factor);
    columns = std::max(factor, std::floor(width / beta / factor) * factor);
  } else if (rows * columns < least) {
    const double beta = std::sqrt(least / (height * width));
    rows = std::ceil(height * beta / factor) * factor;
    columns = std::ceil(width * beta / factor) * factor;
  }
  const double limit = std::numeric_limits<int>::max();
  if (rows < factor || columns < factor || rows > limit || columns > limit) {
    throw std::invalid_argument("a picture of " + text_of(source) + " cannot be brought to the model's size");
  }
  return {static_cast<int>(columns), static_cast<int>(rows)};
}

std::int64_t Preprocessor::patch_rows(PictureSize frame) const {
  return std::int64_t{frame.width / settings_.patch_size} * (frame.height / settings_.patch_size);
}

std::int64_t Preprocessor::tokens(PictureSize frame) const {
  return patch_rows(frame) / (std::int64_t{settings_.merge_size} * settings_.merge_size);
}

std::int64_t Preprocessor::patch_values() const {
  return std::int64_t{3} * settings_.temporal_patch_size * settings_.patch_size * settings_.patch_size;
}

void Preprocessor::cut(kernels::Stream& stream, std::span<const PictureView> frames, kernels::Matrix out,
                       const std::int32_t* squares) const {
  const auto wanted = static_cast<std::size_t>(settings_.temporal_patch_size);
  if (frames.empty() || frames.size() > wanted) {
    throw std::invalid_argument("a temporal patch of " + std::to_string(frames.size()) +
                                " frames, the model has " + std::to_string(wanted));
  }
  std::vector<const std::uint8_t*> pictures;
  for (const PictureView& frame : frames) {
    if (frame.width != frames[0].width || frame.height != frames[0].height) {
      throw std::invalid_argument("frames of unequal size in one temporal patch");
    }
    pictures.push_back(frame.rgb);
  }
  pictures.resize(wanted, pictures.back());
  kernels::cut_patches(stream, pictures, frames[0].height, frames[0].width, settings_.patch_size,
                       settings_.merge_size, table_, out, squares);
}

PixelValues Preprocessor::process(kernels::Stream& stream, std::span<const PictureView> frames) const {
  if (frames.empty()) throw std::invalid_argument("no frames");
  const PictureSize source{frames[0].width, frames[0].height};
  const PictureSize size = frame_size(source);
  const auto per_patch = static_cast<std::size_t>(settings_.temporal_patch_size);
  PixelValues result;
  result.grid_time = static_cast<int>((frames.size() + per_patch - 1) / per_patch);
  result.grid_height = size.height / settings_.patch_size;
  result.grid_width = size.width / settings_.patch_size;
  const std::int64_t rows = patch_rows(size);
  const auto values = static_cast<std::size_t>(rows * patch_values());
  result.values.resize(static_cast<std::size_t>(result.grid_time) * values);

  const std::size_t bytes = static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3;
  std::vector<std::uint8_t> resized(size == source ? 0 : per_patch * bytes);
  for (std::size_t t = 0; t < static_cast<std::size_t>(result.grid_time); ++t) {
    std::vector<PictureView> patch;
    for (std::size_t i = t * per_patch; i < std::min(frames.size(), (t + 1) * per_patch); ++i) {
      const PictureView& frame = frames[i];
      if (frame.width != source.width || frame.height != source.height) {
        throw std::invalid_argument("frames of unequal size in one video");
      }
      if (size == source) {
        patch.push_back(frame);
        continue;
      }
      std::uint8_t* to = resized.data() + patch.size() * bytes;
      kernels::resize_bicubic(stream, frame.rgb, frame.height, frame.width, to, size.height, size.width, 3,
                              settings_.resize_like);
      patch.push_back({to, size.width, size.height});
    }
    cut(stream, patch,
        kernels::dense(result.values.data() + t * values, kernels::DType::f32, rows, patch_values()));
  }
  return result;
}

}  // namespace vigil::model
