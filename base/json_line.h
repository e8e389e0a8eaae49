// JSON as it is kept and sent.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace vigil::base {

/// On one line. What a model, an operator or a peer wrote need not be UTF-8, and the text still has to be
/// JSON: what is none becomes U+FFFD.
std::string json_line(const nlohmann::json& value);

}  // namespace vigil::base
