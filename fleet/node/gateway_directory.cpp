#include "fleet/node/gateway_directory.h"

namespace vigil::fleet {

GatewayNews GatewayDirectory::news(const cluster::FleetMember& member, const gateway_actor& own) const {
  GatewayNews news;
  news.own_revision = static_cast<std::uint64_t>(member.joined());
  for (const auto& [name, record] : member.nodes()) {
    if (!record.roles.contains(cluster::NodeRole::gateway)) continue;
    const bool is_own = name == member.record().name;
    // What is there of a run before this one is not this one's.
    if (is_own && record.incarnation != member.record().incarnation) continue;
    const auto created = static_cast<std::uint64_t>(member.created(name));
    news.view[name] = {record.incarnation + '@' + std::to_string(created), created, record.serves};
    if (is_own) {
      if (own) news.ways[name] = own;
    } else if (const auto way = ways_.find(name);
               way != ways_.end() && way->second.first == record.incarnation) {
      news.ways[name] = way->second.second;
    }
  }
  return news;
}

}  // namespace vigil::fleet
