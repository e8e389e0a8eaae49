// A node's disk, as its outbox sees it: it outlives the node's lives, and a crash may come between any two of
// its writes, or within one. What is acknowledged is on it with the next write of events, and is lost if the
// power is gone before. While the disk fails, every write throws, and was kept or not: of a torn one the
// store's log says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "actors/alerts/outbox.h"
#include "tests/fleet/sim/world.h"

namespace vigil::fleet::sim {

class Disk {
 public:
  struct Options {
    /// A mistake: writes are answered before they are kept, and the last so many are gone after a crash.
    std::size_t unsynced = 0;
    /// A mistake: of a write that fails the end is kept without its beginning, and nobody is told.
    bool tears = false;
  };
  Disk(World& world, Host& host, Options options);

  /// The outbox on it, for one life of the host. What a dead host writes is not kept.
  std::unique_ptr<actors::Outbox> open();

  void fail(bool fails) { fails_ = fails; }
  bool fails() const { return fails_; }

  /// From now on there is an empty one.
  void replace();
  /// The host is gone, and by its `loses_power` the power, too.
  void crash();

 private:
  friend class DiskOutbox;
  /// Of events, in one piece.
  struct Write {
    std::vector<actors::Continuation> topics;
    std::vector<actors::OutboxEvent> events;
    std::vector<actors::OutboxNote> notes;
    bool continues = false;

    std::uint64_t to(actors::Outbox& outbox) const;
  };

  /// At a crash or a fault within it, chance says whether it was kept. Returns as `append`.
  std::uint64_t put(Write write);
  std::uint64_t keep(const Write& write);
  void acknowledge(std::span<const std::uint64_t> positions);
  /// What is written now fails: throws.
  [[noreturn]] void refuse() const;

  World& world_;
  Host& host_;
  const Options options_;
  std::unique_ptr<actors::Outbox> kept_;
  bool fails_ = false;
  /// Not on the disk yet.
  std::set<std::uint64_t> acknowledged_;
  /// To make it anew without the last of them.
  std::vector<Write> writes_;
};

}  // namespace vigil::fleet::sim
