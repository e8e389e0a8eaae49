// What the vision tower takes for some groups of its patches, beside what it takes for all of them: its time
// by the share that it encodes, where it remembers the rest and where it does not. A JSON object a line;
// `of_its_share` is the time of whole patches, by the share.
//
//   bench_tower SHAPE TOKENIZER_FOLDER [DEVICE] [SIZE]
//   (SHAPE: loadtest/shapes/*.json; DEVICE: cpu, cuda:0; SIZE: of a picture's edge, in pixels)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model_folder.h"
#include "engine/run/device.h"
#include "engine/run/tower_encoder.h"
#include "loadtest/engine/median.h"

namespace {

using namespace vigil;

/// Whole patches of a pass, each of another camera; of patches that are chosen from, as many more as take the
/// same rows, as `PatchQueue` has it.
constexpr std::size_t kPatches = 8;
constexpr std::size_t kMostPatches = 64;
/// A window of the tower's attention is so many groups wide (112 pixels).
constexpr std::int64_t kWindow = 4;

enum class Layout : std::uint8_t { scattered, windows };
constexpr const char* kLayouts[] = {"scattered", "windows"};

/// About this share of the groups: single ones anywhere, or whole windows of the tower's attention.
base::GridMask some(std::int64_t side, double share, Layout layout, std::mt19937& random) {
  const std::int64_t cell = layout == Layout::windows ? kWindow : 1;
  std::vector<std::pair<std::int64_t, std::int64_t>> corners;
  for (std::int64_t y = 0; y < side; y += cell)
    for (std::int64_t x = 0; x < side; x += cell) corners.emplace_back(y, x);
  std::shuffle(corners.begin(), corners.end(), random);
  base::GridMask groups = base::GridMask::none(side, side);
  for (const auto& [y, x] : corners) {
    if (static_cast<double>(groups.count()) >= share * static_cast<double>(groups.cells())) break;
    for (std::int64_t v = y; v < std::min(y + cell, side); ++v)
      for (std::int64_t u = x; u < std::min(x + cell, side); ++u) groups.add(v, u);
  }
  return groups;
}

class Tower {
 public:
  Tower(const std::string& shape, const std::string& text, const std::string& device, int side)
      : folder_(model::ModelFolder::made_up(shape, text, 1)),
        where_(run::parse_device(device)),
        stream_(run::make_streams(where_, 0).front()),
        encoder_(folder_, model::choose_compute(*folder_, {}, where_.kind), stream_,
                 model::Quantization::none, model::choose_compute(*folder_, {}, where_.kind)),
        side_(side) {
    for (std::size_t i = 0; i < 2 * kPatches; ++i) {
      auto& picture =
          pictures_.emplace_back(static_cast<std::size_t>(3 * side) * static_cast<std::size_t>(side));
      for (auto& level : picture) level = static_cast<std::uint8_t>(random_());
    }
  }

  /// Milliseconds, the median; each time other groups, as in a pipeline.
  double ms(std::size_t count, const std::function<std::optional<base::GridMask>()>& chosen, bool remembers) {
    std::vector<run::PatchFrames> patches;
    const auto choose = [&] {
      patches.clear();
      for (std::size_t k = 0; k < count; ++k) {
        run::PatchFrames patch{{{pictures_[(2 * k) % pictures_.size()].data(), side_, side_},
                                {pictures_[(2 * k + 1) % pictures_.size()].data(), side_, side_}},
                               0,
                               1};
        patch.encoded = chosen();
        if (remembers) {
          patch.camera = std::to_string(k);
          patch.kept = base::GridMask::all(groups(), groups());
        }
        patches.push_back(std::move(patch));
      }
    };
    return median_ms(choose, [&] {
      encoder_.encode(patches);
      stream_.synchronize();
    });
  }
  std::int64_t groups() const { return side_ / 28; }
  std::mt19937& random() { return random_; }

 private:
  std::shared_ptr<const model::ModelFolder> folder_;
  run::Device where_;
  kernels::Stream stream_;
  run::TowerEncoder encoder_;
  int side_;
  std::mt19937 random_{1};
  std::vector<std::vector<std::uint8_t>> pictures_;
};

void measure(Tower& tower, const std::string& device) {
  for (const bool remembers : {false, true}) {
    const double whole = tower.ms(
        kPatches, [] { return std::nullopt; }, remembers);
    std::printf("{\"bench\": \"tower\", \"device\": \"%s\", \"remembers\": %s, \"share\": 1, \"ms\": %.3f}\n",
                device.c_str(), remembers ? "true" : "false", whole);
    for (const Layout layout : {Layout::scattered, Layout::windows})
      for (const std::size_t count : {kPatches, kMostPatches})
        for (const double share : {0.0625, 0.125, 0.25, 0.5, 0.75}) {
          const auto fits = static_cast<std::size_t>(static_cast<double>(kPatches) / share);
          const std::size_t patches = std::min(count, fits);
          std::int64_t encoded = 0, all = 0;
          const double ms = tower.ms(
              patches,
              [&] {
                base::GridMask groups = some(tower.groups(), share, layout, tower.random());
                encoded += groups.count();
                all += groups.cells();
                return std::optional(std::move(groups));
              },
              remembers);
          const double real = static_cast<double>(encoded) / static_cast<double>(all);
          const double of_whole = real * static_cast<double>(patches) / static_cast<double>(kPatches);
          std::printf(
              "{\"bench\": \"tower\", \"device\": \"%s\", \"remembers\": %s, \"groups\": \"%s\", "
              "\"patches\": %zu, "
              "\"share\": %.4f, \"ms\": %.3f, \"of_its_share\": %.3f}\n",
              device.c_str(), remembers ? "true" : "false", kLayouts[static_cast<int>(layout)], patches, real,
              ms, ms / (of_whole * whole));
          std::fflush(stdout);
        }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || count > 5) {
    std::fprintf(stderr, "usage: bench_tower SHAPE TOKENIZER_FOLDER [DEVICE] [SIZE]\n");
    return EXIT_FAILURE;
  }
  try {
    const std::string device = count > 3 ? arguments[3] : "cpu";
    const int side = count > 4 ? std::stoi(arguments[4]) : 448;
    if (side < 28 || side % 28 != 0) throw std::invalid_argument("SIZE: expected a multiple of 28");
    Tower tower(arguments[1], arguments[2], device, side);
    measure(tower, device);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_tower: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
