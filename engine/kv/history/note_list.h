// Why nothing was kept of a camera's time, where somebody said so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/history_store.h"

namespace vigil::history {

/// Of one camera: ranges of a reason neither meet nor follow one another, since what does is joined. Bounded
/// by kMostNotes, of which those that end first go first. Not thread-safe.
class NoteList {
 public:
  struct Entry {
    WallRange wall;
    std::uint8_t why = 0;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Its range does not end before it begins.
  void add(Entry entry);
  /// Nothing is noted of this range any more; what lies beyond it on either side stays.
  void cut(const WallRange& wall);
  /// The same for the hours that an expiry covers, unless it is of one form.
  void cut(const Expiry& expiry);

  /// Ascending by their beginning, then by the reason.
  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const NoteList&, const NoteList&) = default;

 private:
  void bound();

  std::vector<Entry> entries_;
};

/// Throws std::invalid_argument for one whose range ends before it begins.
void check_notes(std::span<const Note> notes);
/// The same for those that these leave.
void check_notes(std::span<const Expiry> expiries);

using CameraNotes = std::map<CameraId, NoteList>;
/// As HistoryStore::notes.
std::vector<Note> notes_of(const CameraNotes& notes, const CameraId& camera, const WallRange& wall);

/// A row of the index, sealed by the master key or with a sum.
std::string encode_notes(const CameraId& camera, const NoteList& notes, const SecretKey* master);
/// Nothing for bytes that are not this camera's. Each list has one encoding, but for what seals it.
std::optional<NoteList> decode_notes(const CameraId& camera, std::string_view bytes, const SecretKey* master);

}  // namespace vigil::history
