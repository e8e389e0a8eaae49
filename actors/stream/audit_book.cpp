#include "actors/stream/audit_book.h"

#include "actors/messages/pruned_less.h"

namespace vigil::actors {

bool AuditBook::hear(bool agrees, const config::PruningSettings& pruning) {
  agreed_.push_back(agrees);
  if (!agrees) ++differing_;
  if (agreed_.size() > kAnswers) {
    if (!agreed_.front()) --differing_;
    agreed_.pop_front();
  }
  if (differing_ > kMayDiffer) {
    if (computes_all(pruned_less(pruning, steps_))) return false;
    ++steps_;
  } else if (steps_ > 0 && differing_ == 0 && agreed_.size() == kAnswers) {
    --steps_;
  } else {
    return false;
  }
  agreed_.clear();
  differing_ = 0;
  return true;
}

}  // namespace vigil::actors
