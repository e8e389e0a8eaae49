// Whether others reach a node where it tells them that it is: by what those say that it asks.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::fleet {

/// A node with which it deals, and to which it has a way, is asked to come back to it by the address that it
/// tells of itself; some at a time, until the first one has. That is asked once in a node's life: what is
/// lost later, others tell. Not thread-safe.
class WaysIn {
 public:
  /// `address`: as it is told, for people.
  WaysIn(const base::Clock& clock, std::string address) : clock_(clock), address_(std::move(address)) {}

  /// Of these, those that are to be asked now. Each answer is to be told.
  std::vector<std::string> take_asks(const std::set<std::string>& nodes);
  /// That one is asked now, whoever else is.
  void ask(const std::string& node);
  /// Why that node does not reach this one; empty: it does.
  void heard(const std::string& node, const std::string& why_not);
  /// It is of a build that does not tell: so it is as it was before any did.
  void heard_nothing_of_it();
  /// It has not answered.
  void unheard(const std::string& node);

  /// Others are told of this node now. There are some with which it deals, and none has said that it reaches
  /// it. `is_told`: that it is given nothing is in the log already.
  void came_in_vain(bool is_told);
  /// Whether this node is better given nothing.
  bool holds_back() const;
  bool is_reached() const { return is_reached_; }

  /// Lines for the log, of what has happened since the last call.
  std::vector<std::string> take_lines();

 private:
  struct Asked {
    bool is_asked = false;
    base::Clock::TimePoint at = {};
    std::string why_not = {};
  };

  void settle();

  const base::Clock& clock_;
  const std::string address_;
  std::map<std::string, Asked> nodes_;
  /// When some are asked again, and how long after that the next ones.
  base::Clock::TimePoint again_ = {};
  base::Duration pause_{0};
  bool is_reached_ = false;
  bool has_come_in_vain_ = false;
  bool was_held_back_ = false;
  std::vector<std::string> lines_;
};

}  // namespace vigil::fleet
