// What becomes of cameras' notes with a change of the index.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "engine/kv/history/cipher.h"
#include "engine/kv/history/history_store.h"
#include "engine/kv/history/index_database.h"
#include "engine/kv/history/note_list.h"

namespace vigil::history {

/// Gathers it, puts it into a batch, and makes it so once that is written. Not thread-safe; the notes have to
/// outlive it.
class NoteChanges {
 public:
  explicit NoteChanges(const CameraNotes& notes) : notes_(notes) {}

  /// As it is, to be changed.
  NoteList& of(const CameraId& camera);
  /// Nothing is noted of what these erase.
  void cut(const std::map<std::uint64_t, Erasure>& erasures);
  /// Nor of hours that are over, but for what these leave, unless that was erased. Throws
  /// std::invalid_argument for what they leave if its range ends before it begins.
  void cut(std::span<const Expiry> expiries, const std::map<std::uint64_t, Erasure>& erasures);

  /// Rows of the cameras whose notes are other ones now.
  void put(IndexBatch& batch, const std::optional<SecretKey>& master) const;
  void settle(CameraNotes& notes) &&;

 private:
  const CameraNotes& notes_;
  CameraNotes changed_;
};

}  // namespace vigil::history
