// Files that hold secrets, and who else may read them.
#pragma once

#include <optional>
#include <string>

#include <sys/stat.h>

namespace vigil::base {

/// What is wrong with a secret's file that others than its owner may read, or change, as the rest of a
/// sentence that begins with its name: "has mode 0644; ...". Nothing of one that is its owner's alone, or
/// that is root's and that this process, which is not root, may read as one of the file's group: so is what
/// Kubernetes mounts from a Secret.
std::optional<std::string> fault_of_privacy(const struct stat& status);

}  // namespace vigil::base
