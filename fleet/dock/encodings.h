// The cameras that devices of this node encode: what is here of each, until its end has come out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/messages.h"
#include "fleet/dock/dock_book.h"

namespace vigil::fleet {

/// The end of what was here of a camera would be taken for the end of what begins: who comes back while it
/// ends, or with a stream at another node, begins when it has come out. Not thread-safe.
class Encodings {
 public:
  /// `node`: this one.
  explicit Encodings(std::string node) : node_(std::move(node)) {}

  /// A camera that was let in begins, at this node's device.
  struct Beginning {
    Passage passage;
    /// Not null.
    actors::WatchPtr watch;
    /// As its owner counts, and the dock (`DockBook::Guest`).
    std::uint32_t own_generation = 0, generation = 0;
  };
  /// Its visual tokens go to another node's stream.
  struct Lane {
    std::string stream = {};
    /// As the dock counts, and its device.
    std::uint32_t session = 0, own_session = 0;
    actors::tokens_sender_actor source = {};
    std::uint64_t fence = 0;
    /// Otherwise it comes to its end here, and what is left of it is let go.
    bool goes_on = true;
  };

  /// Whether something is here of the camera, and goes on as it is with a stream at that node.
  bool goes_on(const std::string& camera, const std::string& stream) const;
  /// True: it begins now. False: it will when what is here of it has ended, which is to be asked for.
  bool join(const Beginning& beginning);
  /// Its end is on its way through the device: of one that is here.
  void ends_now(const std::string& camera) { cameras_[camera].ends = true; }
  /// The end that follows is not that of its stream, if that is another node's.
  void leaves_stream(const std::string& camera);
  /// Whether it has begun here, or waits to begin; not: what was given up still comes out.
  bool is_here(const std::string& camera) const;
  /// Where the stream is of what has begun, also while another one waits; null: nothing has, or it is over.
  const std::string* stream_of(const std::string& camera) const;
  /// Those whose ends have not come out.
  std::vector<std::string> ending() const;

  /// Whether it waits to begin. The other two: it does so by newer settings, or no longer; false: it does
  /// not wait.
  bool waits(const std::string& camera) const;
  bool renew(const actors::WatchPtr& watch);
  bool drop_waiting(const std::string& camera);
  /// It is encoded elsewhere from now on; false: it was not here.
  bool give_up(const std::string& camera);

  /// Its end has come out of a stream of this node. Returns what begins now.
  std::optional<Beginning> stream_over(const std::string& camera);

  /// The device has begun with it, and its lane is `lane`. Its stream is filled in; empty: it is over.
  Lane& open(const std::string& camera, Lane lane);
  /// Null: it has none. Until the next change.
  Lane* lane(const std::string& camera);
  /// Cameras whose lanes go on to that node.
  std::vector<std::string> lanes_to(const std::string& node) const;
  /// The device of these is no more: those that go on join again from the next one, and their streams stay.
  /// Returns the others, whose ends never come out, with their lanes still here (`lane_over`).
  std::vector<std::string> drop_lanes(const std::function<bool(const Lane&)>& is_its);
  /// All that was on the lane has gone. Returns the lane, if there was one, and what begins now.
  struct Over {
    Lane lane;
    /// Another tower goes on with it.
    bool stream_stays = false;
    std::optional<Beginning> next;
  };
  std::optional<Over> lane_over(const std::string& camera);

  /// All of it, in words.
  std::string describe() const;

 private:
  struct Camera {
    /// Of what has begun.
    std::optional<std::string> stream;
    bool ends = false;
    bool stream_stays = false;
    std::optional<Beginning> next;
    std::optional<Lane> lane;
  };
  const Camera* find(const std::string& camera) const;
  std::optional<Beginning> begin_next(Camera& camera);
  /// Forgets it, if nothing is here of it.
  void tidy(const std::string& camera);

  const std::string node_;
  std::map<std::string, Camera> cameras_;
};

}  // namespace vigil::fleet
