#include "base/json_line.h"

#include <nlohmann/json.hpp>

namespace vigil::base {

std::string json_line(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace vigil::base
