// What a camera's secrets refer to: `{NAME}`, and the file of its password. Put in by whoever opens the
// camera, where they were kept as they stand (`Secrets::kept`).
#pragma once

#include <filesystem>

#include "config/file/load.h"
#include "config/settings.h"
#include "config/values/masked_text.h"

namespace vigil::config {

/// The password that is all that a file holds, but for a newline at its end. Throws std::runtime_error: one
/// line, which shows nothing of what the file holds.
MaskedText password_in(const std::filesystem::path& file);

/// The camera with its URLs, its user and its password as they are here and now. Relative paths are relative
/// to `folder`. Throws std::runtime_error: one line with the key and the name of what is missing, and no
/// secret.
CameraSettings with_secrets(CameraSettings camera, const Environment& environment,
                            const std::filesystem::path& folder);

/// Whether that may differ from one time to another: its password is in a file.
inline bool may_change(const CameraSettings& camera) {
  return !camera.password_file.empty();
}

/// The camera as one that cannot be opened, since that is why: its inputs have no address, and are shown as
/// the reason.
CameraSettings without_secrets(CameraSettings camera, const std::string& why);
/// Of the address of an input, whether it is of such a camera.
bool is_without_secrets(std::string_view url);

}  // namespace vigil::config
