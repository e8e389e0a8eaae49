#include "engine/prune/pruning_policy.h"

#include <cstdint>
#include <stdexcept>

#include "engine/prune/codecsight.h"
#include "engine/prune/differential_drop.h"
#include "engine/prune/luma.h"
#include "engine/prune/reference.h"
#include "engine/prune/scene.h"

namespace vigil::prune {
namespace {

class Everything final : public PruningPolicy {
 public:
  explicit Everything(const PatchGrid& grid) : grid_(grid) {}

  bool wants_motion() const override { return false; }
  Choice choose(double /*seconds*/, std::span<const SampledPicture> frames) override {
    check_pictures(frames, grid_);
    const model::PictureView& picture = frames.front().picture;
    return {base::GridMask::all(picture.height / grid_.group(), picture.width / grid_.group())};
  }
  void lost(const base::GridMask& /*groups*/) override {}

 private:
  PatchGrid grid_;
};

}  // namespace

double anchor_phase(std::string_view camera) {
  // FNV-1a, and a last mixing (of MurmurHash3), since names that differ in their last letter alone differ in
  // low bits alone.
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : camera) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53U;
  hash ^= hash >> 33;
  return static_cast<double>(hash >> 11) * 0x1p-53;
}

std::unique_ptr<PruningPolicy> make_pruning(std::string_view name, const PruningOptions& options) {
  if (options.grid.patch < 1 || options.grid.merge < 1)
    throw std::invalid_argument("patches and groups have an edge");
  if (!(options.anchor_phase >= 0) || !(options.anchor_phase < 1))
    throw std::invalid_argument("the phase of anchors is from 0 to below 1");
  if (!(options.anchor_seconds > 0)) throw std::invalid_argument("anchors come after some time");
  if (!(options.motion_threshold >= 0) || !(options.luma_threshold >= 0) || !(options.residual_weight >= 0))
    throw std::invalid_argument("neither thresholds nor the weight of a residual are negative");
  if (name == "none") return std::make_unique<Everything>(options.grid);
  if (name == "codecsight") return std::make_unique<CodecSight>(options);
  if (name == "reference") return std::make_unique<Reference>(options);
  if (name == "dtd") return std::make_unique<DifferentialDrop>(options);
  if (name == "scene") return std::make_unique<Scene>(options, Scene::Stream::lately);
  if (name == "changes") return std::make_unique<Scene>(options, Scene::Stream::changes);
  std::string known;
  for (const std::string_view each : kPruningPolicies)
    known += (known.empty() ? "" : ", ") + std::string(each);
  throw std::invalid_argument("no pruning is called '" + std::string(name) + "' (known: " + known + ")");
}

}  // namespace vigil::prune
