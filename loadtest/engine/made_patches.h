// Patches that no tower has made: random embeddings of some groups of a picture.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/grid_mask.h"
#include "engine/model/vision/visual_tokens.h"
#include "kernels/device/buffer.h"
#include "kernels/random/random.h"

namespace vigil::loadtest {

/// One a second, each in memory of its own, as a tower's are. Not thread-safe.
class MadePatches {
 public:
  /// Groups of a picture: 448x448, a group 28x28.
  static constexpr std::int64_t kGrid = 16, kCells = kGrid * kGrid;

  /// Of the picture's groups `kept` are there, others in each patch, and `standing_out` of them stand out.
  MadePatches(const kernels::Stream& stream, kernels::DType type, std::int64_t width, std::int64_t kept,
              std::int64_t standing_out)
      : stream_(stream),
        type_(type),
        width_(width),
        bytes_(static_cast<std::size_t>(kept * width) * kernels::size_of(type)),
        values_(stream_, static_cast<std::size_t>(kMade) * bytes_) {
    kernels::fill_random(stream_,
                         kernels::dense(static_cast<void*>(values_.data()), type, kMade * kept, width), 1, 1);
    stream_.synchronize();
    std::mt19937_64 random(1);
    std::vector<std::int32_t> cells(kCells);
    std::iota(cells.begin(), cells.end(), 0);
    for (std::int64_t i = 0; i < kMade; ++i) {
      std::shuffle(cells.begin(), cells.end(), random);
      Masks masks{base::GridMask::none(kGrid, kGrid), base::GridMask::none(kGrid, kGrid)};
      for (std::int64_t k = 0; k < kept; ++k) masks.kept.add(cells[static_cast<std::size_t>(k)]);
      for (std::int64_t k = 0; k < standing_out; ++k)
        masks.standing_out.add(cells[static_cast<std::size_t>(k)]);
      masks_.push_back(std::move(masks));
    }
  }

  /// Of this second.
  model::VisualTokensPtr patch(std::int64_t second) {
    const auto which = static_cast<std::size_t>(second % kMade);
    auto patch = std::make_shared<model::VisualTokens>();
    patch->dtype = type_;
    patch->width = width_;
    patch->kept = masks_[which].kept;
    patch->standing_out = masks_[which].standing_out;
    patch->seconds = static_cast<double>(second);
    patch->duration = 1;
    patch->embeddings = kernels::Buffer(stream_, bytes_);
    kernels::copy(stream_, patch->embeddings.data(), values_.data() + which * bytes_, bytes_);
    stream_.synchronize();
    return patch;
  }

 private:
  /// Patches whose values and groups are used again and again.
  static constexpr std::int64_t kMade = 64;

  struct Masks {
    base::GridMask kept, standing_out;
  };
  kernels::Stream stream_;
  kernels::DType type_;
  std::int64_t width_;
  std::size_t bytes_;
  kernels::Buffer values_;
  std::vector<Masks> masks_;
};

}  // namespace vigil::loadtest
