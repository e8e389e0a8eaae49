#include "fleet/events/gateway_folder.h"

#include <system_error>
#include <utility>

namespace vigil::fleet {

GatewayFolder::GatewayFolder(std::filesystem::path folder, config::RetentionClock& ages)
    : folder_(std::move(folder)), ages_(ages) {}

std::unique_ptr<actors::Outbox> GatewayFolder::open(bool anew) {
  std::error_code error;
  if (anew && std::filesystem::exists(folder_, error)) {
    const std::filesystem::path aside(folder_.string() + ".replaced");
    std::filesystem::remove_all(aside, error);
    std::filesystem::rename(folder_, aside, error);
  }
  if (error) throw actors::OutboxError(folder_.string() + ": cannot be set aside: " + error.message());
  return actors::open_rocksdb_outbox(folder_, ages_);
}

}  // namespace vigil::fleet
