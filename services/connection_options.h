// How a command says which socket of a running service it means, and by which keys.
#pragma once

#include <string>

namespace vigil::services {

/// Throws UsageError, naming the option, for what is nowhere to connect to; `example`: what is.
void check_endpoint(const std::string& option, const std::string& endpoint, const std::string& example);

/// The server's public key, from itself or from its file. Throws UsageError, and KeyError of a file.
std::string server_key_of(const std::string& key_or_file);

}  // namespace vigil::services
