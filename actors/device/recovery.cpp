#include "actors/device/recovery.h"

#include <array>

namespace vigil::actors {
namespace {

constexpr std::array kWaits = {std::chrono::seconds(0), std::chrono::seconds(2), std::chrono::seconds(10)};

}  // namespace

std::optional<Recovery::TimePoint> Recovery::failed(TimePoint now) {
  if (since_ && now - *since_ >= kSteady) failures_ = 0;
  since_.reset();
  if (failures_ == kWaits.size()) return std::nullopt;
  return now + kWaits.at(failures_++);
}

}  // namespace vigil::actors
