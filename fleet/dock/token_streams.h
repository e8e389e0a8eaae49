// The cameras whose streams are at devices of this node, and whose visual tokens other nodes bring.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/messages.h"

namespace vigil::fleet {

/// Of each, one session of one node. The end of what was here would be taken for the end of what begins: who
/// joins meanwhile begins when it has come out. Not thread-safe.
class TokenStreams {
 public:
  /// A node's session of tokens of a camera.
  struct Join {
    std::string from;
    std::uint32_t session = 0;
    actors::WatchPtr watch;
  };
  struct Stream {
    std::string from;
    std::uint32_t session = 0;
    actors::tokens_actor device;
    /// Its end is on its way through the device, which has not told yet that it came out.
    bool ends = false;
    std::optional<Join> next = {};
  };

  /// Null: there is none. Until the next change.
  const Stream* find(const std::string& camera) const;
  /// What a camera's device is to do: nothing until the end of what was has come out, take other settings of
  /// the same session, or begin (`begin`).
  enum class Joined { waits, renewed, begins };
  Joined join(const Join& join);
  void begin(const Join& join, actors::tokens_actor device);
  /// Other settings of the session that waits, or else is here; nothing: of none that is that node's.
  std::optional<Joined> renew(const std::string& from, const actors::WatchPtr& watch);
  /// Of that session. Returns the device that is to end it; nothing: none is.
  std::optional<actors::tokens_actor> end(const std::string& from, std::uint32_t session,
                                          const std::string& camera);
  /// Whoever brings it, and whoever waits. As above.
  std::optional<actors::tokens_actor> end(const std::string& camera);
  /// Its end has come out. Returns who begins now.
  std::optional<Join> over(const std::string& camera);

  /// That node counts its sessions anew. Returns the cameras that it brings.
  std::vector<std::string> come_anew(const std::string& from);
  /// A device is no more: what was on its way out of it never comes. All others join anew.
  void drop_ending();

 private:
  std::map<std::string, Stream> streams_;
};

}  // namespace vigil::fleet
