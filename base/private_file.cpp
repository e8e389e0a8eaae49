#include "base/private_file.h"

#include <array>
#include <cstdio>

#include <unistd.h>

namespace vigil::base {
namespace {

bool is_lent_by_root(const struct stat& status) {
  const bool others = (status.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) != 0;
  return status.st_uid == 0 && ::geteuid() != 0 && !others;
}

}  // namespace

std::optional<std::string> fault_of_privacy(const struct stat& status) {
  const unsigned mode = status.st_mode & 07777U;
  if ((mode & 077U) == 0 || is_lent_by_root(status)) return std::nullopt;
  std::array<char, 8> octal{};
  std::snprintf(octal.data(), octal.size(), "%04o", mode);
  return std::string("has mode ") + octal.data() + "; a secret key must be its owner's alone (chmod 600)";
}

}  // namespace vigil::base
