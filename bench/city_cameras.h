// Of each camera of a simulated city: who has it, whether it is watched, and for how long it was not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bench/virtual_thread.h"
#include "cluster/planning/plan.h"

namespace vigil::bench {

/// Not thread-safe.
class CityCameras {
 public:
  /// Camera i is in site i modulo `sites`.
  CityCameras(const VirtualTime& time, std::size_t count, std::size_t sites);

  std::size_t size() const { return cameras_.size(); }
  std::size_t sites() const { return sites_; }
  static std::string name_of(std::size_t camera);
  static std::size_t index_of(const std::string& name);

  /// A node has it by its plan, or not any more.
  void hold(const std::string& camera, const std::string& node, const cluster::PlannedCamera& entry);
  void release(const std::string& camera, const std::string& node);
  /// Its frames come from that node to its stream, and to its former one.
  void deliver(const std::string& camera, const std::string& node, bool to_stream, bool to_former);
  /// Nodes that compute.
  void set_computing(const std::string& node, bool is_there);
  void set_power(std::size_t site, bool on);
  bool has_power(const std::string& camera) const;
  void want(std::size_t camera, bool wanted);
  bool is_wanted(std::size_t camera) const { return cameras_[camera].wanted; }

  /// Nothing that was before counts any more.
  void begin_phase();
  /// In this phase, in seconds: how long a camera had no owner, and how long it was wanted, had power, and
  /// was not watched: no living owner delivered it, or nobody computed it.
  double longest_unowned() const;
  double longest_unwatched() const;
  /// Now; of those that are wanted and have power.
  std::size_t unwatched() const { return unwatched_; }
  std::size_t unowned() const { return unowned_; }
  /// Those that more than one node has, or one that none should have.
  std::size_t owned_twice() const;

 private:
  struct Holder {
    std::string node = {};
    std::string stream = {};
    /// Answers while the other's windows fill.
    std::string former = {};
    bool to_stream = false, to_former = false;
  };
  struct Camera {
    std::vector<Holder> holders;
    bool wanted = true;
    bool power = true;
    /// Since when it lacks it; -1: it does not.
    Nanoseconds unowned{0};
    Nanoseconds unwatched{0};
  };

  void judge(Camera& camera);
  void note(bool lacks, Nanoseconds& since, std::size_t& count, Nanoseconds& longest) const;

  const VirtualTime& time_;
  const std::size_t sites_;
  std::vector<Camera> cameras_;
  std::set<std::string> computing_;
  Nanoseconds phase_{0};
  std::size_t unowned_;
  std::size_t unwatched_;
  Nanoseconds longest_unowned_{0};
  Nanoseconds longest_unwatched_{0};
};

}  // namespace vigil::bench
