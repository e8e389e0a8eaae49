// Files of an evidence folder.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/evidence/evidence_store.h"

namespace vigil::actors::testing {

/// All files below a folder but the store's own notes, as paths within it. Sorted.
inline std::vector<std::string> files_below(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_directory() && entry.path().filename() != ".ages")
      files.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Writes a file of so many bytes where the store wants it, and lets it count.
inline std::string put(EvidenceStore& store, base::Clock::WallTime time, std::size_t bytes,
                       const std::string& extension = ".mp4", const std::string& episode = "E") {
  const std::string file = EvidenceStore::place("gate", "person", episode, time).string() + extension;
  store.make_room(bytes);
  std::ofstream(store.prepare(file)) << std::string(bytes, 'x');
  EXPECT_EQ(store.keep(file), bytes);
  return file;
}

}  // namespace vigil::actors::testing
