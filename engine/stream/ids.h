// How windows are called wherever they are spoken of.
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

}  // namespace vigil::stream
