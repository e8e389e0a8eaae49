#include "cluster/membership/node_roles.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace vigil::cluster {
namespace {

using enum NodeRole;

constexpr std::array kRoles = {
    RoleTraits{.role = camera,
               .name = "camera",
               .gives_work_to = {vision, stream},
               .greets = {vision, stream, generate, cache},
               .model = ModelNeed::shape},
    // It has visual tokens to send, which one that encodes itself does without.
    RoleTraits{.role = vision,
               .name = "vision",
               .gives_work_to = {stream},
               .greets = {stream},
               .greets_not = {vision},
               .model = ModelNeed::tower},
    RoleTraits{.role = stream, .name = "stream", .gives_work_to = {generate}, .model = ModelNeed::language},
    RoleTraits{.role = generate, .name = "generate", .model = ModelNeed::language},
    RoleTraits{.role = cache, .name = "cache", .is_given = false},
    RoleTraits{.role = gateway, .name = "gateway", .deals_with_all = true},
};

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < kRoles.size(); ++i)
    if (static_cast<std::size_t>(kRoles[i].role) != i) return false;
  return true;
}
static_assert(are_in_order());

const RoleTraits& traits_of(NodeRole role) {
  return kRoles.at(static_cast<std::size_t>(role));
}

bool gives_work(const std::set<NodeRole>& a, RoleSet b) {
  return std::ranges::any_of(a, [&](NodeRole each) { return traits_of(each).gives_work_to.meets(b); });
}

}  // namespace

std::span<const RoleTraits> all_roles() {
  return kRoles;
}

std::string_view name_of(NodeRole role) {
  return traits_of(role).name;
}

std::optional<NodeRole> parse_role(std::string_view name) {
  for (const RoleTraits& each : kRoles)
    if (each.name == name) return each.role;
  return std::nullopt;
}

bool work_together(const std::set<NodeRole>& a, const std::set<NodeRole>& b) {
  return gives_work(a, RoleSet(b)) || gives_work(b, RoleSet(a));
}

bool deal(const std::set<NodeRole>& a, const std::set<NodeRole>& b) {
  return one_deals_with_all(a) || one_deals_with_all(b) || work_together(a, b);
}

bool may_greet(const std::set<NodeRole>& greeter, const std::set<NodeRole>& greeted) {
  if (one_deals_with_all(greeter) || one_deals_with_all(greeted)) return true;
  const RoleSet there(greeted);
  return std::ranges::any_of(greeter, [&](NodeRole each) {
    return traits_of(each).greets.meets(there) && !traits_of(each).greets_not.meets(there);
  });
}

bool one_deals_with_all(const std::set<NodeRole>& roles) {
  return std::ranges::any_of(roles, [](NodeRole each) { return traits_of(each).deals_with_all; });
}

bool each_deals_with_all(const std::set<NodeRole>& roles) {
  return !roles.empty() &&
         std::ranges::all_of(roles, [](NodeRole each) { return traits_of(each).deals_with_all; });
}

bool need(const std::set<NodeRole>& roles, ModelNeed what) {
  return std::ranges::any_of(roles, [&](NodeRole each) { return traits_of(each).model == what; });
}

std::string names_of_roles() {
  std::string names;
  for (const RoleTraits& each : kRoles)
    if (each.is_given) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

std::string text_of(const std::set<NodeRole>& roles) {
  std::string text;
  for (const NodeRole role : roles) text += (text.empty() ? "" : ",") + std::string(name_of(role));
  return text;
}

std::set<NodeRole> parse_roles(const std::vector<std::string>& names) {
  std::set<NodeRole> roles;
  for (const std::string& list : names) {
    for (std::size_t at = 0; at <= list.size();) {
      const std::string name = list.substr(at, list.find(',', at) - at);
      at += name.size() + 1;
      if (name.empty() && !list.empty())
        throw std::invalid_argument("a comma with no role beside it in '" + list + '\'');
      const auto role = parse_role(name);
      if (!role) throw std::invalid_argument("unknown role '" + name + "' (known: " + names_of_roles() + ")");
      if (!traits_of(*role).is_given) throw std::invalid_argument("'" + name + "' has nothing to do yet");
      roles.insert(*role);
    }
  }
  return roles;
}

}  // namespace vigil::cluster
