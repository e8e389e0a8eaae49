// Which events were seen already, by what tells one from another whatever their numbers are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "cluster/topics/message.h"

namespace vigil::cluster {

/// The last `bound` pairs of `source` and `id` on each topic: an event that goes to several topics is on each
/// of them once. An event that another outbox has is the same if these are. About 100 bytes each. Not
/// thread-safe.
class SeenIds {
 public:
  explicit SeenIds(std::size_t bound) : bound_(bound) {}

  /// False if it was added before and is still remembered. What has no `source` and `id` never was.
  bool add(const TopicMessage& message);

  /// Whether it has `source` and `id`, and `add` would be true.
  bool is_new(const TopicMessage& message) const;

  std::size_t size() const { return ids_.size(); }

 private:
  /// 128 bits of hashes: no two events meet in one by chance.
  using Id = std::pair<std::uint64_t, std::uint64_t>;

  static std::optional<Id> id_of(const TopicMessage& message);

  std::size_t bound_;
  std::set<Id> ids_;
  /// The same, in the order in which they came.
  std::deque<Id> order_;
};

}  // namespace vigil::cluster
