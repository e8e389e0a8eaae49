// How much of the disk cameras' pasts may have, and which hours go when that is too little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "engine/kv/history/history_store.h"
#include "engine/memory/tier_pool.h"

namespace vigil::memory {

/// What goes are whole hours of a form of a camera. Cameras share the disk alike, as they do the host's
/// memory (TierPool): the one that has most beyond its share gives first. Not thread-safe.
///
/// Within a camera, by `value`, the hour goes first whose worth (TierPool::worth_of, of the hour as of one
/// page) is least for what a page takes in that form. So keys go hours before embeddings do, and these before
/// sketches: from each of them later questions can be answered, and the room of one hour's keys is that of
/// many hours' sketches. A busy hour is not worth less for having more pages. By `lru`, the hour goes first
/// that was not seen or asked about for longest; of its forms, the finest.
///
/// What was seen, told and asked is known as long as this lives; of hours from before, their age alone.
class DiskBudget {
 public:
  /// `bytes`: 0 for no bound.
  DiskBudget(std::uint64_t bytes, Eviction eviction) : bytes_(bytes), eviction_(eviction) {}

  /// A page of the hour, whose change is from 0 to 1; `is_alerted`: as FreshPage.
  void saw(const history::CameraId& camera, std::uint32_t hour, double change, bool is_alerted = false);
  /// A question about these hours.
  void asked(const history::CameraId& camera, const std::set<std::uint32_t>& hours);

  struct Over {
    history::HourSummary hour;
    /// It was not said before.
    bool is_new = false;
  };
  /// Of what is there (ascending, as HistoryStore::hours), what goes so that the rest is not more than the
  /// bound: what was said before and is still there, and more if that does not suffice. `sharing`: cameras
  /// that have a share; what others have is lent. Hours that are still written, which are those from `now` on
  /// and from the last page on of a camera that shares, never go, even if what is there stays too much.
  std::vector<Over> over(std::span<const history::HourSummary> there,
                         std::span<const history::CameraId> sharing, std::uint32_t now);

 private:
  struct Hour {
    double change = 0;
    std::uint64_t pages = 0;
    TierPool::Uses uses;
    /// When it was seen or asked about last, counted over all.
    std::uint64_t used = 0;
  };
  struct Camera {
    std::map<std::uint32_t, Hour> hours;
    /// That of its last page.
    std::optional<std::uint32_t> written;
  };
  /// Camera, hour and form.
  using Place = std::tuple<history::CameraId, std::uint32_t, std::uint8_t>;
  /// A camera's hours that may go, the one that goes first at the end.
  using Order = std::vector<const history::HourSummary*>;

  static Place place_of(const history::HourSummary& hour) { return {hour.camera, hour.hour, hour.form}; }
  Order order_of(std::span<const history::HourSummary> of_camera, std::uint32_t written) const;
  double worth_of(const history::HourSummary& hour, std::int64_t newest) const;
  const Hour* find(const history::CameraId& camera, std::uint32_t hour) const;
  /// Of hours that are over and gone nothing is known any more.
  void forget(std::span<const history::HourSummary> there, std::uint32_t now);

  std::uint64_t bytes_;
  Eviction eviction_;
  std::map<history::CameraId, Camera> cameras_;
  std::uint64_t uses_ = 0;
  /// What was said to go, and may still be there.
  std::set<Place> going_;
};

}  // namespace vigil::memory
