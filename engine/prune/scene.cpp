#include "engine/prune/scene.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "engine/prune/luma.h"

namespace vigil::prune {
namespace {

/// Levels of luma by which two blocks of a group have to differ: less shows no object, but a codec's own
/// changes (docs/experiments/2026-11-25-default-pruning.md has shares for others).
constexpr float kLeastChange = 8;
/// Of the mean difference that noise makes of a block. That is 3.5 standard deviations, which two of
/// 16 blocks hardly ever exceed by chance.
constexpr float kNoiseMargin = 4.4F;
/// Beyond it, it is no noise of a camera: rain, snow and a trembling camera must not blind it. When the
/// allowance of groups is used up, that is what they have to do all the same.
constexpr float kMostNoise = 3, kMostNoiseOfStorms = 6;
/// Noise is learnt over some twenty frames, and forgotten over three when it is over.
constexpr float kNoiseUp = 0.05F, kNoiseDown = 0.3F;

/// Light that moved the picture by so much of its brightness, and so many levels, is shown.
constexpr float kLightShare = 0.15F;
constexpr float kLightLevels = 6;

/// Whether the camera moved is looked for in squares of so many groups.
constexpr std::int64_t kSquare = 4;
/// A window of the tower's attention of which such a share changed is whole: the tower loses less on whole
/// windows than on scattered groups, and half would cost about 0.01 of all groups more.
constexpr double kWholeWindow = 0.625;
/// A group whose blocks differ by so much in luma changes when the camera moves by a few pixels.
constexpr float kTexture = 24;
/// Fewer squares with texture, or a smaller share of all, tell nothing of the camera: a car may be all that
/// has any.
constexpr int kTexturedSquares = 4;
constexpr double kTexturedShare = 0.375;

/// Whole pictures beside the clock's: so many at once, and one in so many seconds. That bounds a trembling
/// camera, an exposure that hunts, a film.
constexpr double kExtraAnchors = 2;
constexpr double kExtraAnchorSeconds = 10;
/// Share of groups that patches may have for ever, and pictures beyond it for a while: a minute of a busy
/// scene's 0.4, and then what differs most. That bounds snow.
constexpr double kLastingShare = 0.3;
/// The same of what is around such groups, which is at most 0.06 of a street's.
constexpr double kLastingAround = 0.1;
constexpr double kGroupPictures = 8;
/// When more would be encoded than this share of a picture, all of it is: choosing saves little then.
constexpr double kWorthChoosing = 0.75;
/// Share of groups while everything changes and the extra anchors are used up.
constexpr double kStormShare = 0.25;

/// Those of a list, at most so many.
base::GridMask first_of(const base::GridMask& groups, std::int64_t most) {
  base::GridMask first = base::GridMask::none(groups.height(), groups.width());
  for (const std::int32_t group : groups.list()) {
    if (first.count() >= most) break;
    first.add(group);
  }
  return first;
}

/// Those of `a` that `b` has (`with`), or that it has not.
base::GridMask those(const base::GridMask& a, const base::GridMask& b, bool with) {
  base::GridMask both = base::GridMask::none(a.height(), a.width());
  for (const std::int32_t group : a.list())
    if (b.has(group) == with) both.add(group);
  return both;
}

/// With the eight around each.
base::GridMask with_neighbours(const base::GridMask& groups) {
  base::GridMask all = groups;
  for (const std::int32_t group : groups.list()) {
    const std::int64_t y = group / groups.width(), x = group % groups.width();
    for (std::int64_t v = std::max<std::int64_t>(y - 1, 0); v < std::min(y + 2, groups.height()); ++v)
      for (std::int64_t u = std::max<std::int64_t>(x - 1, 0); u < std::min(x + 2, groups.width()); ++u)
        all.add(v, u);
  }
  return all;
}

}  // namespace

Scene::Scene(const PruningOptions& options, Stream stream)
    : options_(options),
      keeps_(stream),
      anchors_(options.anchor_seconds, options.anchor_phase),
      seen_(options.grid),
      before_(options.grid),
      extra_anchors_(kExtraAnchors),
      groups_(kGroupPictures),
      around_(kGroupPictures) {}

void Scene::learn_noise(float noise) {
  noise = std::min(noise, kMostNoiseOfStorms);
  // The first frames are all that is known.
  const float memory = std::max(noise > noise_ ? kNoiseUp : kNoiseDown, 1 / static_cast<float>(++heard_));
  noise_ += memory * (noise - noise_);
}

void Scene::take(std::span<const SampledPicture> frames) {
  frames_.resize(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) low_res_of(frames[i].picture, seen_.block(), frames_[i]);
}

void Scene::look() {
  strongest_.clear();
  for (const LowRes& frame : frames_) {
    seen_.compare(frame, change_);
    learn_noise(change_.noise);
    if (strongest_.empty()) {
      strongest_ = lasting_ = change_.groups;
      continue;
    }
    for (std::size_t i = 0; i < strongest_.size(); ++i) {
      strongest_[i] = std::max(strongest_[i], change_.groups[i]);
      lasting_[i] = std::min(lasting_[i], change_.groups[i]);
    }
  }
}

void Scene::compare_frames(bool begins) {
  stirred_ = base::GridMask::none(missed_.height(), missed_.width());
  for (std::size_t i = 1; i < frames_.size(); ++i) {
    before_.see(frames_[i - 1]);
    before_.compare(frames_[i], step_);
    if (begins) learn_noise(step_.noise);
    stirred_.add(above_noise(step_.groups));
  }
}

base::GridMask Scene::above_noise(const std::vector<float>& differences) const {
  base::GridMask groups = base::GridMask::none(missed_.height(), missed_.width());
  const auto storm =
      spares() ? static_cast<float>(std::clamp(1 - groups_.left() / kGroupPictures, 0.0, 1.0)) : 0.0F;
  const float most = kMostNoise + storm * (kMostNoiseOfStorms - kMostNoise);
  const float threshold = std::max(kLeastChange, kNoiseMargin * std::min(noise_, most));
  for (std::size_t i = 0; i < differences.size(); ++i)
    if (differences[i] > threshold) groups.add(static_cast<std::int64_t>(i));
  return groups;
}

bool Scene::light_moved() const {
  const std::vector<float>& luma = seen_.groups().channels[0];
  const float brightness = std::accumulate(luma.begin(), luma.end(), 0.0F) / static_cast<float>(luma.size());
  return distance(change_.light, seen_.groups()) > std::max(kLightLevels, kLightShare * brightness);
}

bool Scene::camera_moved(const base::GridMask& changed) const {
  int squares = 0, textured = 0, moved = 0;
  for (std::int64_t top = 0; top < changed.height(); top += kSquare)
    for (std::int64_t left = 0; left < changed.width(); left += kSquare) {
      ++squares;
      int groups = 0, different = 0;
      for (std::int64_t y = top; y < std::min(top + kSquare, changed.height()); ++y)
        for (std::int64_t x = left; x < std::min(left + kSquare, changed.width()); ++x) {
          if (!(seen_.texture()[static_cast<std::size_t>(y * changed.width() + x)] > kTexture)) continue;
          ++groups;
          if (changed.has(y, x)) ++different;
        }
      if (groups == 0) continue;
      ++textured;
      if (2 * different > groups) ++moved;
    }
  return textured >= kTexturedSquares && textured >= kTexturedShare * squares && 4 * moved >= 3 * textured;
}

base::GridMask Scene::strongest(const base::GridMask& of, std::int64_t most) const {
  std::vector<std::int32_t> groups = of.list();
  const auto count = std::min(static_cast<std::size_t>(std::max<std::int64_t>(most, 0)), groups.size());
  // A person stays in a group for both frames of a patch, a snowflake does not.
  std::partial_sort(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(count), groups.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      const auto i = static_cast<std::size_t>(a), k = static_cast<std::size_t>(b);
                      return std::pair(lasting_[i], strongest_[i]) > std::pair(lasting_[k], strongest_[k]);
                    });
  base::GridMask chosen = base::GridMask::none(of.height(), of.width());
  for (std::size_t i = 0; i < count; ++i) chosen.add(groups[i]);
  return chosen;
}

