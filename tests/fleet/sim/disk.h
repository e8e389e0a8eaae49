// A node's disk, as its outbox sees it: it outlives the node's lives, and a crash may come between any two of
// its writes, or within one.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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
  };
  Disk(World& world, Host& host, Options options);

  /// The outbox on it, for one life of the host. What a dead host writes is not kept.
  std::unique_ptr<actors::Outbox> open();
  /// What is kept, whoever has it open.
  const actors::Outbox& kept() const { return *kept_; }

  /// From now on there is an empty one.
  void replace();
  /// The host is gone.
  void crash();

 private:
  friend class DiskOutbox;
  using Write = std::function<void(actors::Outbox&)>;

  /// At a crash within it, chance says whether it was kept.
  void put(const Write& write);

  World& world_;
  Host& host_;
  const Options options_;
  std::unique_ptr<actors::Outbox> kept_;
  /// To make it anew without the last of them.
  std::vector<Write> writes_;
};

}  // namespace vigil::fleet::sim
