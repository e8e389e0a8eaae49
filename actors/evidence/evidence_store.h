// The folder of stills and clips: names, budget, age, and what it leaves of the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/evidence/clip_index.h"
#include "actors/evidence/lived_ages.h"
#include "base/clock.h"
#include "config/running/retention_clock.h"
#include "config/settings.h"

namespace vigil::actors {

/// What cannot be stored, as one line.
class EvidenceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Files are called CAMERA/DATE/TIME-RULE-EPISODE.jpg and .mp4 (or .mkv), with the time of the still in UTC.
/// When a file was kept is the time of its last change, by a clock that no step of the machine's moves: what
/// was kept first goes first, whatever the times in the names. Where that time is to come, either it was
/// wrong then or the clock is wrong now: such a file, and those that were kept after it, are as old as the
/// time that processes have lived with them, which is noted in the folder. Files of other names are left
/// alone and not counted. Only this user may read any of them. Not thread-safe.
class EvidenceStore {
 public:
  struct Options {
    std::filesystem::path dir;
    std::uintmax_t budget = config::EvidenceSettings().budget.bytes;
    base::Duration max_age = config::EvidenceSettings().max_age;
    /// Bytes of the disk that no file is written into, and from half of which on the oldest files go: the
    /// outbox, which may be on the same disk, needs far less, and has to get it.
    std::uintmax_t keep_free = 64 << 20;
    /// Free bytes of the disk; nothing if that is not known. For tests.
    std::function<std::optional<std::uintmax_t>()> free_bytes = {};
    /// Is told which clips there are; has to outlive the store. Null: nobody asks.
    ClipIndex* clips = nullptr;
  };

  /// Counts what is there, removes what a crash left unfinished, and what is too much. A folder that cannot
  /// be used is no error yet: see `failure`. The clock has to outlive it.
  EvidenceStore(Options options, config::RetentionClock& clock);

  /// Why the folder cannot be used, or not as it should be; empty if it can.
  const std::string& failure() const { return failure_; }

  /// Where the files of an episode belong, within the folder and without extension; the same arguments give
  /// the same. Whatever the names are, it is never outside of the folder.
  static std::filesystem::path place(std::string_view camera, std::string_view rule, std::string_view episode,
                                     base::Clock::WallTime still);

  /// Where a file of the folder is; makes the folders above it. Throws EvidenceError.
  std::filesystem::path prepare(const std::filesystem::path& file);

  /// Removes the oldest files until so many more bytes are within the budget, and can be written without
  /// touching what is kept free. Throws EvidenceError if that cannot be; then nothing was removed for it,
  /// unless files could not be removed, or their room was not free when they were.
  void make_room(std::uintmax_t bytes);

  /// A file was written: from now on it counts. Returns its size.
  std::uintmax_t keep(const std::filesystem::path& file);

  /// What a clip that is kept shows, as its file says, too (`note_of`): from now on it is found.
  void shows(const std::filesystem::path& clip, const ClipNote& note);

  /// Of the clips that were there at the start: reads what the newest says of itself that was not read yet,
  /// so that it is found. One that says nothing, or cannot be read, is not. Takes as long as the disk does.
  void read_next();
  /// Whether there is one.
  bool has_unread() const { return !unread_.empty(); }

  /// A file could not be written: whatever there is of it goes, or counts if it does not.
  void discard(const std::filesystem::path& file);

  /// Removes what is older than allowed, and the oldest while the disk is nearly full. To be called several
  /// times a minute: time that passes beyond that makes nothing older that was kept since the start. What was
  /// kept before it is not too old for the first ten minutes, in which the clock may still be wrong.
  void tidy();

  /// What people should know since the last call, as a line: that files went for lack of space, or
  /// cannot be removed.
  std::optional<std::string> take_news();

  /// A message with the names of files within the folder alone: subscribers need not know the machine's.
  std::string shown(std::string text) const;

  /// Of all files that count.
  std::uintmax_t bytes() const { return bytes_; }

 private:
  /// When it was kept, then its path without extension.
  using Key = std::pair<base::Clock::WallTime, std::string>;
  /// A still and a clip.
  struct Pair {
    /// By extension.
    std::map<std::string, std::uintmax_t> sizes;
    /// From when its age counts, in this process's time, and before its start if that is below 0. Nothing: it
    /// was kept before the start, and when is known.
    std::optional<base::Duration> since;
    /// Kept by this process.
    bool ours = false;
    /// It could not be removed, and that was told.
    bool stuck = false;
  };
  using Pairs = std::map<Key, Pair>;

  void scan();
  void scan_clips();
  /// It is not found any more.
  void forget(const std::string& stem);
  void scan_day(const std::filesystem::path& day);
  void make_private(const std::filesystem::path& path);
  void follow();
  bool is_old(const Pairs::value_type& entry) const;
  /// Notes how old those are whose times are to come.
  void note_ages();
  bool is_there(const Pairs::value_type& entry) const;
  /// Goes on to the next. False if its files could not all be removed: it stays, and counts.
  bool remove(Pairs::iterator& entry);
  /// From the oldest on, until no more than this is taken and so much is free, or removing gains nothing.
  /// Returns how many went.
  std::size_t remove_oldest(std::uintmax_t allowed, std::uintmax_t needed);
  std::uintmax_t free_bytes() const;

  Options options_;
  config::RetentionClock& clock_;
  std::string failure_;
  /// News: clips that went for lack of space, and what could not be removed last.
  std::size_t given_ = 0;
  std::string stuck_;
  Pairs pairs_;
  /// When each of them was kept, by path without extension.
  std::map<std::string, base::Clock::WallTime> kept_;
  /// Clips of which it is not known what they show, the newest last.
  std::vector<std::string> unread_;
  std::uintmax_t bytes_ = 0;
  /// The clock when it was looked at last, and how much time of this process it has told since the start.
  base::Clock::WallTime seen_;
  base::Duration lived_{0};
  /// What was noted last, and when in this process's time.
  LivedAges noted_;
  base::Duration noted_at_{0};
};

}  // namespace vigil::actors