base::GridMask Scene::with_whole_windows(const base::GridMask& groups) const {
  base::GridMask whole = groups;
  const std::int64_t window = options_.grid.window;
  if (window < 2) return whole;
  for (std::int64_t top = 0; top < groups.height(); top += window)
    for (std::int64_t left = 0; left < groups.width(); left += window) {
      const std::int64_t bottom = std::min(top + window, groups.height());
      const std::int64_t right = std::min(left + window, groups.width());
      std::int64_t count = 0;
      for (std::int64_t y = top; y < bottom; ++y)
        for (std::int64_t x = left; x < right; ++x) count += groups.has(y, x) ? 1 : 0;
      if (static_cast<double>(count) < kWholeWindow * static_cast<double>((bottom - top) * (right - left)))
        continue;
      for (std::int64_t y = top; y < bottom; ++y)
        for (std::int64_t x = left; x < right; ++x) whole.add(y, x);
    }
  return whole;
}

base::GridMask Scene::answer(const base::GridMask& changed) {
  const bool everywhere = 2 * changed.count() > changed.cells() || camera_moved(changed);
  if ((everywhere || light_moved()) && extra_anchors_.left() >= 1) {
    extra_anchors_.spend(1);
    return base::GridMask::all(changed.height(), changed.width());
  }
  const auto cells = static_cast<double>(changed.cells());
  const double storm = everywhere ? kStormShare : std::max(kStormShare, groups_.left());
  const double allowed = spares() ? std::min(bound_, storm) : 1;
  const auto most = static_cast<std::int64_t>(allowed * cells);
  base::GridMask chosen = changed.count() > most ? strongest(changed, most) : with_whole_windows(changed);
  // What fills windows did not change itself.
  if (static_cast<double>(chosen.count()) > bound_ * cells) chosen = strongest(changed, most);
  groups_.spend(static_cast<double>(chosen.count()) / cells);
  room_ = most - chosen.count();
  return chosen;
}

