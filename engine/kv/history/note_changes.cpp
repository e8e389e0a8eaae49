#include "engine/kv/history/note_changes.h"

#include <utility>

namespace vigil::history {

NoteList& NoteChanges::of(const CameraId& camera) {
  const auto [entry, is_new] = changed_.try_emplace(camera);
  const auto known = notes_.find(camera);
  if (is_new && known != notes_.end()) entry->second = known->second;
  return entry->second;
}

void NoteChanges::cut(const std::map<std::uint64_t, Erasure>& erasures) {
  for (const auto& [id, erasure] : erasures)
    if (notes_.contains(erasure.camera) || changed_.contains(erasure.camera))
      of(erasure.camera).cut(erasure.wall);
}

void NoteChanges::cut(std::span<const Expiry> expiries, const std::map<std::uint64_t, Erasure>& erasures) {
  check_notes(expiries);
  for (const Expiry& each : expiries)
    if (!each.form && (notes_.contains(each.camera) || changed_.contains(each.camera)))
      of(each.camera).cut(each);
  for (const Expiry& each : expiries)
    if (each.note) of(each.note->camera).add({each.note->wall, each.note->why});
  cut(erasures);
}

void NoteChanges::put(IndexBatch& batch, const std::optional<SecretKey>& master) const {
  for (const auto& [camera, notes] : changed_) {
    const auto known = notes_.find(camera);
    if (known == notes_.end() ? notes.entries().empty() : known->second == notes) continue;
    if (notes.entries().empty()) {
      batch.remove_notes(camera);
    } else {
      batch.put_notes(camera, encode_notes(camera, notes, master ? &*master : nullptr));
    }
  }
}

void NoteChanges::settle(CameraNotes& notes) && {
  for (auto& [camera, changed] : changed_) {
    if (changed.entries().empty()) {
      notes.erase(camera);
    } else {
      notes.insert_or_assign(camera, std::move(changed));
    }
  }
}

}  // namespace vigil::history
