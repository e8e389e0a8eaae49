// A copy of the registry's keys that begin with a prefix, kept up to date.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/loop.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Reads all keys once and follows their changes; begins again when it cannot, as when the registry has
/// forgotten what came in between. What it knew stays until it knows better. For pieces of its loop alone.
class RegistryMirror {
 public:
  struct Options {
    std::string prefix;
    /// Some keys are others now, of a whole revision at once; not before all were read once.
    std::function<void()> changed = {};
    /// Of every answer.
    std::function<void(const RegistryHeader&)> heard = {};
    /// One line, when reading or following fails, once until it works again.
    std::function<void(const std::string&)> failed = {};
    base::Duration retry{1000};
  };

  /// All have to outlive it, and the loop what the registry still answers.
  RegistryMirror(Registry& registry, base::Loop& loop, Options options);
  ~RegistryMirror();
  RegistryMirror(const RegistryMirror&) = delete;
  RegistryMirror& operator=(const RegistryMirror&) = delete;

  /// Whether all were read, since it began (again).
  bool is_current() const { return is_current_; }
  const std::map<std::string, RegistryEntry>& entries() const { return entries_; }
  /// All changes up to this one are in it.
  Revision revision() const { return revision_; }
  /// Null if there is none.
  const RegistryEntry* find(const std::string& key) const;
  /// Those that came, changed or went since this was called last.
  std::set<std::string> take_changed() { return std::exchange(changed_, {}); }

  /// Reads all keys again: what it follows may not be what it was.
  void restart();

 private:
  struct Link;

  void read();
  void take(const RegistryRange& range);
  void follow(Revision from);
  void take(const RegistryNews& news);
  void fail(const RegistryFailure& failure);
  /// Calls it in the loop, unless this has ended or begun again meanwhile.
  template <class T>
  std::function<void(RegistryResult<T>)> in_loop(void (RegistryMirror::*taker)(const T&));

  Registry& registry_;
  base::Loop& loop_;
  const Options options_;
  std::shared_ptr<Link> link_;
  std::unique_ptr<RegistryWatch> watch_;
  std::map<std::string, RegistryEntry> entries_;
  std::set<std::string> changed_;
  Revision revision_ = 0;
  bool is_current_ = false;
  bool has_failed_ = false;
};

}  // namespace vigil::cluster
