#include "fleet/node/ways_out.h"

#include <algorithm>

namespace vigil::fleet {
namespace {

/// Of a record.
constexpr std::size_t kMostTold = 32;

}  // namespace

void WaysOut::came_in_vain() {
  apart_.holds = has_come_in_vain_ = true;
}

bool WaysOut::see(Standing& standing, bool now) const {
  if (now == standing.holds) {
    standing.otherwise.reset();
    return false;
  }
  if (!standing.otherwise) standing.otherwise = clock_.now();
  if (clock_.now() - *standing.otherwise < patience_) return false;
  standing = {now, std::nullopt};
  return true;
}

std::vector<std::string> WaysOut::see(const Seen& seen) {
  std::vector<std::string> lines;
  std::erase_if(nodes_, [&](const auto& each) { return !seen.ways.contains(each.first); });
  for (const auto& [node, has_way] : seen.ways)
    if (see(nodes_[node], !has_way))
      lines.push_back(has_way ? "there is a way to node " + node + " again"
                              : "there has been no way to node " + node +
                                    " for a while: it is told, so that others do what that one would");
  const bool is_apart = seen.has_counterparts && !seen.reaches_one;
  // Whoever has just come has lost no way.
  const bool ends_coming = has_come_in_vain_ && !is_apart;
  if (ends_coming) apart_ = {};
  has_come_in_vain_ = has_come_in_vain_ && is_apart;
  if (see(apart_, is_apart) || ends_coming)
    lines.push_back(apart_.holds ? "there has been no way to any node with which it deals for a while: it is "
                                   "given nothing, as long as others can have it"
                                 : "there is a way to nodes with which it deals");
  if (see(clock_off_, seen.is_clock_off))
    lines.push_back(clock_off_.holds ? "its clock is not that of the nodes with which it deals: nothing more "
                                       "is given to it, as long as others can have it"
                                     : "its clock is that of the nodes with which it deals");
  return lines;
}

bool WaysOut::apart() const {
  return apart_.holds || std::ranges::count_if(nodes_, [](const auto& each) { return each.second.holds; }) >
                             static_cast<std::ptrdiff_t>(kMostTold);
}

std::set<std::string> WaysOut::unreachable() const {
  std::set<std::string> told;
  for (const auto& [node, standing] : nodes_)
    if (standing.holds && told.size() < kMostTold) told.insert(node);
  return told;
}

std::set<std::string> WaysOut::all_unreachable() const {
  std::set<std::string> all;
  for (const auto& [node, standing] : nodes_)
    if (standing.holds) all.insert(node);
  return all;
}

}  // namespace vigil::fleet
