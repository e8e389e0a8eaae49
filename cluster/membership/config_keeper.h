// The shell around `ConfigAgreement`: the registry's key, this node's record, and who plans.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "cluster/membership/config_agreement.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/membership/registry_mirror.h"

namespace vigil::cluster {

/// For pieces of its loop alone.
class ConfigKeeper {
 public:
  struct Options {
    /// From now on this node runs by what it has read with this content; the version is the fleet's.
    std::function<void(const FleetConfig&)> apply = {};
    /// One line.
    std::function<void(const std::string&)> warn = {};
  };

  /// All have to outlive it, and the loop what the registry still answers.
  ConfigKeeper(Registry& registry, base::Loop& loop, FleetMember& member, Options options);
  ~ConfigKeeper();
  ConfigKeeper(const ConfigKeeper&) = delete;
  ConfigKeeper& operator=(const ConfigKeeper&) = delete;

  /// This node has read this (`ConfigAgreement::read`).
  void read(const std::string& hash, const std::string& fault);
  /// The fleet's members, or who plans, may be others now.
  void step();

  bool is_in_force() const { return agreement_.is_in_force(); }
  const ConfigAgreement& agreement() const { return agreement_; }
  /// What holds changes up, for people (`pending`).
  const std::vector<std::string>& pending() const { return pending_; }
  /// What the registry holds.
  const std::optional<FleetConfig>& registered() const { return registered_; }

 private:
  void read_registry();
  void tell();
  void propose();
  void look();
  void say(const std::vector<std::string>& lines);

  Registry& registry_;
  base::Loop& loop_;
  FleetMember& member_;
  const Options options_;
  ConfigAgreement agreement_;
  std::optional<FleetConfig> registered_;
  /// Points at this as long as it is there.
  std::shared_ptr<ConfigKeeper*> self_;
  std::vector<std::string> pending_;
  /// That, and why this node waits; and what of it was said last.
  std::vector<std::string> seen_;
  std::vector<std::string> said_;
  bool is_stepping_ = false;
  bool is_writing_ = false;
  /// Last: it calls.
  RegistryMirror mirror_;
};

}  // namespace vigil::cluster
