// A value of the index that vouches for itself and for its key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/kv/history/cipher.h"

namespace vigil::history {

/// A version, then the body: with a secret it is encrypted, without it has a sum behind it. Either is over
/// the key as well.
std::string seal_row(std::uint8_t version, std::string_view key, std::string body, const SecretKey* secret);

/// The body; nothing for bytes that are not this key's in this version, sealed or not as `secret` says, and
/// whole.
std::optional<std::string> open_row(std::uint8_t version, std::string_view key, std::string_view bytes,
                                    const SecretKey* secret);

}  // namespace vigil::history
