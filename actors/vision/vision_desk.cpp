#include "actors/vision/vision_desk.h"

namespace vigil::actors {

VisionDesk::VisionDesk(run::VisionEncoder& encoder, const base::Clock& clock, std::size_t batch)
    : encoder_(encoder), clock_(clock), queue_(encoder.frames_per_patch()), limit_(batch) {}

PatchQueue::Joined VisionDesk::join(const WatchPtr& watch) {
  book_.put(watch);
  return queue_.join(*watch);
}

bool VisionDesk::take(const FramePatchPtr& patch) {
  return book_.find(patch->watch) && queue_.push(patch);
}

void VisionDesk::work(const run::Turn& turn) {
  const std::vector<FramePatchPtr> patches = queue_.pop(limit_.now());
  if (patches.empty()) return;
  Batch batch;
  batch.encoded = encode(encoder_, clock_, patches);
  batch.span = {turn.now, clock_.now()};
  batch.acks = acks_of(patches, batch.encoded);
  for (const Encoded::Failure& failure : batch.encoded.failures) {
    batch.failed.push_back(book_.find(failure.patch->watch));
    // It did not reach the next stage, which can take another one instead.
    queue_.grant(failure.patch->watch.camera, 1);
  }
  for (const FramePatchPtr& patch : patches) book_.refer(patch->watch);
  if (batch.encoded.too_many.empty()) {
    limit_.fitted(patches.size());
  } else {
    limit_.too_many(patches.size());
  }
  batch.limit = limit_.now();
  batch_ = std::move(batch);
}

std::vector<std::string> VisionDesk::take_ended() {
  std::vector<std::string> ended = queue_.take_ended();
  for (const std::string& camera : ended) book_.forget(camera);
  return ended;
}

}  // namespace vigil::actors
