// What may stand where a video comes from: a file, a URL, or a device.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vigil::config {

/// Why no video can come from there, in words that show nothing of the text, which may hold a password:
/// "expected ...". Nothing if one can, as far as the text tells. Whether there is such a file is not looked
/// at.
std::optional<std::string> source_fault(std::string_view source);

/// The schemes that are known: those with a host behind them, and the others.
std::span<const std::string_view> network_schemes();
std::span<const std::string_view> local_schemes();

}  // namespace vigil::config
