#include "engine/kv/history/note_list.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/sealed_row.h"

namespace vigil::history {
namespace {

constexpr std::uint8_t kNotesVersion = 1;
constexpr std::size_t kNoteBytes = 2 * sizeof(std::int64_t) + 1;
/// So that what the master key has sealed for something else is no list.
constexpr std::string_view kNotesBound = "vigil history notes ";

bool is_before(const NoteList::Entry& a, const NoteList::Entry& b) {
  return std::tie(a.wall.from, a.why) < std::tie(b.wall.from, b.why);
}

/// Whether there is no moment between them, nor a gap.
bool joins(const WallRange& a, const WallRange& b) {
  if (a.meets(b)) return true;
  return a.to < b.from ? a.to + 1 == b.from : b.to + 1 == a.from;
}

/// The first moment of an hour, or the last one that there is.
std::int64_t begin_of(std::uint32_t hour) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return hour > kMost / kHour ? kMost : hour * kHour;
}

}  // namespace

void NoteList::bound() {
  while (entries_.size() > kMostNotes)
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.wall.to < b.wall.to; }));
}

void NoteList::add(Entry entry) {
  std::erase_if(entries_, [&](const Entry& each) {
    if (each.why != entry.why || !joins(each.wall, entry.wall)) return false;
    entry.wall = {std::min(each.wall.from, entry.wall.from), std::max(each.wall.to, entry.wall.to)};
    return true;
  });
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, is_before), entry);
  bound();
}

void NoteList::cut(const WallRange& wall) {
  if (wall.to < wall.from) return;
  std::vector<Entry> left;
  for (const Entry& each : entries_) {
    if (!each.wall.meets(wall)) {
      left.push_back(each);
      continue;
    }
    if (each.wall.from < wall.from) left.push_back({{each.wall.from, wall.from - 1}, each.why});
    if (each.wall.to > wall.to) left.push_back({{wall.to + 1, each.wall.to}, each.why});
  }
  entries_ = std::move(left);
  std::sort(entries_.begin(), entries_.end(), is_before);
  bound();
}

void NoteList::cut(const Expiry& expiry) {
  if (expiry.form || expiry.before_hour <= expiry.from_hour) return;
  const std::int64_t from =
      expiry.from_hour == 0 ? std::numeric_limits<std::int64_t>::min() : begin_of(expiry.from_hour);
  cut(WallRange{from, begin_of(expiry.before_hour) - 1});
}

void check_notes(std::span<const Note> notes) {
  for (const Note& each : notes)
    if (each.wall.to < each.wall.from)
      throw std::invalid_argument("history: a note of a range that ends before it begins");
}

void check_notes(std::span<const Expiry> expiries) {
  for (const Expiry& each : expiries)
    if (each.note) check_notes({&*each.note, 1});
}

std::vector<Note> notes_of(const CameraNotes& notes, const CameraId& camera, const WallRange& wall) {
  std::vector<Note> result;
  const auto of_camera = notes.find(camera);
  if (of_camera == notes.end()) return result;
  for (const NoteList::Entry& each : of_camera->second.entries())
    if (each.wall.meets(wall)) result.push_back({camera, each.wall, each.why});
  return result;
}

std::string encode_notes(const CameraId& camera, const NoteList& notes, const SecretKey* master) {
  std::string body;
  ByteWriter writer(body);
  for (const NoteList::Entry& each : notes.entries()) {
    writer.fixed(static_cast<std::uint64_t>(each.wall.from));
    writer.fixed(static_cast<std::uint64_t>(each.wall.to));
    writer.fixed(each.why);
  }
  return seal_row(kNotesVersion, std::string(kNotesBound) + encode(camera), std::move(body), master);
}

std::optional<NoteList> decode_notes(const CameraId& camera, std::string_view bytes,
                                     const SecretKey* master) {
  const auto body = open_row(kNotesVersion, std::string(kNotesBound) + encode(camera), bytes, master);
  if (!body || body->size() % kNoteBytes != 0 || body->size() / kNoteBytes > kMostNotes) return std::nullopt;
  ByteReader reader(*body);
  NoteList notes;
  std::vector<NoteList::Entry> written;
  while (reader.left() > 0) {
    NoteList::Entry& entry = written.emplace_back();
    entry.wall.from = static_cast<std::int64_t>(reader.fixed<std::uint64_t>());
    entry.wall.to = static_cast<std::int64_t>(reader.fixed<std::uint64_t>());
    entry.why = reader.fixed<std::uint8_t>();
    if (entry.wall.to < entry.wall.from) return std::nullopt;
    notes.add(entry);
  }
  if (notes.entries() != written) return std::nullopt;
  return notes;
}

}  // namespace vigil::history
