// What devices refuse.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::kernels {

/// A GPU that is not there, or an operation that went wrong on it.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const std::string& what, bool lost = false) : std::runtime_error(what), lost_(lost) {}

  /// The error is known to be sticky: nothing more works on this GPU in this process. Of one that is not, the
  /// next call to the device tells.
  bool lost() const { return lost_; }

 private:
  bool lost_;
};

/// A GPU without room for a buffer. Its contents and its streams stay usable.
class OutOfDeviceMemory : public std::bad_alloc {
 public:
  explicit OutOfDeviceMemory(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace vigil::kernels
