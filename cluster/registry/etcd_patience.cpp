#include "cluster/registry/etcd_patience.h"

#include <algorithm>

namespace vigil::cluster {
namespace {

constexpr std::chrono::minutes kBetweenComplaints{1};
// What goes to and fro for a connection with certificates, a user and a first answer; a call goes once.
constexpr int kWays = 4;

}  // namespace

// Where there are several, two of them may be silent, and a call is still answered by the third.
EtcdPatience::EtcdPatience(base::Duration time_limit, std::size_t endpoints)
    : time_limit_(time_limit), first_(time_limit / (endpoints == 1 ? 2 : 3)), attempt_(first_) {}

base::Duration EtcdPatience::call() const {
  return std::min(attempt_, time_limit_);
}

void EtcdPatience::silent() {
  had_ = attempt_;
  attempt_ = std::min(attempt_ + attempt_ / 2, time_limit_ * 2);
}

std::string EtcdPatience::answered(base::Duration took) {
  attempt_ = std::clamp(took * 2, first_, time_limit_ * 2);
  had_ = base::Duration(0);
  complained_.reset();
  if (took <= first_) return {};
  return "its first answer took " + base::format_duration(took) + ", and should take " +
         base::format_duration(first_) + " at most";
}

void EtcdPatience::call_answered(base::Duration took) {
  attempt_ = std::clamp(took * kWays, first_, attempt_);
}

std::optional<std::string> EtcdPatience::complaint(TimePoint now) {
  if (had_ == base::Duration(0) || (complained_ && now - *complained_ < kBetweenComplaints)) return {};
  complained_ = now;
  return "registry: no server of etcd answers, the last within " + base::format_duration(had_) +
         "; the next has " + base::format_duration(attempt_);
}

}  // namespace vigil::cluster
