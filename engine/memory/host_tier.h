// What is remembered in the host's memory: the youngest pages, or those worth most, ready to be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"
#include "engine/memory/tier_pool.h"
#include "engine/run/token_mover.h"

namespace vigil::memory {

/// Pages of cameras, each in one form or more. Which page goes first its pool decides; a form goes by itself
/// when the page is older than the form is kept. What somebody reads stays until he has let go of it. Not
/// thread-safe.
class HostTier {
 public:
  /// How long a page is kept in a form, after it was seen; a form that is not there is not kept.
  using Ages = std::map<kv::Form, base::Duration>;

  HostTier(std::uint64_t bytes, Eviction eviction, Ages ages);

  /// As TierPool::share.
  void share(std::span<const history::CameraId> cameras);

  struct Page {
    history::PageInfo info;
    double change = 0;
    /// Of the forms of it that are there.
    std::map<kv::Form, run::MovedTokens> forms;
    /// Of its sketch, if that is there.
    std::optional<history::PageInfo> sketch = std::nullopt;
    /// As FreshPage.
    bool is_alerted = false;
  };
  struct Put {
    bool is_kept = false;
    /// Pages that have gone for it.
    std::vector<history::PageInfo> gone;
  };
  /// A page of a number that its camera has not had before; of its forms those that this tier keeps. What has
  /// no room is not kept.
  Put put(const history::CameraId& camera, Page page);

  /// What there is of a page; null if there is nothing.
  const Page* find(const history::CameraId& camera, std::uint64_t number) const;
  /// Pages whose time meets this range, by their numbers.
  std::vector<const Page*> pages(const history::CameraId& camera, const history::WallRange& wall) const;
  /// As TierPool.
  void hit(const history::CameraId& camera, std::uint64_t number);

  /// Of each camera, forms that are too old go; and pages of which no form is left, or that are older than
  /// its cameras' `keep`.
  struct Aged {
    history::CameraId camera;
    /// Pages before this time are over.
    std::int64_t before = 0;
  };
  std::size_t age(std::int64_t now, std::span<const Aged> keeps);
  /// Pages that meet this range; returns how many went.
  std::size_t erase(const history::CameraId& camera, const history::WallRange& wall);

  std::uint64_t used() const { return pool_.used(); }
  std::uint64_t bytes() const { return pool_.bytes(); }

 private:
  struct Entry {
    Page page;
    std::uint64_t id = 0;
  };
  using Camera = std::map<std::uint64_t, Entry>;

  static std::uint64_t bytes_of(const Page& page);
  /// Lets go of forms, and of what is known of them alone.
  template <class Gone>
  static void drop_forms(Page& page, const Gone& gone);
  void drop(Camera& camera, Camera::iterator entry);

  TierPool pool_;
  Ages ages_;
  std::map<history::CameraId, Camera> cameras_;
  /// By ids in the pool.
  std::map<std::uint64_t, std::pair<history::CameraId, std::uint64_t>> places_;
  std::uint64_t ids_ = 0;
};

}  // namespace vigil::memory
