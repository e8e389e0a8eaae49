#include "actors/device/backlog.h"

namespace vigil::actors {

void Backlog::encoded(base::Clock::TimePoint captured, base::Clock::TimePoint now) {
  if (now - captured > kPatience) last_ = now;
}

void Backlog::answered(base::Clock::TimePoint asked, base::Duration stride, base::Clock::TimePoint now) {
  if (now - asked > stride / 2) last_ = now;
}

}  // namespace vigil::actors
