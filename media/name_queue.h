// Names of servers that wait to be resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vigil::media {

/// Which name is resolved next. Resolving one whose name servers do not answer takes ten seconds, so that all
/// of a zone (what follows a name's first dot) together get only a part of the resolvers, and zones take
/// turns. Not thread-safe.
class NameQueue {
 public:
  struct Name {
    std::string host;
    std::string port;
    /// Who asked for it: all of them get the same answer.
    std::vector<std::uint64_t> tickets;
  };

  /// `of_a_zone`: names of one zone that are being resolved at once, at most.
  explicit NameQueue(int of_a_zone) : of_a_zone_(of_a_zone) {}

  void add(std::uint64_t ticket, const std::string& host, const std::string& port);
  /// Nobody waits for it any more; a name that is being resolved already keeps it.
  void drop(std::uint64_t ticket);
  void clear();

  /// Whether `take` gives one.
  bool ready() const;
  /// Of the zone with the fewest names under way, and of these the one that had its turn longest ago: the
  /// name that waited longest. Ends with `done`.
  std::optional<Name> take();
  void done(const Name& name);

 private:
  struct Zone {
    std::deque<Name> waiting;
    int under_way = 0;
    std::uint64_t turn = 0;
  };

  std::map<std::string, Zone> zones_;
  std::uint64_t turns_ = 0;
  int of_a_zone_;
};

}  // namespace vigil::media
