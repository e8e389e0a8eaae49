#include "fleet/node/gateway_directory.h"

#include <algorithm>
#include <memory>

namespace vigil::fleet {

namespace {

bool is_same(const GatewayNews& one, const GatewayNews& other) {
  return one.view == other.view && one.registry_answers == other.registry_answers &&
         one.own_revision == other.own_revision && one.keepers == other.keepers &&
         one.gone_keepers == other.gone_keepers &&
         std::equal(one.ways.begin(), one.ways.end(), other.ways.begin(), other.ways.end(),
                    [](const auto& way, const auto& there) {
                      return way.first == there.first && way.second.address() == there.second.address();
                    });
}

}  // namespace

GatewayNewsPtr GatewayDirectory::take_news(const cluster::FleetMember& member, const gateway_actor& own) {
  GatewayNews news;
  news.registry_answers = member.registry_answers();
  news.own_revision = static_cast<std::uint64_t>(member.joined());
  for (const auto& [name, incarnation] : std::exchange(keepers_, {})) {
    const auto node = member.nodes().find(name);
    if (node == member.nodes().end() || node->second.incarnation != incarnation)
      news.gone_keepers.insert(name);
  }
  for (const auto& [name, record] : member.nodes()) {
    if (record.keeps_events && name != member.record().name) {
      keepers_[name] = record.incarnation;
      news.keepers.insert(name);
    }
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
  if (told_ && is_same(*told_, news)) return nullptr;
  told_ = std::make_shared<const GatewayNews>(std::move(news));
  return told_;
}

}  // namespace vigil::fleet
