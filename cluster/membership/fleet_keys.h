// Where in the registry a fleet keeps what.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace vigil::cluster {

/// Names of fleets and nodes are parts of keys: letters, digits, '.', '-' and '_' (`is_key_part`).
class FleetKeys {
 public:
  explicit FleetKeys(std::string_view fleet) : root_("/vigil/" + std::string(fleet) + '/') {}

  const std::string& root() const { return root_; }
  /// Of each node that is there: its record, with the node's lease.
  std::string nodes() const { return root_ + "nodes/"; }
  std::string node(std::string_view name) const { return nodes() + std::string(name); }
  /// Of each node that reads cameras: up to which fence it has settled (`FleetMember::settle`), with its
  /// lease. Apart from its record, since it changes often, and only whoever plans has to know.
  std::string settled() const { return root_ + "settled/"; }
  std::string settled(std::string_view node) const { return settled() + std::string(node); }
  /// Of each node that reads cameras: which streams are full (`FleetMember::fill`), with its lease.
  std::string filled() const { return root_ + "filled/"; }
  std::string filled(std::string_view node) const { return filled() + std::string(node); }
  /// Of each node that reads cameras: which fences of its cameras are refused (`FleetMember::refuse`), with
  /// its lease.
  std::string refused() const { return root_ + "refused/"; }
  std::string refused(std::string_view node) const { return refused() + std::string(node); }
  /// Who plans, with that node's lease.
  std::string planner() const { return root_ + "planner"; }
  /// Of each camera node: its cameras. Outlives the node.
  std::string plans() const { return root_ + "plan/"; }
  std::string plan(std::string_view node) const { return plans() + std::string(node); }
  /// Which configuration holds for all (config_agreement.h).
  std::string config() const { return root_ + "config/current"; }
  /// The content of the newest text that `vigil config put` has put; and texts, in parts, by their content.
  std::string config_offer() const { return root_ + "config/offer"; }
  std::string config_texts() const { return root_ + "config/text/"; }
  std::string config_text(std::string_view hash) const { return config_texts() + std::string(hash) + '/'; }
  /// What is silent until when: the lines of `config/running/snoozes.h`.
  std::string snoozes() const { return root_ + "snoozes"; }
  /// Of what cameras remember (`fleet/past/erasure_book.h`): nodes that have any of it, erasures, and which
  /// node has done which. All of it outlives nodes.
  std::string past() const { return root_ + "past/"; }
  std::string past_nodes() const { return past() + "nodes/"; }
  std::string past_node(std::string_view node) const { return past_nodes() + std::string(node); }
  std::string erasures() const { return past() + "erasures/"; }
  std::string erasure(std::string_view id) const { return erasures() + std::string(id); }
  std::string erased() const { return past() + "erased/"; }
  std::string erased(std::string_view id, std::string_view node) const {
    return erased() + std::string(id) + '/' + std::string(node);
  }

 private:
  std::string root_;
};

constexpr bool is_key_part(std::string_view name) {
  for (const char each : name) {
    const bool is_letter = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
    if (!is_letter && !(each >= '0' && each <= '9') && each != '.' && each != '-' && each != '_')
      return false;
  }
  return !name.empty();
}

}  // namespace vigil::cluster
