// Tells one model from another by what is in its files, wherever they lie and whatever they are called.
#pragma once

#include <filesystem>
#include <string>

namespace vigil::model {

/// 16 hexadecimal digits of a folder's configuration, preprocessing, tokenizer and weights, the same on every
/// machine. Of files beyond some MiB, their size, their ends and samples in between are looked at: what is
/// trained anew differs everywhere. No seal: whoever wants to, can make two that are alike. Throws
/// std::runtime_error for a file that cannot be read.
std::string fingerprint(const std::filesystem::path& folder);

}  // namespace vigil::model
