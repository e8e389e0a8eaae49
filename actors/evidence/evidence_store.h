// The folder of stills and clips: names, budget, age.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "config/clock.h"
#include "config/settings.h"

namespace vigil::actors {

/// What cannot be stored, as one line.
class EvidenceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Files are called CAMERA/DATE/TIME-RULE-EPISODE.jpg and .mp4 (or .mkv), with the time of the still in UTC;
/// their names are all that is known of them after a restart. Files of other names are left alone and not
/// counted. Not thread-safe.
class EvidenceStore {
 public:
  struct Options {
    std::filesystem::path dir;
    std::uintmax_t budget = config::EvidenceSettings().budget.bytes;
    config::Duration max_age = config::EvidenceSettings().max_age;
  };

  /// Counts what is there, removes what a crash left unfinished, and what is too old or too much. A folder
  /// that cannot be used is no error yet: see `failure`.
  EvidenceStore(Options options, const config::Clock& clock);

  /// Why the folder cannot be used; empty if it can.
  const std::string& failure() const { return failure_; }

  /// Where the files of an episode belong, within the folder and without extension; the same arguments give
  /// the same. Whatever the names are, it is never outside of the folder.
  static std::filesystem::path place(std::string_view camera, std::string_view rule, std::string_view episode,
                                     config::Clock::WallTime still);

  /// Where a file of the folder is; makes the folders above it. Throws EvidenceError.
  std::filesystem::path prepare(const std::filesystem::path& file) const;

  /// Removes the oldest files until so many more bytes are within the budget. Throws EvidenceError if that
  /// cannot be.
  void make_room(std::uintmax_t bytes);

  /// A file was written: from now on it counts. Returns its size.
  std::uintmax_t keep(const std::filesystem::path& file);

  /// Removes what is older than allowed.
  void remove_old();

  /// A message with the names of files within the folder alone: subscribers need not know the machine's.
  std::string shown(std::string text) const;

  /// Of all files that count.
  std::uintmax_t bytes() const { return bytes_; }

 private:
  /// By the time in their names, then by their paths: what belongs together stands together.
  using Key = std::pair<config::Clock::WallTime, std::string>;

  void scan();
  void scan_day(const std::filesystem::path& day);
  void remove_oldest();

  Options options_;
  const config::Clock& clock_;
  std::string failure_;
  std::map<Key, std::uintmax_t> files_;
  std::uintmax_t bytes_ = 0;
};

}  // namespace vigil::actors
