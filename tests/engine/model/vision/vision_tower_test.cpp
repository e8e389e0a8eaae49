#include "engine/model/vision/vision_tower.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/families/qwen2_5_vl.h"
#include "engine/model/model_folder.h"
#include "tests/kernels/on_device.h"

namespace vigil::model {
namespace {

using kernels::DType;

/// Windows of 4 x 4 squares of 2 x 2 patches, as Qwen2.5-VL has them; heads of 80 values.
VisionConfig published_shape() {
  VisionConfig vision;
  vision.hidden_size = 1280;
  vision.num_heads = 16;
  vision.traits = kQwen25Vl.vision;
  return vision;
}

/// What a plan is, computed patch by patch on the host.
struct Reference {
  std::vector<std::int32_t> squares, window_bounds{0}, frame_bounds{0};
  std::vector<float> cos, sin;

  /// `kept`: of each grid; nothing: all.
  Reference(const VisionConfig& config, std::span<const PatchGrid> grids,
            std::span<const base::GridMask> kept = {}) {
    const std::int64_t merge = config.spatial_merge_size;
    const std::int64_t window = config.window_size / merge / config.patch_size;
    const int axis_values = config.head_dim() / 2;
    std::int64_t first_square = 0;
    std::int32_t rows = 0;
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const PatchGrid& grid = grids[i];
      const base::GridMask mask =
          kept.empty() ? base::GridMask::all(grid.h / merge, grid.w / merge) : kept[i];
      const std::vector<std::int32_t> list = mask.list();
      for (std::int64_t t = 0; t < grid.t; ++t, first_square += mask.count()) {
        for (std::int64_t top = 0; top < grid.h / merge; top += window)
          for (std::int64_t left = 0; left < grid.w / merge; left += window) {
            for (std::int64_t y = top; y < std::min(top + window, grid.h / merge); ++y)
              for (std::int64_t x = left; x < std::min(left + window, grid.w / merge); ++x) {
                const auto place = std::find(list.begin(), list.end(), y * (grid.w / merge) + x);
                if (place == list.end()) continue;
                squares.push_back(static_cast<std::int32_t>(first_square + (place - list.begin())));
                for (std::int64_t patch = 0; patch < merge * merge; ++patch, ++rows)
                  for (const std::int64_t at : {y * merge + patch / merge, x * merge + patch % merge})
                    for (int j = 0; j < axis_values / 2; ++j) {
                      const float exponent = static_cast<float>(2 * j) / static_cast<float>(axis_values);
                      const float angle = static_cast<float>(at) * (1.0F / std::pow(10000.0F, exponent));
                      cos.push_back(std::cos(angle));
                      sin.push_back(std::sin(angle));
                    }
              }
            if (rows > window_bounds.back()) window_bounds.push_back(rows);
          }
        if (rows > frame_bounds.back()) frame_bounds.push_back(rows);
      }
    }
  }
};

/// About one square in `every`, of each grid others.
std::vector<base::GridMask> masks_of(std::span<const PatchGrid> grids, std::int64_t every) {
  kernels::Random random(static_cast<std::uint64_t>(every));
  std::vector<base::GridMask> masks;
  for (const PatchGrid& grid : grids) {
    base::GridMask& mask = masks.emplace_back(base::GridMask::none(grid.h / 2, grid.w / 2));
    for (std::int64_t cell = 0; cell < mask.cells(); ++cell)
      if (random.below(every) == 0) mask.add(cell);
  }
  return masks;
}

/// Sets of grids in the order in which a tower might see them: again, in other orders and numbers, growing.
std::vector<std::vector<PatchGrid>> sets_of_grids() {
  const PatchGrid small{1, 4, 6}, square{1, 32, 32}, wide{1, 20, 36}, video{3, 10, 8}, long_one{1, 2, 300};
  return {{square},          {small, wide}, {wide, small}, {}, {square, square, small}, {video, wide, video},
          {long_one, small}, {square}};
}

TEST(VisionPlannerTest, PutsFramesTogetherAsIfEachPatchWereWorkedOut) {
  for (const int window_size : {28, 112, 168}) {
    VisionConfig config = published_shape();
    config.window_size = window_size;
    VisionPlanner planner(config);
    for (const std::vector<PatchGrid>& grids : sets_of_grids()) {
      const Reference expected(config, grids);
      const VisionPlan& plan = planner.plan(grids);
      EXPECT_EQ(plan.squares, expected.squares);
      EXPECT_EQ(plan.window_bounds, expected.window_bounds);
      EXPECT_EQ(plan.frame_bounds, expected.frame_bounds);
      ASSERT_EQ(plan.places.size(), plan.squares.size());
      for (std::size_t i = 0; i < plan.squares.size(); ++i)
        ASSERT_EQ(plan.places[static_cast<std::size_t>(plan.squares[i])], static_cast<std::int32_t>(i));
    }
  }
}

TEST(VisionPlannerTest, OfSquaresThatAreKeptAlone) {
  const VisionConfig config = published_shape();
  VisionPlanner planner(config);
  for (const std::vector<PatchGrid>& grids : sets_of_grids())
    for (const std::int64_t every : {1, 2, 7, 100'000}) {
      const std::vector<base::GridMask> kept = masks_of(grids, every);
      const Reference expected(config, grids, kept);
      const VisionPlan& plan = planner.plan(grids, kept);
      EXPECT_EQ(plan.squares, expected.squares);
      EXPECT_EQ(plan.window_bounds, expected.window_bounds);
      EXPECT_EQ(plan.frame_bounds, expected.frame_bounds);
      ASSERT_EQ(plan.patches(), 4 * static_cast<std::int64_t>(expected.squares.size()));
      for (std::size_t i = 0; i < plan.squares.size(); ++i)
        ASSERT_EQ(plan.places[static_cast<std::size_t>(plan.squares[i])], static_cast<std::int32_t>(i));
    }
}

TEST(VisionPlannerTest, MasksThatAreNotTheGridsAreRefused) {
  VisionPlanner planner(published_shape());
  const std::vector<PatchGrid> grids{{1, 4, 4}, {1, 4, 8}};
  const std::vector<base::GridMask> one{base::GridMask::all(2, 2)};
  EXPECT_THROW(planner.plan(grids, one), std::invalid_argument);
  const std::vector<base::GridMask> swapped{base::GridMask::all(2, 4), base::GridMask::all(2, 2)};
  EXPECT_THROW(planner.plan(grids, swapped), std::invalid_argument);
  const std::vector<base::GridMask> right{base::GridMask::all(2, 2), base::GridMask::none(2, 4)};
  EXPECT_EQ(planner.plan(grids, right).patches(), 16);
}

TEST(VisionPlannerTest, SizesBeyondThoseThatItKeepsArePlannedToo) {
  const VisionConfig config = published_shape();
  VisionPlanner planner(config);
  for (int turn = 0; turn < 2; ++turn)
    for (std::int64_t width = 2; width <= 200; width += 2) {
      const std::vector<PatchGrid> grids{{1, 6, width}, {2, 4, width}};
      const Reference expected(config, grids);
      const VisionPlan& plan = planner.plan(grids);
      ASSERT_EQ(plan.squares, expected.squares) << width;
      ASSERT_EQ(plan.window_bounds, expected.window_bounds) << width;
    }
}

TEST(VisionPlannerTest, GridsThatAreNoWholeNumberOfSquaresAreRefused) {
  VisionPlanner planner(published_shape());
  for (const PatchGrid& grid : {PatchGrid{1, 3, 4}, {1, 4, 3}, {0, 4, 4}, {1, 0, 4}, {1, 4, -2}}) {
    const std::vector<PatchGrid> grids{{1, 4, 4}, grid};
    EXPECT_THROW(planner.plan(grids), std::invalid_argument) << grid.h << " x " << grid.w;
  }
  const std::vector<PatchGrid> good{{1, 4, 4}};
  EXPECT_EQ(planner.plan(good).patches(), 16);
}

TEST(VisionAnglesTest, AreThoseOfEachPatchsRowAndColumn) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  for (const int head_dim : {4, 20, 80}) {
    VisionConfig config = published_shape();
    config.hidden_size = config.num_heads * head_dim;
    kernels::Stream stream = kernels::test_stream(2);
    VisionPlanner planner(config);
    VisionAngles angles(config);
    for (const std::vector<PatchGrid>& grids : sets_of_grids())
      for (const std::int64_t every : {1, 3}) {
        const std::vector<base::GridMask> kept = masks_of(grids, every);
        const Reference expected(config, grids, kept);
        const VisionPlan& plan = planner.plan(grids, kept);
        std::vector<std::int32_t> positions;
        for (const auto& position : plan.positions)
          positions.insert(positions.end(), position.begin(), position.end());
        const kernels::DeviceArray<std::int32_t> there(stream, positions);
        angles.make(stream, there.data(), plan.patches(), plan.side);
        std::vector<float> cos(expected.cos.size()), sin(cos.size());
        ASSERT_EQ(static_cast<std::int64_t>(cos.size()), plan.patches() * head_dim / 2);
        kernels::download(stream, cos.data(), angles.cos(), cos.size() * sizeof(float));
        kernels::download(stream, sin.data(), angles.sin(), sin.size() * sizeof(float));
        if (kernels::tests_on_gpu()) {
          for (std::size_t i = 0; i < cos.size(); ++i) {
            ASSERT_NEAR(cos[i], expected.cos[i], 2e-7) << i;
            ASSERT_NEAR(sin[i], expected.sin[i], 2e-7) << i;
          }
        } else {
          // To the last bit: what transformers was compared with.
          EXPECT_EQ(cos, expected.cos);
          EXPECT_EQ(sin, expected.sin);
        }
      }
  }
}

/// The demo model's tower, with made-up pictures.
class DemoTower {
 public:
  /// Tokens of pictures, one after the other; `of` names each picture, whose patches depend on that alone.
  std::vector<float> encode(std::span<const PatchGrid> grids, std::span<const int> of) {
    std::vector<float> patches;
    for (std::size_t i = 0; i < grids.size(); ++i) {
      kernels::Random random(static_cast<std::uint64_t>(of[i]));
      for (std::int64_t j = 0; j < grids[i].patches() * tower_.patch_values(); ++j)
        patches.push_back(random.number());
    }
    const kernels::DeviceArray<float> there(stream_, patches);
    const auto rows = static_cast<std::int64_t>(patches.size()) / tower_.patch_values();
    const kernels::Matrix made = tower_.encode(
        stream_,
        kernels::dense(static_cast<const void*>(there.data()), DType::f32, rows, tower_.patch_values()),
        grids);
    std::vector<float> tokens(static_cast<std::size_t>(made.rows * made.cols));
    kernels::download(stream_, tokens.data(), made.data, tokens.size() * sizeof(float));
    return tokens;
  }

