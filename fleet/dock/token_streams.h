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
    /// By its name; empty: it is no more.
    std::string device;
    /// Its end is on its way through the device, which has not told yet that it came out.
    bool ends = false;
    std::optional<Join> next = {};
  };

  /// Null: there is none. Until the next change.
  const Stream* find(const std::string& camera) const;
  /// What is to be done about who joins: nothing until the end of what was has come out, other settings for
  /// the same session's device, or `begin`.
  enum class Joined { waits, renewed, begins };
  /// `join.watch` is not null.
  Joined join(const Join& join);
  /// In place of whatever was there of this camera.
  void begin(const Join& join, const std::string& device);
  /// Other settings of the session that waits (`waits`), or else is here (`renewed`); nothing: of none that
  /// is that node's.
  std::optional<Joined> renew(const std::string& from, const actors::WatchPtr& watch);
  /// That session ends, or does not begin any more. Returns the device that is to end it; nothing: none is.
  std::optional<std::string> end(const std::string& from, std::uint32_t session, const std::string& camera);
  /// That session's end, which follows, is not that of its stream, which waits for another tower. False: it
  /// is not the one that is here.
  bool leave(const std::string& from, std::uint32_t session, const std::string& camera);
  /// The camera ends here, and nobody waits. Returns the device that is to end it, again if it is told so
  /// already; nothing: nothing is there of it any more.
  std::optional<std::string> end(const std::string& camera);
  /// Whether another session begins when what is here has come to its end.
  bool waits(const std::string& camera) const;
  /// Its end has come out. Returns who begins now.
  std::optional<Join> over(const std::string& camera);

  /// That node counts its sessions anew. Returns the cameras that it brings.
  std::vector<std::string> come_anew(const std::string& from);
  /// What was on its way out of that device never comes; what else it had begins anew with the next join.
  void device_lost(const std::string& device);

 private:
  std::map<std::string, Stream> streams_;
};

}  // namespace vigil::fleet
