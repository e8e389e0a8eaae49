// The same tests for every device: host matrices are mirrored to where the operation runs.
#pragma once

#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/buffer.h"
#include "tests/kernels/test_matrix.h"

namespace vigil::kernels {

/// Tests run on the CPU, and once more on a GPU with VIGIL_TEST_DEVICE=cuda in the environment.
inline bool tests_on_gpu() {
  const char* device = std::getenv("VIGIL_TEST_DEVICE");
  return device != nullptr && std::string_view(device) == "cuda";
}

/// A stream of the device under test. `threads` is for the CPU.
inline Stream test_stream(int threads = 1) {
  return tests_on_gpu() ? Stream::cuda() : Stream::cpu(threads);
}

#define VIGIL_SKIP_WITHOUT_DEVICE()                                              \
  if (::vigil::kernels::tests_on_gpu() && ::vigil::kernels::cuda_devices() == 0) \
  GTEST_SKIP() << "skipped, no GPU"

/// Products of bf16 matrices exist only where the processor has them; GPUs do.
#define VIGIL_SKIP_WITHOUT(dtype)                                   \
  VIGIL_SKIP_WITHOUT_DEVICE();                                      \
  if (!tests_on_gpu() && (dtype) == DType::bf16 && !cpu_has_bf16()) \
  GTEST_SKIP() << "no bf16 products on this processor"

/// Host bytes as an operation on the stream's device sees them. On the CPU they are the bytes themselves, so
/// that a sanitizer sees what reads past them; on a GPU a copy, between guards that `fetch` checks.
class Mirror {
 public:
  Mirror(const Stream& stream, std::span<std::byte> host) : stream_(stream), host_(host) {
    if (!on_gpu()) return;
    std::vector<std::byte> guarded(host.size() + 2 * kGuard, std::byte{0xff});
    std::copy(host.begin(), host.end(), guarded.begin() + kGuard);
    memory_ = Buffer(stream, guarded.size());
    upload(stream, memory_.data(), guarded.data(), guarded.size());
  }
  Mirror(const Stream& stream, const std::vector<std::byte>& host)
      : Mirror(stream, std::span(const_cast<std::byte*>(host.data()), host.size())) {}

  std::byte* data() const { return on_gpu() ? memory_.data() + kGuard : host_.data(); }

  /// What the device has now, back into the host's bytes.
  void fetch() {
    if (!on_gpu()) return;
    std::vector<std::byte> guarded(host_.size() + 2 * kGuard);
    download(stream_, guarded.data(), memory_.data(), guarded.size());
    std::copy_n(guarded.begin() + kGuard, host_.size(), host_.begin());
    for (std::size_t i = 0; i < kGuard; ++i) {
      ASSERT_EQ(guarded[i], std::byte{0xff}) << "written before the first element";
      ASSERT_EQ(guarded[guarded.size() - 1 - i], std::byte{0xff}) << "written past the last element";
    }
  }

 private:
  // A multiple of every alignment that kernels rely on.
  static constexpr std::size_t kGuard = 1024;

  bool on_gpu() const { return stream_.kind() == DeviceKind::cuda; }

  Stream stream_;
  std::span<std::byte> host_;
  Buffer memory_;
};

/// A TestMatrix on the stream's device.
class OnDevice {
 public:
  OnDevice(const Stream& stream, TestMatrix& host) : host_(&host), mirror_(stream, host.bytes()) {}
  OnDevice(const Stream& stream, const TestMatrix& host) : OnDevice(stream, const_cast<TestMatrix&>(host)) {}

  Matrix view() const {
    Matrix view = host_->view();
    view.data = mirror_.data();
    return view;
  }
  operator Matrix() const { return view(); }       // NOLINT(google-explicit-constructor)
  operator ConstMatrix() const { return view(); }  // NOLINT(google-explicit-constructor)
  const float* numbers() const { return view().row<float>(0); }
  void fetch() { mirror_.fetch(); }

 private:
  TestMatrix* host_;
  Mirror mirror_;
};

}  // namespace vigil::kernels