 private:
  kernels::Stream stream_ = kernels::test_stream(2);
  std::shared_ptr<const ModelFolder> folder_ =
      ModelFolder::open(std::string(VIGIL_SOURCE_DIR) + "/models/demo");
  VisionTower tower_{folder_->config.vision, folder_->parameters(stream_, DType::f32)};
};

// What a tower keeps from one pass to the next is of no consequence for it.
TEST(VisionTowerTest, PicturesHaveTheSameTokensInAnyCompany) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const PatchGrid small{1, 4, 6}, wide{1, 8, 20}, video{2, 6, 6};
  DemoTower kept;
  const auto alone = [&](const PatchGrid& grid, int name) {
    return DemoTower().encode(std::span(&grid, 1), std::span(&name, 1));
  };
  const std::vector<PatchGrid> grids[] = {
      {small, wide, video}, {wide, small}, {video, video, small}, {small, wide, video}};
  const std::vector<int> names[] = {{1, 2, 3}, {2, 4}, {3, 5, 1}, {6, 2, 7}};
  for (std::size_t i = 0; i < std::size(grids); ++i) {
    const std::vector<float> tokens = kept.encode(grids[i], names[i]);
    std::vector<float> expected;
    for (std::size_t j = 0; j < grids[i].size(); ++j) {
      const std::vector<float> own = alone(grids[i][j], names[i][j]);
      expected.insert(expected.end(), own.begin(), own.end());
    }
    ASSERT_EQ(tokens.size(), expected.size());
    float most = 0;
    for (const float value : expected) most = std::max(most, std::abs(value));
    // Products of more rows may add up in another order.
    for (std::size_t j = 0; j < tokens.size(); ++j)
      ASSERT_NEAR(tokens[j], expected[j], 1e-4 * most) << i << ", " << j;
  }
}

}  // namespace
}  // namespace vigil::model
