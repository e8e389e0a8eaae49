// The settings of cameras that a stage was told, for what comes later and only names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "actors/messages/watch.h"

namespace vigil::actors {

/// Settings come ahead of the first thing that refers to them, and things come in the order in which their
/// settings did: what refers to some lets go of the older ones. Not thread-safe.
class WatchBook {
 public:
  /// False if nothing can refer to it: a later one has been referred to, or there is none.
  bool put(const WatchPtr& watch);

  /// Null if nobody told it, or something later has been referred to.
  WatchPtr find(const WatchRef& ref) const;

  /// As `find`; whatever is older than what it finds is forgotten.
  WatchPtr refer(const WatchRef& ref);

  /// The newest of a camera; null if nobody told any.
  WatchPtr newest(const std::string& camera) const;

  /// The camera is gone, or has ended: one of the same name starts from nothing.
  void forget(const std::string& camera) { cameras_.erase(camera); }

  /// Settings that are kept, of all cameras.
  std::size_t size() const;

 private:
  struct Camera {
    std::map<std::uint64_t, WatchPtr> versions;
    /// Nothing older is referred to any more.
    std::uint64_t oldest = 0;
  };

  std::map<std::string, Camera> cameras_;
};

}  // namespace vigil::actors
