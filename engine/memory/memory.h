// What the cameras of a process remember: pages of their past in tiers, and what is known of the rest.
#pragma once

#include <algorithm>
#include <chrono>
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
#include "engine/memory/disk_budget.h"
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
    /// Of all pages on the disk, as soon as `age` has been done; 0: no bound (engine/memory/disk_budget.h).
    std::uint64_t disk_bytes = 0;
    /// After it was seen, a page comes within that time: it is of one hour at most, and waits in its window.
    base::Duration latest = std::chrono::hours(2);
    PartQueue::Options parts;
    /// Of the model, its preprocessing and the text before its frames: what pages have to have in common.
    history::Fingerprint fingerprint{};
  };
  /// `store`, which has to outlive it: null if nothing goes to a disk.
  Memory(history::HistoryStore* store, Options options);

  /// The camera's pages are kept so long from now on, and what is there goes by that, too: what is older is
  /// found no more. What it sees comes within `comes` where it goes on.
  void watch(const history::CameraId& camera, base::Duration keep, base::Duration comes = {});
  /// As `watch`, of one that is not watched here. 0: nothing of it is found any more, and all of it goes.
  void keep(const history::CameraId& camera, base::Duration keep);
  /// From when on, at this time, what the camera saw is kept: of no time where nobody said how long.
  std::int64_t kept_from(const history::CameraId& camera, std::int64_t wall_now) const;
  /// It makes no more pages here. What there is of it stays, as long as it would.
  void leave(const history::CameraId& camera);

  /// The forms in which pages are wanted, the finest first, as far behind as the disk is now. A sketch is so
  /// small that it is wanted until the disk takes nothing.
  std::vector<kv::Form> wanted() const;

  struct Taken {
    /// The forms that are on their way to the disk; and whether it is in the host's memory.
    std::vector<kv::Form> written;
    bool is_on_host = false;
    /// The disk was to have it, and is too far behind to take any of its forms.
    bool is_unwritten = false;
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

  /// What whoever writes is to do with the store, in this order. All but the notes is said again until it is
  /// done.
  struct Aged {
    std::vector<history::Expiry> expiries;
    /// Erasures that no page can meet any more: a note that it was erased is left of each.
    std::vector<std::uint64_t> forgotten;
    std::vector<history::Note> notes;

    bool empty() const { return expiries.empty() && forgotten.empty() && notes.empty(); }
  };
  /// Lets go of what is too old in the host's memory, and says what is too old or too much on the disk.
  Aged age(std::int64_t wall_now);

  /// Of a range, what has been seen by now; nothing of it ends before it begins.
  static history::WallRange seen_of(const history::WallRange& wall, std::int64_t wall_now) {
    return {wall.from, std::min(wall.to, wall_now)};
  }
  /// Of the range, what has been seen by now. Holds from now on, also for pages that are on their way: what
  /// meets it is nowhere to be found. What is left is to remove the bytes from the disk
  /// (`HistoryStore::finish_erasures`, by whoever writes). Throws HistoryError where the disk does not take
  /// it: then it holds for this process alone, and is to be given again. Returns how many pages that were, in
  /// whatever forms; they go whole.
  std::size_t erase(const history::CameraId& camera, const history::WallRange& wall, std::int64_t wall_now);

  /// A page's form on the disk: its number there, and what it is made of.
  struct OnDisk {
    std::uint64_t number = 0;
    std::vector<history::Layers> layers;
  };
  struct Found {
    /// Of its forms with all tokens; where only its sketch is left, of that.
    history::PageInfo info;
    /// Of its sketch, under the page's number, wherever that is.
    std::optional<history::PageInfo> sketch = std::nullopt;
    double change = 0;
    /// Patches before this one are older than their camera keeps: nobody sees them. One at least is kept.
    std::size_t first_kept = 0;
    /// Of those in the host's memory, or on their way to the disk, the bytes; of those on the disk, where.
    std::map<kv::Form, run::MovedTokens> host;
    std::map<kv::Form, OnDisk> disk;
  };
  /// What there is of a camera, in the tiers.
  struct Summary {
    history::CameraId camera;
    bool is_watched = false;
    /// 0: it is not remembered, or nobody has said.
    base::Duration keep{};
    /// Each counted once, in whatever forms it is; of an hour on the disk, as many as the form has of which
    /// there are most.
    std::uint64_t pages = 0;
    std::uint64_t host_bytes = 0, disk_bytes = 0;
    /// From the first page to the last; nothing without any.
    std::optional<history::WallRange> wall;
    /// Ascending, of both tiers.
    std::vector<kv::Form> forms;
  };
  /// Of all cameras that are watched or have pages that are kept, in the order of their names.
  std::vector<Summary> list(std::int64_t wall_now) const;

  /// Pages whose time meets the range, of this model, and that are kept, oldest first by when they were made.
  /// They count as used.
  std::vector<Found> find(const history::CameraId& camera, const history::WallRange& wall,
                          std::int64_t wall_now);
  /// A camera that is watched goes on, so that what it may have seen between its last page and now is not
  /// missing, if that is as little as between two pages, and still comes, if no more than it takes.
  /// `damaged`: pages, by the numbers of `Found::info`, that turned out to be. `keyless`: those that were of
  /// no use, since they have no keys.
  Coverage coverage(const history::CameraId& camera, const history::WallRange& wall, std::int64_t wall_now,
                    std::span<const std::uint64_t> damaged = {},
                    std::span<const std::uint64_t> keyless = {}) const;

  HostTier& host() { return host_; }
  /// Null without a store.
  PartQueue* queue() { return queue_.get(); }

  /// A page has a number, and each of its forms on the disk one of its own, which tells both.
  static constexpr std::uint64_t kNumbersAPage = 8;
  static std::uint64_t number_on_disk(std::uint64_t page, kv::Form form) {
    return kNumbersAPage * page + static_cast<std::uint64_t>(form);
  }
  static std::uint64_t page_of(std::uint64_t number_on_disk) { return number_on_disk / kNumbersAPage; }

 private:
  /// Between two pages of a camera that goes on.
  static constexpr std::int64_t kJitter = 3'000'000'000;

  struct Erased {
    history::WallRange wall;
    /// In the store; nothing if that did not take it, or there is none.
    std::optional<std::uint64_t> id;
    std::int64_t given = 0;
  };
  struct Camera {
    /// Nothing: nobody has said.
    std::optional<base::Duration> keep;
    base::Duration comes{};
    bool is_watched = false;
    std::uint64_t last = 0;
    /// Those that the store knows, too, and of these the ones that it does not know yet.
    std::vector<KnownGap> gaps, unwritten;
    /// What nobody may see, of pages that may still come.
    std::vector<Erased> erased;
  };

  static bool is_erased(const Camera& camera, const history::WallRange& wall);
  /// Erased by an order that the disk did not take.
  static bool is_refused(const Camera& camera, const history::WallRange& wall);
  Camera& find_camera(const history::CameraId& camera);
  std::vector<history::CameraId> watched() const;
  void share();
  static void add_gap(std::vector<KnownGap>& gaps, const KnownGap& gap);
  static void cut_gaps(std::vector<KnownGap>& gaps, const history::WallRange& wall);
  void note(Camera& camera, const history::WallRange& wall, Gap why) const;
  /// Pages go whole: what of this lies beyond what was erased went with it.
  void note_gone_along(Camera& camera, const history::WallRange& wall) const;
  void set_keep(const history::CameraId& id, Camera& camera, base::Duration keep);
  std::vector<KnownGap> noted(const history::CameraId& camera, const history::WallRange& wall) const;
  static bool is_damaged(const history::KeptPage& page);
  std::vector<history::Expiry> too_old(std::span<const history::HourSummary> there, std::int64_t wall_now);
  std::optional<history::Expiry> too_old(const history::CameraId& id, Camera& camera, std::int64_t from,
                                         std::span<const history::HourSummary> there) const;
  void make_room(std::vector<history::HourSummary> there, std::int64_t wall_now, Aged& aged);
  void note_gone(std::span<const history::HourSummary> there, const Aged& aged);
  std::optional<history::HourSummary> kept_of(const history::HourSummary& hour, std::int64_t from) const;
  void forget_erasures(std::int64_t wall_now, Aged& aged);

  history::HistoryStore* store_;
  Options options_;
  HostTier host_;
  std::unique_ptr<PartQueue> queue_;
  DiskBudget budget_;
  std::map<history::CameraId, Camera> cameras_;
  /// When an erasure of the store was first seen to be finished.
  std::map<std::uint64_t, std::int64_t> finished_;
};

}  // namespace vigil::memory