Choice Scene::choose(double seconds, std::span<const SampledPicture> frames) {
  check_pictures(frames, options_.grid);
  const model::PictureView& picture = frames.front().picture;
  const std::int64_t height = picture.height / options_.grid.group();
  const std::int64_t width = picture.width / options_.grid.group();
  extra_anchors_.earn((seconds - std::exchange(last_seconds_, seconds)) / kExtraAnchorSeconds);
  groups_.earn(kLastingShare);
  around_.earn(kLastingAround);
  const bool anchor = anchors_.comes(seconds);
  take(frames);
  if (missed_.height() != height || missed_.width() != width) {
    missed_ = unsettled_ = base::GridMask::none(height, width);
    heard_ = 0;
    compare_frames(true);
    return show(base::GridMask::all(height, width));
  }
  look();
  compare_frames(false);
  base::GridMask groups = std::exchange(missed_, base::GridMask::none(height, width));
  if (anchor) groups = base::GridMask::all(height, width);
  if (!groups.has_all()) groups.add(answer(above_noise(strongest_)));
  return show(groups);
}

Choice Scene::show(const base::GridMask& changed) {
  Choice choice = with_settled(changed);
  unsettled_.add(those(stirred_, choice.encoded, true));
  // The model gets every frame of a group that it gets, so it has last seen the last one.
  if (choice.encoded.has_all()) {
    seen_.see(frames_.back());
  } else {
    seen_.see(frames_.back(), choice.encoded, change_.light);
  }
  return choice;
}

Choice Scene::with_settled(const base::GridMask& changed) {
  const auto cells = static_cast<double>(changed.cells());
  const base::GridMask settled = first_of(those(unsettled_, changed, false), room_);
  groups_.spend(static_cast<double>(settled.count()) / cells);
  base::GridMask groups = changed;
  groups.add(settled);
  const base::GridMask over = those(unsettled_, groups, true);
  unsettled_ = those(unsettled_, groups, false);
  if (keeps_ == Stream::changes) return {groups, groups};
  base::GridMask encoded = groups;
  encoded.add(with_neighbours(over));
  const double more = static_cast<double>(encoded.count() - groups.count()) / cells;
  if (spares() && around_.left() < more) {
    encoded = groups;
  } else {
    around_.spend(more);
    if (!spares() && static_cast<double>(encoded.count()) > kWorthChoosing * cells)
      encoded = base::GridMask::all(changed.height(), changed.width());
  }
  base::GridMask kept = stream_.keep(groups);
  // Where there is no room for all of it, what changed comes first.
  if (bound_ < 1) kept = std::move(groups);
  return {std::move(encoded), std::move(kept)};
}

void Scene::lost(const base::GridMask& groups) {
  if (groups.height() == missed_.height() && groups.width() == missed_.width()) missed_.add(groups);
}

}  // namespace vigil::prune
