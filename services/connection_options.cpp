#include "services/connection_options.h"

#include <filesystem>
#include <system_error>

#include "cluster/sockets/curve.h"
#include "config/values/curve_key.h"
#include "services/command.h"

namespace vigil::services {

void check_endpoint(const std::string& option, const std::string& endpoint, const std::string& example) {
  // "*" is where a server listens, and nowhere to go.
  const bool is_nowhere = endpoint.starts_with("tcp://*:") || endpoint.starts_with("tcp://:");
  if ((endpoint.starts_with("tcp://") && !is_nowhere) || endpoint.starts_with("ipc://")) return;
  std::string fault = option + ": expected an endpoint such as " + example + ", not '" + endpoint + "'";
  if (!endpoint.empty() && endpoint.find("://") == endpoint.npos)
    fault += "; did you mean tcp://" + endpoint + "?";
  throw UsageError(fault);
}

std::string server_key_of(const std::string& key_or_file) {
  std::error_code unknown;
  // The text is not shown: a secret key may stand there by mistake.
  if (!config::is_curve_key(key_or_file) && !std::filesystem::exists(key_or_file, unknown)) {
    throw UsageError(
        "--server-key: expected a public CURVE key, 40 characters of Z85 (vigil keygen), in single quotes, "
        "or the name of a file that holds one; what is given is neither");
  }
  return cluster::read_public_key(key_or_file);
}

}  // namespace vigil::services
