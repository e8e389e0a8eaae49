#include "fleet/node/bulk_peer_book.h"

#include <set>

namespace vigil::fleet {

std::vector<cluster::NodeRecord> BulkPeerBook::follow(const std::vector<cluster::NodeRecord>& known) {
  std::vector<cluster::NodeRecord> asked;
  std::set<Run> runs;
  for (const cluster::NodeRecord& node : known) {
    const auto [entry, is_new] = runs_.try_emplace({node.name, node.incarnation});
    entry->second.key = node.bulk_key;
    if (is_new) asked.push_back(node);
    runs.insert(entry->first);
  }
  std::erase_if(runs_, [&](const auto& each) { return !runs.contains(each.first); });
  return asked;
}

bool BulkPeerBook::resolved(const Run& run, const std::vector<cluster::PeerAddress>& addresses) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return false;
  if (addresses.empty()) {
    // Asked for again with the next change.
    runs_.erase(found);
    return false;
  }
  found->second.endpoint = "tcp://" + cluster::text_of(addresses.front());
  return true;
}

std::vector<cluster::BulkPeer> BulkPeerBook::peers() const {
  std::vector<cluster::BulkPeer> peers;
  for (const auto& [run, entry] : runs_) {
    if (entry.endpoint.empty()) continue;
    cluster::BulkPeer peer{run.first, entry.endpoint};
    if (!entry.key.empty()) peer.keys = {entry.key};
    peers.push_back(std::move(peer));
  }
  return peers;
}

std::vector<cluster::BulkRefusal> BulkPeerBook::news(const std::vector<cluster::BulkRefusal>& refused) {
  std::vector<cluster::BulkRefusal> news;
  std::map<std::string, std::string> now;
  for (const cluster::BulkRefusal& each : refused) {
    const auto before = said_.find(each.peer);
    if (before == said_.end() || before->second != each.why) news.push_back(each);
    now[each.peer] = each.why;
  }
  said_ = std::move(now);
  return news;
}

}  // namespace vigil::fleet
