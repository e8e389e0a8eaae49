// What a fleet in a world does with a node, whatever it is made of.
#pragma once

#include <functional>
#include <string>

namespace vigil::fleet::sim {

/// One life of a host: with the object, all that runs there is gone, at once and without a word.
class SimNode {
 public:
  virtual ~SimNode() = default;
  /// Does what there is to do now; whether there was any.
  virtual bool run() { return false; }
  /// Wants to be rid of what it has; `done` when it is, or after a while.
  virtual void drain(std::function<void()> done) = 0;
  /// What an audit is told after every event.
  virtual void tell() = 0;
  /// How it is, for whoever looks for what went wrong.
  virtual std::string describe() const { return {}; }
};

}  // namespace vigil::fleet::sim
