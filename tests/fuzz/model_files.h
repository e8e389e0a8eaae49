// A model folder with one file of hostile bytes.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "engine/model/files/error.h"

namespace vigil::testing {

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// One line that is not too long to be read.
inline void require_line(const model::ModelError& error) {
  require(std::strchr(error.what(), '\n') == nullptr && std::strlen(error.what()) <= 2000);
}

/// Lies in memory where the machine has a folder for that; goes when it does.
class ModelFile {
 public:
  ModelFile(const char* name, std::string_view bytes) : path_(shared_folder() / name) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~ModelFile() {
    std::error_code none;
    std::filesystem::remove(path_, none);
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::filesystem::path folder() const { return path_.parent_path(); }

 private:
  struct Folder {
    Folder() {
      std::error_code none;
      std::string name = std::filesystem::is_directory("/dev/shm", none) ? "/dev/shm/vigil-fuzz-XXXXXX"
                                                                         : "/tmp/vigil-fuzz-XXXXXX";
      if (::mkdtemp(name.data()) == nullptr) std::abort();
      path = name;
    }
    ~Folder() {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::filesystem::path path;
  };

  static const std::filesystem::path& shared_folder() {
    static const Folder folder;
    return folder.path;
  }

  std::filesystem::path path_;
};

}  // namespace vigil::testing
