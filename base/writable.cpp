#include "base/writable.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace vigil::base {

std::string why_unwritable(const std::filesystem::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return "";
  return std::error_code(errno, std::generic_category()).message();
}

}  // namespace vigil::base
