// Pages that say what they are, for the tests of what keeps them.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "engine/kv/history/history_store.h"

namespace vigil::history::testing {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kHour = 3600 * kSecond;
/// 2026-08-01T10:00:00Z.
inline constexpr std::uint32_t kFirstHour = 495994;

inline const CameraId kGate{"north", "gate"};
inline const CameraId kYard{"north", "yard"};

inline std::vector<std::byte> random_bytes(std::uint64_t seed, std::size_t bytes) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> result(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t eight = random();
    std::memcpy(result.data() + at, &eight, std::min<std::size_t>(8, bytes - at));
  }
  return result;
}

/// Of a camera's page, the bytes of this value: other ones for each.
inline std::vector<std::byte> value_of(const CameraId& camera, std::uint64_t page, std::uint16_t layer,
                                       std::size_t bytes) {
  return random_bytes(std::hash<std::string>()(camera.tenant + '/' + camera.camera) + 1000 * page + layer,
                      bytes);
}

/// Patches of a second each from this second of an hour on, on a grid of 3 x 4 tokens.
inline PageInfo info_of(std::uint64_t number, std::uint32_t hour, int second, int patches) {
  PageInfo info;
  info.number = number;
  info.stream = 0x1234567890abcdef;
  info.form = static_cast<std::uint8_t>(number % 4);
  for (int i = 0; i < patches; ++i) {
    PatchInfo patch;
    patch.number = second + i;
    patch.place = 2 * (second + i);
    patch.kept = base::GridMask::none(3, 4);
    for (int cell = 0; cell <= (second + i) % 12; ++cell) patch.kept.add(cell);
    patch.wall.from = static_cast<std::int64_t>(hour) * kHour + (second + i) * kSecond;
    patch.wall.to = patch.wall.from + kSecond - 1;
    patch.seconds = second + i + 0.25;
    info.tokens += static_cast<std::uint32_t>(patch.kept.count());
    info.patches.push_back(std::move(patch));
  }
  return info;
}

/// A part that owns its bytes.
struct OwnedPart {
  GivenPart part;
  std::vector<std::vector<std::byte>> bytes;
};

/// Pages [first, first + count) of 10 seconds each, from this second of the hour on; each has a value of so
/// many bytes for each two layers of `layers`.
inline OwnedPart part_of(const CameraId& camera, std::uint32_t hour, int second, std::uint64_t first,
                         std::uint64_t count, std::size_t bytes = 3000, std::uint16_t layers = 4) {
  OwnedPart owned;
  owned.part = {camera, hour, {}};
  owned.bytes.reserve(count * layers);
  for (std::uint64_t i = 0; i < count; ++i) {
    GivenPage page{info_of(first + i, hour, second + static_cast<int>(10 * i), 10), {}};
    std::vector<std::span<const std::byte>> values;
    for (std::uint16_t layer = 0; layer < layers; layer = static_cast<std::uint16_t>(layer + 2)) {
      owned.bytes.push_back(value_of(camera, first + i, layer, bytes));
      page.values.push_back({{layer, 2}, owned.bytes.back()});
      values.emplace_back(owned.bytes.back());
      page.info.bytes += bytes;
    }
    page.info.fingerprint = fingerprint_of(values);
    owned.part.pages.push_back(std::move(page));
  }
  return owned;
}

/// Of a camera, all that can be read: a line a value with a hash of its bytes, or why it is missing.
inline std::string shown(const HistoryStore& store, const CameraId& camera) {
  std::ostringstream text;
  constexpr WallRange kAll{INT64_MIN, INT64_MAX};
  for (const KeptPage& page : store.pages(camera, kAll)) {
    text << page.info.number << " hour " << page.hour << ", " << page.info.patches.size() << " patches\n";
    for (const KeptValue& value : page.values) {
      const ValueName name{page.info.number, value.layers};
      const std::vector<Value> read = store.read(camera, {&name, 1});
      const auto bytes = read.at(0).bytes();
      text << "  layers " << value.layers.first << '+' << value.layers.count << ": ";
      if (read[0])
        text << std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()})
             << '\n';
      else
        text << (read[0].missing() == Missing::damaged ? "damaged\n" : "absent\n");
    }
  }
  return text.str();
}

/// Whether a value is there, and is what `part_of` made of it.
inline bool is_whole(const HistoryStore& store, const CameraId& camera, std::uint64_t page,
                     std::uint16_t layer, std::size_t bytes = 3000) {
  const ValueName name{page, {layer, 2}};
  const std::vector<Value> read = store.read(camera, {&name, 1});
  const auto expected = value_of(camera, page, layer, bytes);
  return read.at(0) &&
         std::equal(read[0].bytes().begin(), read[0].bytes().end(), expected.begin(), expected.end());
}

inline Missing missing(const HistoryStore& store, const CameraId& camera, std::uint64_t page,
                       std::uint16_t layer = 0) {
  const ValueName name{page, {layer, 2}};
  return store.read(camera, {&name, 1}).at(0).missing();
}

inline std::string file_bytes(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

inline void flip(const std::filesystem::path& file, std::size_t at, unsigned bit = 0) {
  std::string bytes = file_bytes(file);
  bytes.at(at) = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ 1U << bit);
  write_file(file, bytes);
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                                   const std::string& extension = {}) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && (extension.empty() || entry.path().extension() == extension))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Runs `work` in a process of its own, which is killed behind it; whether it came so far, or was killed
/// before.
template <class F>
bool run_and_kill(F work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace vigil::history::testing
