#include "config/values/master_key.h"

#include <algorithm>
#include <cctype>

namespace vigil::config {

bool is_master_key_for_path(std::string_view path) {
  constexpr std::size_t kDigits = 64;
  path = path.substr(0, path.find_last_not_of(" \t\r\n") + 1);
  path.remove_prefix(std::min(path.size(), path.find_first_not_of(" \t\r\n")));
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.size() == kDigits && std::all_of(name.begin(), name.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

}  // namespace vigil::config
