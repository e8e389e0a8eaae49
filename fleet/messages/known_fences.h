// The highest fence of each of many cameras, in a memory that has an end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace vigil::fleet {

/// Of more cameras than it keeps, those with the lowest fences are forgotten together, and the highest of
/// theirs counts for every camera that is not known: nothing comes in that would not have come in before, and
/// one that is refused for it gets a new fence (`FleetMember::refuse`). Not thread-safe.
class KnownFences {
 public:
  static constexpr std::size_t kMost = 1 << 16;
  explicit KnownFences(std::size_t most = kMost) : most_(most) {}

  /// 0 if none was seen, nor any forgotten.
  std::uint64_t of(const std::string& camera) const {
    const auto fence = fences_.find(camera);
    return fence == fences_.end() ? floor_ : fence->second;
  }
  /// Whether what `of` says is this camera's own.
  bool knows(const std::string& camera) const { return fences_.contains(camera); }
  void saw(const std::string& camera, std::uint64_t fence);

  std::size_t size() const { return fences_.size(); }

 private:
  std::size_t most_;
  std::map<std::string, std::uint64_t> fences_;
  /// The highest that was forgotten.
  std::uint64_t floor_ = 0;
};

}  // namespace vigil::fleet
