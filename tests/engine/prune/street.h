// A street that a camera films, and what a model that gets chosen groups of it has seen.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/engine/prune/scene.h"

namespace vigil::prune::testing {

/// A thing in a street, in pixels of the street.
struct Thing {
  int left = 0, top = 0, wide = 0, high = 0;
  std::array<int, 3> colour = {};
};

/// How it is filmed.
struct Take {
  /// What is moved out of the picture at its left and top, up to `Street::kMargin` either way.
  int right = 0, down = 0;
  double zoom = 1;
  double gain = 1;
  int offset = 0;
  /// Evenly distributed, of at most so much: a standard deviation of 0.58 of it.
  int noise = 5;
  /// Without colour, and what is bright is brighter.
  bool infrared = false;
  std::vector<Thing> things = {};
};

/// Boxes of many greys and some colour on a grey ground, a few of them large; always the same for a seed.
class Street {
 public:
  static constexpr int kMargin = 60;
  /// Of a picture of `groups` x `groups` groups; so many boxes.
  explicit Street(unsigned seed, int groups = 8, int boxes = 120)
      : groups_(groups), edge_(28 * groups + 2 * kMargin) {
    std::mt19937 random(seed);
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    for (int i = 0; i < boxes; ++i) {
      const int grey = draw(50, 190);
      things_.push_back({draw(-20, edge_),
                         draw(-20, edge_),
                         draw(6, 60),
                         draw(6, 60),
                         {grey + draw(-20, 20), grey, grey + draw(-20, 20)}});
    }
  }

  int groups() const { return groups_; }

  Canvas film(const Take& take, std::mt19937& random) const {
    std::vector<std::array<int, 3>> ground(static_cast<std::size_t>(edge_ * edge_), {110, 110, 110});
    for (const std::vector<Thing>* things : {&things_, &take.things})
      for (const Thing& thing : *things) {
        // Things of a take are in pixels of the picture that is not moved.
        const int shift = things == &things_ ? 0 : kMargin;
        for (int y = std::max(0, thing.top + shift); y < std::min(edge_, thing.top + shift + thing.high); ++y)
          for (int x = std::max(0, thing.left + shift); x < std::min(edge_, thing.left + shift + thing.wide);
               ++x)
            ground[static_cast<std::size_t>(y * edge_ + x)] = thing.colour;
      }
    Canvas picture(groups_, groups_);
    std::uint8_t* to = picture.rgb.data();
    const double middle = picture.width / 2.0;
    for (int y = 0; y < picture.height; ++y)
      for (int x = 0; x < picture.width; ++x) {
        const int from_x =
            static_cast<int>(std::lround((x - middle) / take.zoom + middle)) + kMargin + take.right;
        const int from_y =
            static_cast<int>(std::lround((y - middle) / take.zoom + middle)) + kMargin + take.down;
        std::array<int, 3> colour = ground[static_cast<std::size_t>(from_y * edge_ + from_x)];
        if (take.infrared) colour.fill(colour[1] * colour[1] / 128);
        // Evenly enough, and faster than a distribution.
        const int noise =
            take.noise == 0
                ? 0
                : static_cast<int>(random() % static_cast<unsigned>(2 * take.noise + 1)) - take.noise;
        for (const int value : colour)
          *to++ = static_cast<std::uint8_t>(
              std::clamp(static_cast<int>(take.gain * value) + take.offset + noise, 0, 255));
      }
    return picture;
  }

 private:
  int groups_;
  int edge_;
  std::vector<Thing> things_;
};

/// Films patches of two frames a second apart, has them chosen, and keeps what the model has seen.
class Watch {
 public:
  explicit Watch(PruningPolicy& policy, int groups = 8) : seen_(groups, groups), policy_(policy) {}

  base::GridMask patch(const Street& street, const Take& first, const Take& second) {
    const Canvas a = street.film(first, random_), b = street.film(second, random_);
    const base::GridMask kept = choose(policy_, seconds_, {&a, &b});
    seconds_ += 1;
    for (const std::int32_t group : kept.list()) {
      const int top = 28 * (group / static_cast<int>(kept.width()));
      const int left = 28 * (group % static_cast<int>(kept.width()));
      for (int y = top; y < top + 28; ++y)
        std::copy_n(b.rgb.begin() + 3 * (y * b.width + left), 3 * 28,
                    seen_.rgb.begin() + 3 * (y * b.width + left));
    }
    ++patches_;
    kept_ += kept.count();
    if (kept.has_all()) ++whole_;
    return kept;
  }
  base::GridMask patch(const Street& street, const Take& take = {}) { return patch(street, take, take); }

  /// Groups that the model saw otherwise than they are: by more than so much on the average of a pixel.
  base::GridMask stale(const Street& street, Take take, double more_than) {
    take.noise = 0;
    const Canvas now = street.film(take, random_);
    base::GridMask stale = base::GridMask::none(street.groups(), street.groups());
    for (int row = 0; row < street.groups(); ++row)
      for (int column = 0; column < street.groups(); ++column) {
        int sum = 0;
        for (int y = 28 * row; y < 28 * row + 28; ++y)
          for (int i = 3 * (y * now.width + 28 * column); i < 3 * (y * now.width + 28 * column + 28); ++i)
            sum += std::abs(now.rgb[static_cast<std::size_t>(i)] - seen_.rgb[static_cast<std::size_t>(i)]);
        if (sum > more_than * 3 * 28 * 28) stale.add(row, column);
      }
    return stale;
  }

  /// Counts from here on.
  void count_anew() { patches_ = whole_ = 0, kept_ = 0; }
  int whole() const { return whole_; }
  std::int64_t kept() const { return kept_; }
  /// Kept of all groups.
  double share() const {
    return static_cast<double>(kept_) /
           static_cast<double>(patches_ * (seen_.width / 28) * (seen_.height / 28));
  }
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_{7};
  Canvas seen_;
  PruningPolicy& policy_;
  double seconds_ = 0;
  int patches_ = 0, whole_ = 0;
  std::int64_t kept_ = 0;
};

}  // namespace vigil::prune::testing
