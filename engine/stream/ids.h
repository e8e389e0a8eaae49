// How windows and patches are called wherever they are spoken of.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

namespace vigil::stream {

/// A window that was asked: of which camera, which engine of its device answers, and the how manieth that
/// engine began. A name, which holds nothing: what lies behind it is the desk's, until its time is over.
struct WindowId {
  std::string camera;
  std::uint32_t epoch = 0;
  std::uint64_t number = 0;

  friend bool operator==(const WindowId&, const WindowId&) = default;
  friend bool operator<(const WindowId& a, const WindowId& b) {
    return std::tie(a.camera, a.epoch, a.number) < std::tie(b.camera, b.epoch, b.number);
  }
};

/// Patches [first, last) of a stream, counted since it began.
struct PatchRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t count() const { return last - first; }
  friend bool operator==(const PatchRange&, const PatchRange&) = default;
};

}  // namespace vigil::stream
