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
  /// For what has come from a link that is no more.
  std::uint64_t number() const { return number_; }

  /// In this order. What finds no credit waits, and is bounded by the credit of the cameras; while the link
  /// is down it goes nowhere.
  void send(const LinkFrame& frame);
  /// There is credit again.
  void resume();
  /// Patches that are too large for the way, since the last call: what their cameras are to hear.
  std::vector<actors::PatchAck> take_dropped() { return std::exchange(dropped_, {}); }
  std::size_t waiting() const { return waiting_.size(); }
  /// Since it began; what the frames of cameras took.
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::optional<Change> change(bool was_up, const std::string& reason);

  struct Waiting {
    cluster::BulkMessage message;
    /// Of a patch: if it cannot be sent.
    std::optional<actors::PatchAck> dropped;
  };

  Send send_;
  bool attached_ = false;
  bool bulk_open_ = false;
  std::uint64_t number_ = 0;
  std::deque<Waiting> waiting_;
  std::vector<actors::PatchAck> dropped_;
  std::uint64_t bytes_ = 0;
};

}  // namespace vigil::fleet
