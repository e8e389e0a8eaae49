// The place where an operation runs: a device and the order of what is submitted to it.
#pragma once

#include <cstdint>

namespace vigil::kernels {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// An ordered queue of operations on one device. Every operation of this room takes the stream that it runs
/// on and picks its implementation by `kind`. On the CPU operations are complete when they return. Not
/// thread-safe: one owner at a time.
class Stream {
 public:
  /// A CPU stream whose operations use up to `threads` threads; 0 means all processors that this process may
  /// use. Throws std::invalid_argument for a negative number, and for more than 1024.
  static Stream cpu(int threads = 0);

  DeviceKind kind() const { return kind_; }
  int threads() const { return threads_; }

 private:
  Stream(DeviceKind kind, int threads) : kind_(kind), threads_(threads) {}
  DeviceKind kind_;
  int threads_;
};

/// True where products of bf16 matrices run on hardware made for them (AVX-512 BF16 or AMX); elsewhere f32 is
/// faster.
bool cpu_has_bf16();

/// The instruction set that matrix products use here, in oneDNN's words ("avx512_core_bf16", say).
const char* cpu_isa();

}  // namespace vigil::kernels
