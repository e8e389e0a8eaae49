// One tier of what cameras remember: who has how much of it, and what goes when there is no room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace vigil::memory {

/// What goes first of a camera's pages: those that are worth least (`TierPool::worth_of`), or those that were
/// not used for longest.
enum class Eviction : std::uint8_t { value, lru };

constexpr std::array<std::string_view, 2> kEvictionNames{"value", "lru"};

/// Counts bytes of pages; what is in them, and where, is others' to know. Cameras share a tier alike: as much
/// as its share a camera has for itself, and room that others leave unused is lent to it until they want it.
/// Nothing here looks at a clock: a page's age is what its camera has seen since. Not thread-safe.
class TierPool {
 public:
  struct Page {
    /// Unlike that of every other page in the pool.
    std::uint64_t id = 0;
    std::uint64_t bytes = 0;
    /// Of its first and its last frame.
    base::Clock::WallTime from, to;
    /// Of the groups of its pictures, those that were worth keeping: from 0 to 1.
    double change = 0;
  };
  struct Uses {
    /// Questions that have read it.
    int hits = 0;
    /// A rule has said "Yes" of it.
    bool is_alerted = false;
  };

  explicit TierPool(std::uint64_t bytes, Eviction eviction = Eviction::value)
      : bytes_(bytes), eviction_(eviction) {}

  /// These cameras share it from now on. What others have in it is lent.
  void share(std::span<const std::string> cameras);
  /// Bytes that the camera has for itself.
  std::uint64_t share_of(const std::string& camera) const;

  /// Puts a page in, and returns which ones have gone for it: of the camera that has most beyond its share,
  /// the worst, until there is room. Nothing, and nothing changes, where there is none: the page is larger
  /// than what its camera has, and than what is lent. `uses`: what is known of it already. Throws
  /// std::invalid_argument for an id that is there.
  std::optional<std::vector<std::uint64_t>> put(const std::string& camera, const Page& page,
                                                const Uses& uses);
  std::optional<std::vector<std::uint64_t>> put(const std::string& camera, const Page& page) {
    return put(camera, page, Uses());
  }
  /// False if it is not there.
  bool remove(std::uint64_t id);
  /// It has so many bytes from now on, not more than before; nothing of a page that is not there.
  void shrink(std::uint64_t id, std::uint64_t bytes);

  /// A question has read it. Of a page that is not there, nothing.
  void hit(std::uint64_t id);

  bool contains(std::uint64_t id) const { return places_.contains(id); }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t used_by(const std::string& camera) const;
  /// A camera's pages, the one that goes first in front; of equal ones, the one with the lower id.
  std::vector<std::uint64_t> order_of(const std::string& camera) const;

  /// (1 + change + hits + 2 if it is alerted) / (1 + age in hours): what changes, was asked about or told of
  /// is kept longer.
  static double worth_of(const Page& page, const Uses& uses, base::Clock::WallTime newest);

 private:
  struct Entry {
    Page page;
    Uses uses;
    /// When it was put in or read last, counted over the pool.
    std::uint64_t used = 0;
  };
  struct Camera {
    std::map<std::uint64_t, Entry> pages;
    std::uint64_t used = 0;
    base::Clock::WallTime newest = base::Clock::WallTime::min();
    bool has_share = false;
  };

  double rank_of(const Camera& camera, const Entry& entry) const;

  std::uint64_t bytes_;
  Eviction eviction_;
  std::map<std::string, Camera> cameras_;
  /// Whose each page is.
  std::map<std::uint64_t, std::string> places_;
  std::uint64_t used_ = 0;
  std::uint64_t uses_ = 0;
  std::size_t shares_ = 0;
};

}  // namespace vigil::memory
