// Where a gateway keeps the fleet's events, and where those stay that it has parted from.
#pragma once

#include <filesystem>
#include <memory>

#include "actors/alerts/outbox.h"
#include "config/running/retention_clock.h"

namespace vigil::fleet {

/// Not thread-safe.
class GatewayFolder {
 public:
  /// The clock has to outlive it.
  GatewayFolder(std::filesystem::path folder, config::RetentionClock& ages);

  /// `anew`: an empty one; what is there is set aside in the folder beside it that ends with ".replaced", in
  /// place of the one before. Throws OutboxError; one that was set aside then stays so.
  std::unique_ptr<actors::Outbox> open(bool anew);

 private:
  std::filesystem::path folder_;
  config::RetentionClock& ages_;
};

}  // namespace vigil::fleet
