// Lines of a small file, and under them a checksum: what is damaged, cut or edited is seen.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vigil::base {

/// The lines with "# checksum " and 16 hexadecimal digits in a line of its own behind them. No defence
/// against anybody who wants to deceive.
std::string sealed(std::string_view lines);

/// The lines above the checksum, within `text`; nothing if they do not fit it.
std::optional<std::string_view> unsealed(std::string_view text);

}  // namespace vigil::base
