// What the cameras of a process remember: pages of their past in tiers, and what is known of the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/coverage.h"
#include "engine/memory/host_tier.h"
#include "engine/memory/page_maker.h"
#include "engine/memory/part_queue.h"

namespace vigil::memory {

/// Takes pages as they leave windows, keeps them in the host's memory and offers them to the disk; finds them
/// again; erases. All of it is by tenant and camera: nothing of one is ever another's. Not thread-safe, but
/// for what the queue and the store are (one thread writes).
class Memory {
 public:
  struct Options {
    std::uint64_t host_bytes = 0;
    Eviction eviction = Eviction::value;
    /// How long a page is kept in which form.
    HostTier::Ages host, disk;
    PartQueue::Options parts;
    /// Of the model, its preprocessing and the text before its frames: what pages have to have in common.
    history::Fingerprint fingerprint{};
  };
  /// `store`, which has to outlive it: null if nothing goes to a disk.
  Memory(history::HistoryStore* store, Options options);

  /// The camera's pages are kept so long from now on; what is there goes by that, too.
  void watch(const history::CameraId& camera, base::Duration keep);
  /// It makes no more pages here. What there is of it stays, as long as it would.
  void leave(const history::CameraId& camera);

  /// The forms in which pages are wanted, the finest first, as far behind as the disk is now.
  std::vector<kv::Form> wanted() const;

  struct Taken {
    /// The forms that are on their way to the disk; and whether it is in the host's memory.
    std::vector<kv::Form> written;
    bool is_on_host = false;
    /// Why nothing of it is kept; nothing: something is.
    std::optional<Gap> lost;
    /// Pages that had to go for it, and are nowhere else.
    std::size_t evicted = 0;
  };
  /// Waits until it has arrived.
  Taken take(FreshPage page, base::Clock::TimePoint now);
  /// What the maker could not keep.
  void lose(const PageMaker::News::Lost& lost);
  /// What was to be written, and what became of it.
  void wrote(const PartQueue::Written& written);

  /// Something was told of what the camera saw then.
  void alert(const history::CameraId& camera, const history::WallRange& wall) { host_.alert(camera, wall); }

  /// Lets go of what is too old, in the host's memory. Returns what is to be retired of the store, by whoever
  /// writes.
  std::vector<history::Expiry> age(std::int64_t wall_now);

  /// Holds from now on, also for pages that are on their way: what meets the range is nowhere to be found.
  /// What is left is to remove the bytes from the disk (`HistoryStore::finish_erasures`, by whoever writes).
  /// Throws HistoryError where the disk does not take it: then it holds for this process alone.
  std::size_t erase(const history::CameraId& camera, const history::WallRange& wall);

  struct Found {
    history::PageInfo info;
    double change = 0;
    /// Of those in the host's memory, the bytes; of those on the disk, the number of the page there.
    std::map<kv::Form, run::MovedTokens> host;
    std::map<kv::Form, std::uint64_t> disk;
  };
  /// Pages whose time meets the range, of this model, oldest first by when they were made. They count as
  /// used.
  std::vector<Found> find(const history::CameraId& camera, const history::WallRange& wall);
  /// `damaged`: pages, by the numbers of `Found::info`, that turned out to be.
  Coverage coverage(const history::CameraId& camera, const history::WallRange& wall,
                    std::span<const std::uint64_t> damaged = {}) const;

  HostTier& host() { return host_; }
  /// Null without a store.
  PartQueue* queue() { return queue_.get(); }

  /// A page has a number, and each of its forms on the disk one of its own, which tells both.
  static std::uint64_t number_on_disk(std::uint64_t page, kv::Form form) {
    return 4 * page + static_cast<std::uint64_t>(form);
  }

 private:
  struct Camera {
    base::Duration keep{};
    bool is_watched = false;
    std::uint64_t last = 0;
    std::vector<KnownGap> gaps;
    /// What nobody may see, of pages that may still come.
    std::vector<history::WallRange> erased;
  };

  Camera& find_camera(const history::CameraId& camera);
  void share();
  static void note(Camera& camera, const history::WallRange& wall, Gap why);

  history::HistoryStore* store_;
  Options options_;
  HostTier host_;
  std::unique_ptr<PartQueue> queue_;
  std::map<history::CameraId, Camera> cameras_;
};

}  // namespace vigil::memory
