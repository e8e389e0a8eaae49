// How what is kept is called, so that the order of keys' bytes is the order of keys.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::history {

/// Names may hold any byte, and none; cameras of two tenants are never the same.
struct CameraId {
  std::string tenant;
  std::string camera;

  friend bool operator==(const CameraId&, const CameraId&) = default;
  friend std::strong_ordering operator<=>(const CameraId&, const CameraId&) = default;
};

/// Layers [first, first + count) of the model.
struct Layers {
  std::uint16_t first = 0;
  std::uint16_t count = 0;

  friend bool operator==(const Layers&, const Layers&) = default;
  friend std::strong_ordering operator<=>(const Layers&, const Layers&) = default;
};

/// Of hours, counted in UTC since the epoch of Unix.
struct HourKey {
  CameraId camera;
  std::uint32_t hour = 0;

  friend bool operator==(const HourKey&, const HourKey&) = default;
  friend std::strong_ordering operator<=>(const HourKey&, const HourKey&) = default;
};

/// Of what is written and goes at once.
struct PartKey {
  HourKey hour;
  std::uint64_t part = 0;

  friend bool operator==(const PartKey&, const PartKey&) = default;
  friend std::strong_ordering operator<=>(const PartKey&, const PartKey&) = default;
};

/// Of one value of a page.
struct PageKey {
  PartKey part;
  Layers layers;
  std::uint64_t page = 0;

  friend bool operator==(const PageKey&, const PageKey&) = default;
  friend std::strong_ordering operator<=>(const PageKey&, const PageKey&) = default;
};

// Each encoding begins with that of what it lies within. In names the byte 0 is followed by 255, and 0 and 1
// end them: so no name's encoding begins another one's. Numbers have their highest byte first.
std::string encode(const CameraId& camera);
std::string encode(const HourKey& key);
std::string encode(const PartKey& key);
std::string encode(const PageKey& key);

// Nothing for bytes that are no such key's, to the last one.
std::optional<CameraId> decode_camera(std::string_view bytes);
std::optional<HourKey> decode_hour_key(std::string_view bytes);
std::optional<PartKey> decode_part_key(std::string_view bytes);
std::optional<PageKey> decode_page_key(std::string_view bytes);

}  // namespace vigil::history
