// With whom a node exchanges bulk bytes: those that it knows, where their names stand for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/bulk/bulk.h"
#include "cluster/membership/node_record.h"

namespace vigil::fleet {

/// Runs of nodes, by the endpoints of their bulk ports once these are resolved. Not thread-safe.
class BulkPeerBook {
 public:
  /// Name and incarnation.
  using Run = std::pair<std::string, std::string>;

  /// These are all runs that are known, from now on. Those whose `bulk` is to be resolved: they are new, or
  /// it stood for nothing.
  std::vector<cluster::NodeRecord> follow(const std::vector<cluster::NodeRecord>& known);

  /// What the name stood for. False if that is nothing, or nobody wants to know any more.
  bool resolved(const Run& run, const std::vector<cluster::PeerAddress>& addresses);

  /// Those that are resolved.
  std::vector<cluster::BulkPeer> peers() const;

  /// The port takes none but these, of all that it was given last. What was not said of them before.
  std::vector<cluster::BulkRefusal> news(const std::vector<cluster::BulkRefusal>& refused);

 private:
  struct Entry {
    /// Of CURVE; empty: plain text.
    std::string key;
    /// "": asked for.
    std::string endpoint;
  };

  std::map<Run, Entry> runs_;
  /// Why, by name.
  std::map<std::string, std::string> said_;
};

}  // namespace vigil::fleet
