// What there is to know of each role of a node: one row a role, and what follows from the rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/membership/node_record.h"

namespace vigil::cluster {

/// Some roles, as a constant.
class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<NodeRole> roles) {
    for (const NodeRole role : roles) bits_ |= bit(role);
  }
  explicit RoleSet(const std::set<NodeRole>& roles) {
    for (const NodeRole role : roles) bits_ |= bit(role);
  }
  /// Whether they have one in common.
  constexpr bool meets(RoleSet other) const { return (bits_ & other.bits_) != 0; }

 private:
  static constexpr std::uint32_t bit(NodeRole role) { return 1u << static_cast<unsigned>(role); }
  std::uint32_t bits_ = 0;
};

/// What of the model a node reads for its role. shape: what frames it wants, and no more.
enum class ModelNeed : std::uint8_t { nothing, shape, tower, language };

struct RoleTraits {
  NodeRole role;
  /// In `--roles`, in records and in the chart.
  std::string_view name;
  /// Whether a node may have it: one that is to come has a name, and is refused.
  bool is_given = true;
  /// Every node has to do with one of this role, and greets it.
  bool deals_with_all = false;
  /// To nodes of which roles it gives work of cameras: they deal with it, and it with them.
  RoleSet gives_work_to = {};
  /// Nodes of which roles it greets by itself, unless they have one of `greets_not`, too. Where two might
  /// greet each other, one waits (fleet/node/node_desk.h).
  RoleSet greets = {};
  RoleSet greets_not = {};
  ModelNeed model = ModelNeed::nothing;
};

/// All that there are, in the order of `NodeRole`.
std::span<const RoleTraits> all_roles();

/// Whether nodes of these roles do cameras' work together; whether they have to do with each other at all;
/// whether one that has the first may greet one that has the others.
bool work_together(const std::set<NodeRole>& a, const std::set<NodeRole>& b);
bool deal(const std::set<NodeRole>& a, const std::set<NodeRole>& b);
bool may_greet(const std::set<NodeRole>& greeter, const std::set<NodeRole>& greeted);
/// Whether one of them has every node to deal with; whether all of them have, so that nobody does cameras'
/// work with it in particular.
bool one_deals_with_all(const std::set<NodeRole>& roles);
bool each_deals_with_all(const std::set<NodeRole>& roles);
/// Whether one of them needs this of the model.
bool need(const std::set<NodeRole>& roles, ModelNeed what);

/// The names of those that a node may have: "camera, vision, …", as people read them.
std::string names_of_roles();
/// Of these, with commas only.
std::string text_of(const std::set<NodeRole>& roles);
/// Each is a name, or several with commas; one that is there twice is there once. Throws
/// std::invalid_argument for a name that is none, or that no node may have yet: one line.
std::set<NodeRole> parse_roles(const std::vector<std::string>& names);

}  // namespace vigil::cluster
