// All that is known of what is kept, in memory: which pages of a camera there are, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/kv/history/history_store.h"
#include "engine/kv/history/part_entry.h"

namespace vigil::history {

struct StoredPage {
  std::uint64_t number = 0;
  WallRange wall;
  std::uint8_t form = 0;
  std::uint64_t bytes = 0;
  /// As encode_page_info makes it: what is not asked for stays small.
  std::string info;
  std::vector<EntryValue> values;
};

/// What pages of one form come to.
struct PageSum {
  std::uint64_t pages = 0;
  std::uint64_t bytes = 0;
  WallRange wall;
  /// The lowest number.
  std::uint64_t first = 0;

  void add(const PageSum& more);
};

/// Does not change once it is shared.
struct StoredPart {
  PartKey key;
  /// Null if it is not encrypted.
  std::shared_ptr<const SecretKey> secret;
  /// Of the file as it was found; 0 if there is none.
  std::uint64_t file_bytes = 0;
  std::vector<StoredPage> pages;
  /// By form.
  std::map<std::uint8_t, PageSum> sums;

  std::uint64_t bytes() const;
  /// Whether its record lies within the file.
  bool is_there(const EntryValue& value) const;
};
using StoredPartPtr = std::shared_ptr<const StoredPart>;

/// Nothing if one of the pages' descriptions is none.
StoredPartPtr stored_part(const PartKey& key, PartEntry entry, std::shared_ptr<const SecretKey> secret,
                          std::uint64_t file_bytes);

/// Values that were read and found damaged. Thread-safe.
class DamageBook {
 public:
  void set(std::uint64_t part, std::uint64_t offset, bool damaged);
  bool has(std::uint64_t part, std::uint64_t offset) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> damaged_;
};

/// Pages whose time meets one of its erasures are there, and shown to nobody. Not thread-safe; functions that
/// are const may be called by several threads.
class Catalog {
 public:
  struct Place {
    StoredPartPtr part;
    std::size_t page = 0;

    const StoredPage& operator*() const { return part->pages[page]; }
    const StoredPage* operator->() const { return &part->pages[page]; }
  };

  /// Its pages' numbers are new for the camera.
  void add(const StoredPartPtr& part);
  void remove(const PartKey& part);
  /// Whether one of its pages is there already.
  bool has_any_of(const StoredPart& part) const;
  /// Also of what is erased.
  bool has(const CameraId& camera, std::uint64_t page) const;
  std::optional<Place> find(const CameraId& camera, std::uint64_t page) const;

  /// In the order of hours and numbers.
  std::vector<StoredPartPtr> parts(const CameraId& camera) const;
  std::vector<StoredPartPtr> parts(const HourKey& hour) const;
  /// Those of which each form is over.
  std::vector<StoredPartPtr> over(std::span<const Expiry> expiries) const;
  /// Hours of which nothing is left without these.
  std::vector<HourKey> hours_without(const std::vector<StoredPartPtr>& gone) const;
  std::vector<CameraId> cameras() const;
  /// Of all its pages.
  std::vector<std::pair<std::uint64_t, std::vector<EntryValue>>> values(const CameraId& camera) const;

  std::vector<KeptPage> pages(const CameraId& camera, const WallRange& wall, const DamageBook& damage) const;
  std::vector<CameraSummary> list(const DamageBook& damage) const;
  std::vector<HourSummary> hours(const std::optional<CameraId>& camera) const;

  /// By id.
  std::map<std::uint64_t, Erasure>& erasures() { return erasures_; }
  const std::map<std::uint64_t, Erasure>& erasures() const { return erasures_; }
  bool is_erased(const CameraId& camera, const WallRange& page) const;
  /// Whether one of its pages is.
  bool has_erased(const StoredPart& part) const;

 private:
  struct Camera {
    std::map<std::pair<std::uint32_t, std::uint64_t>, StoredPartPtr> parts;
    std::map<std::uint64_t, Place> pages;
    /// By hour and form, of what is erased, too.
    std::map<std::pair<std::uint32_t, std::uint8_t>, PageSum> sums;
  };

  /// Adds what a camera has of an hour.
  void count(Camera& camera, std::uint32_t hour) const;
  std::vector<WallRange> erased(const CameraId& camera) const;
  void add_hours(const CameraId& id, const Camera& camera, std::vector<HourSummary>& to) const;

  std::map<CameraId, Camera> cameras_;
  std::map<std::uint64_t, Erasure> erasures_;
};

}  // namespace vigil::history
