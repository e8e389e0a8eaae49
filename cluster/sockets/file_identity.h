// Which file lies under a name, and whether it is still the same one.
#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

namespace vigil::cluster {

/// Which file it is and when it was written: another one of the same name has another, however it came there
/// (also by a link that points elsewhere now, as Kubernetes replaces secrets). "none" if there is none.
inline std::string file_identity(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return "none";
  return std::to_string(found.st_dev) + ':' + std::to_string(found.st_ino) + ':' +
         std::to_string(found.st_size) + ':' + std::to_string(found.st_mtim.tv_sec) + '.' +
         std::to_string(found.st_mtim.tv_nsec) + ':' + std::to_string(found.st_mode);
}

}  // namespace vigil::cluster
