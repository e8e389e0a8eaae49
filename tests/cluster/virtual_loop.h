// Threads, times and a network of which a test says when anything happens.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/loop.h"
#include "base/virtual_time.h"

namespace vigil::cluster::testing {

using base::VirtualTime;

/// A thread of a simulated node, which ends with the object.
class VirtualLoop final : public base::Loop {
 public:
  explicit VirtualLoop(VirtualTime& time) : time_(time) {}

  void post(std::function<void()> piece) override { after(base::Duration(0), std::move(piece)); }
  void after(base::Duration delay, std::function<void()> piece) override {
    time_.at(delay, [alive = std::weak_ptr(alive_), piece = std::move(piece)] {
      if (!alive.expired()) piece();
    });
  }

 private:
  VirtualTime& time_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::cluster::testing
