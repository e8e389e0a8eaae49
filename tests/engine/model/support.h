// What the tests of the model folder share.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model::testing {

inline std::filesystem::path golden(const std::string& file) {
  return std::filesystem::path(VIGIL_SOURCE_DIR) / "tests" / "golden" / file;
}

/// A folder of its own for the running test, removed afterwards.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("vigil-" + std::string(test->test_suite_name()) + "-" + test->name() + "-" +
             std::to_string(reinterpret_cast<std::uintptr_t>(this)));
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& file, std::string_view text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

/// A safetensors file: the length, the header, the data.
inline std::string safetensors(std::string_view header, std::string_view data = {}) {
  std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file.append(header).append(data);
}

/// What `action` throws, as its one line; fails the test if it throws nothing or a line that is none.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const ModelError& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    EXPECT_LT(line.size(), 1000U) << line;
    return line;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace vigil::model::testing
