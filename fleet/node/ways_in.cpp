#include "fleet/node/ways_in.h"

#include <algorithm>
#include <tuple>

namespace vigil::fleet {
namespace {

/// Asked at once; and so many that say no are believed where there are more.
constexpr std::size_t kAskedAtOnce = 3;
constexpr base::Duration kFirstRest{1000};
constexpr base::Duration kLongestRest{10'000};

}  // namespace

std::vector<std::string> WaysIn::take_asks(const std::set<std::string>& nodes) {
  if (is_reached_) return {};
  std::erase_if(nodes_,
                [&](const auto& each) { return !each.second.is_asked && !nodes.contains(each.first); });
  for (const std::string& node : nodes) nodes_.try_emplace(node);
  if (clock_.now() < again_) return {};
  std::size_t room = kAskedAtOnce;
  std::vector<std::tuple<base::Clock::TimePoint, std::string>> idle;
  for (const auto& [node, asked] : nodes_) {
    if (!asked.is_asked) {
      idle.emplace_back(asked.at, node);
    } else if (room > 0) {
      --room;
    }
  }
  std::ranges::sort(idle);
  std::vector<std::string> asks;
  for (const auto& [at, node] : idle) {
    if (asks.size() == room) break;
    ask(node);
    asks.push_back(node);
  }
  if (asks.empty()) return asks;
  again_ = clock_.now() + pause_;
  pause_ = std::clamp(2 * pause_, kFirstRest, kLongestRest);
  return asks;
}

void WaysIn::ask(const std::string& node) {
  Asked& asked = nodes_[node];
  asked.is_asked = true;
  asked.at = clock_.now();
}

void WaysIn::heard(const std::string& node, const std::string& why_not) {
  if (why_not.empty()) {
    if (holds_back()) lines_.push_back("node " + node + " reaches this one");
    return settle();
  }
  Asked& asked = nodes_[node];
  asked.is_asked = false;
  if (std::exchange(asked.why_not, why_not) != why_not)
    lines_.push_back("node " + node + " does not reach this one at " + address_ + ": " + why_not);
}

void WaysIn::heard_nothing_of_it() {
  settle();
}

void WaysIn::unheard(const std::string& node) {
  if (const auto asked = nodes_.find(node); asked != nodes_.end()) asked->second.is_asked = false;
}

void WaysIn::came_in_vain(bool is_told) {
  has_come_in_vain_ = !is_reached_;
  was_held_back_ = was_held_back_ || is_told;
}

void WaysIn::settle() {
  is_reached_ = true;
  has_come_in_vain_ = false;
  nodes_.clear();
}

bool WaysIn::holds_back() const {
  if (is_reached_) return false;
  const auto refused = static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const auto& each) { return !each.second.why_not.empty(); }));
  return has_come_in_vain_ || (refused > 0 && refused >= std::min(kAskedAtOnce, nodes_.size()));
}

std::vector<std::string> WaysIn::take_lines() {
  if (holds_back() && !std::exchange(was_held_back_, true))
    lines_.push_back(
        "no node with which it deals has come to it at " + address_ +
        " (cluster.advertise): it is given nothing until one has, as long as others can have it");
  return std::exchange(lines_, {});
}

}  // namespace vigil::fleet
