#include "actors/vision/vision_desk.h"

#include <cmath>
#include <memory>
#include <utility>

namespace vigil::actors {
namespace {

/// The patch, whatever was chosen of it; the same one if that is all.
FramePatchPtr whole(const FramePatchPtr& patch) {
  const bool keeps_all = !patch->kept || patch->kept->has_all();
  if (!patch->encoded && keeps_all) return patch;
  auto all = std::make_shared<FramePatch>(*patch);
  all->encoded.reset();
  if (all->kept) all->kept = base::GridMask::all(patch->kept->height(), patch->kept->width());
  return all;
}

}  // namespace

VisionDesk::VisionDesk(run::VisionEncoder& encoder, const base::Clock& clock, std::size_t batch)
    : encoder_(encoder), clock_(clock), queue_(encoder.frames_per_patch()), limit_(batch) {}

PatchQueue::Joined VisionDesk::join(const WatchPtr& watch) {
  book_.put(watch);
  const PatchQueue::Joined joined = queue_.join(*watch);
  if (joined.is_new) beginning_.emplace(watch->name, false);
  return joined;
}

bool VisionDesk::lacks(const FramePatch& patch) const {
  const auto beginning = beginning_.find(patch.watch.camera);
  return patch.pixels && beginning != beginning_.end() && !beginning->second;
}

bool VisionDesk::take(const FramePatchPtr& patch) {
  if (!book_.find(patch->watch)) return false;
  const auto beginning = beginning_.find(patch->watch.camera);
  // A part of a picture comes behind a whole one (`lacks`).
  if (beginning == beginning_.end() || patch->pixels) return queue_.push(patch);
  if (!queue_.push(whole(patch))) return false;
  beginning->second = true;
  return true;
}

std::optional<base::Clock::TimePoint> VisionDesk::gathers_until() const {
  const auto oldest = queue_.oldest();
  if (!oldest || queue_.ready() >= static_cast<double>(limit_.now())) return std::nullopt;
  return *oldest + kGather;
}

void VisionDesk::work(const run::Turn& /*turn*/) {
  const std::vector<FramePatchPtr> patches = begin();
  if (!patches.empty()) finish(encode(encoder_, clock_, patches));
}

std::vector<FramePatchPtr> VisionDesk::begin() {
  const std::size_t most = queue_.ready() < static_cast<double>(limit_.now()) ? kUnderWay : kFullUnderWay;
  if (under_way_.size() >= most) return {};
  std::vector<FramePatchPtr> patches = queue_.pop(limit_.now());
  if (!patches.empty()) under_way_.push_back(patches);
  return patches;
}

void VisionDesk::finish(Encoded encoded) {
  const std::vector<FramePatchPtr> patches = std::move(under_way_.front());
  under_way_.pop_front();
  last_ = static_cast<std::size_t>(std::ceil(load_of(patches)));
  Batch batch;
  batch.encoded = std::move(encoded);
  batch.acks = acks_of(patches, batch.encoded);
  for (const VisualPatchPtr& patch : batch.encoded.patches) beginning_.erase(patch->watch.camera);
  for (const Encoded::Failure& failure : batch.encoded.failures) {
    batch.failed.push_back(book_.find(failure.patch->watch));
    if (const auto beginning = beginning_.find(failure.patch->watch.camera); beginning != beginning_.end())
      beginning->second = false;
    // It did not reach the next stage, which can take another one instead.
    queue_.grant(failure.patch->watch.camera, 1);
  }
  for (const FramePatchPtr& patch : patches) {
    book_.refer(patch->watch);
    queue_.done(*patch);
  }
  // One that was begun before passes shrank says nothing of smaller ones.
  if (last_ <= limit_.now()) {
    if (batch.encoded.too_many.empty()) {
      limit_.fitted(last_);
    } else {
      limit_.too_many(last_);
    }
  }
  batch.limit = limit_.now();
  batch_ = std::move(batch);
}

std::size_t VisionDesk::waiting() const {
  std::size_t patches = queue_.size();
  for (std::size_t i = 1; i < under_way_.size(); ++i) patches += under_way_[i].size();
  return patches;
}

std::vector<std::string> VisionDesk::take_ended() {
  std::vector<std::string> ended = queue_.take_ended();
  for (const std::string& camera : ended) {
    book_.forget(camera);
    beginning_.erase(camera);
    encoder_.forget(camera);
  }
  return ended;
}

}  // namespace vigil::actors
