// Another node's device, as its link sees it: whether it can be reached, and what waits to go there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/reports.h"
#include "cluster/bulk/bulk.h"
#include "fleet/wire/link_frames.h"

namespace vigil::fleet {

/// A link is up while both of its channels are: the dock has let it attach, and the bulk way stands. When
/// either breaks, all that was under way is lost, and it begins anew. Not thread-safe.
class LinkDesk {
 public:
  /// Sends, or says why not; as BulkPort::send to the node.
  using Send = std::function<cluster::BulkSent(const cluster::BulkMessage&)>;

  explicit LinkDesk(Send send) : send_(std::move(send)) {}

  /// What is to be told of the device.
  struct Change {
    bool is_up = false;
    std::string reason;
  };

  std::optional<Change> attached();
  std::optional<Change> detached(const std::string& reason);
  std::optional<Change> bulk_opened();
  /// The dock has to be asked again, too, when that stands again.
  std::optional<Change> bulk_ended(const std::string& reason);
  /// The dock has to be asked again.
  bool wants_attach() const { return !attached_ && bulk_open_; }
  bool is_up() const { return attached_ && bulk_open_; }

  /// What may wait for credit, whatever the other side has let the cameras send: frames, of which half may be
  /// patches and tokens, and bytes of these. Of texts' pages, whoever has them asks `waiting_bytes` first.
  static constexpr std::size_t kMostFrames = 4096;
  static constexpr std::size_t kMostPatches = kMostFrames / 2;
  static constexpr std::uint64_t kMostBytes = 128 << 20;

  /// In this order. What finds no credit waits. A patch, or what was made of one, for which there is no room
  /// is dropped, and its camera hears so. Whatever else finds too many frames before it cannot be left out:
  /// then the other side, which takes nothing, counts as gone, and has to be asked again. While the link is
  /// down, all goes nowhere.
  std::optional<Change> send(const LinkFrame& frame);
  /// There is credit again.
  void resume();
  /// Patches that are too large for the way (too_large), or that found no room (queue_full), since the last
  /// call: what their cameras are to hear, and how many frames they had.
  struct Dropped {
    actors::PatchAck ack;
    std::uint32_t frames = 0;
  };
  std::vector<Dropped> take_dropped() { return std::exchange(dropped_, {}); }
  std::size_t waiting() const { return waiting_.size(); }
  std::uint64_t waiting_bytes() const { return all_.bytes; }

 private:
  /// What waits: how much of it.
  struct Count {
    std::size_t frames = 0;
    std::uint64_t bytes = 0;
    void add(std::uint64_t more) { ++frames, bytes += more; }
    void take(std::uint64_t less) { --frames, bytes -= less; }
  };

  std::optional<Change> change(bool was_up, const std::string& reason);
  /// One of so many bytes more, beside other patches and tokens that wait.
  bool has_room_for_patch(std::uint64_t bytes) const;

  struct Waiting {
    cluster::BulkMessage message;
    std::uint64_t bytes = 0;
    /// Of a patch or tokens: if it cannot be sent.
    std::optional<Dropped> dropped;
  };

  Send send_;
  bool attached_ = false;
  bool bulk_open_ = false;
  std::deque<Waiting> waiting_;
  Count all_;
  Count patches_;
  std::vector<Dropped> dropped_;
};

}  // namespace vigil::fleet
