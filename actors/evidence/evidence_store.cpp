#include "actors/evidence/evidence_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <iterator>
#include <limits>
#include <system_error>
#include <vector>

#include "base/durable.h"
#include "base/timestamp.h"
#include "base/writable.h"
#include "media/media.h"
#include "media/packet_history.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kExtensions = {".jpg", ".mp4", ".mkv"};
constexpr std::string_view kStill = kExtensions[0];
/// "20260801T100012.480Z", before the first '-'.
constexpr std::size_t kTimeLength = 20;
/// File systems take names of 255 bytes.
constexpr std::size_t kMostOfAName = 100;
/// What names the folder, before what is wrong with it.
constexpr std::string_view kDir = "evidence.dir: ";
constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
/// As long as a retention clock waits until it believes the machine's.
constexpr base::Duration kPatience = config::RetentionClock::Options().patience;
/// Ages of files whose times are to come; so much may be forgotten with every start.
constexpr std::string_view kAges = ".ages";
constexpr base::Duration kBetweenNotes = std::chrono::minutes(10);
/// Between two looks at the clock, while this process lives.
constexpr base::Duration kLongestStep = std::chrono::minutes(1);

/// One name of a path that means nothing but itself.
std::string safe(std::string_view name) {
  std::string result(name.substr(0, kMostOfAName));
  std::replace_if(
      result.begin(), result.end(),
      [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-';
      },
      '_');
  if (result.empty() || result.front() == '.') result.insert(result.begin(), '_');
  return result;
}

/// "2026-08-01T10:00:12.480Z" as "20260801T100012.480Z".
std::string compact(std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return time;
}

/// Whether a file's name is one of ours.
bool is_evidence(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string extension = file.extension().string();
  if (std::find(kExtensions.begin(), kExtensions.end(), extension) == kExtensions.end()) return false;
  if (name.size() <= kTimeLength || name[kTimeLength] != '-') return false;
  std::string time = name.substr(0, kTimeLength);
  for (const std::size_t at : {4U, 7U}) time.insert(at, 1, '-');
  for (const std::size_t at : {13U, 16U}) time.insert(at, 1, ':');
  const auto parsed = base::parse_rfc3339(time);
  // What is not written as we write it is not ours.
  return parsed && base::format_rfc3339(*parsed) == time;
}

base::Clock::WallTime wall_time(fs::file_time_type time) {
  return std::chrono::time_point_cast<base::Clock::WallTime::duration>(std::chrono::file_clock::to_sys(time));
}

fs::file_time_type file_time(base::Clock::WallTime time) {
  return std::chrono::file_clock::from_sys(time);
}

std::string mebibytes_text(std::uintmax_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

/// What is directly in a folder; nothing if it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    entries.push_back(*each);
  return entries;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code none;
  return entry.symlink_status(none).type() == fs::file_type::directory;
}

}  // namespace

EvidenceStore::EvidenceStore(Options options, config::RetentionClock& clock)
    : options_(std::move(options)), clock_(clock), seen_(clock.now()) {
  try {
    base::make_folders(options_.dir);
  } catch (const base::FileError& error) {
    failure_ = std::string(kDir) + error.what();
    return;
  }
  if (const std::string why = base::why_unwritable(options_.dir); !why.empty())
    failure_ = std::string(kDir) + options_.dir.string() + ": cannot be written: " + why;
  make_private(options_.dir);
  noted_ = read_lived_ages(options_.dir / kAges);
  scan();
  try {
    make_room(0);
  } catch (const EvidenceError& problem) {
    failure_ = problem.what();
  }
  if (options_.clips != nullptr) scan_clips();
}

void EvidenceStore::scan() {
  for (const fs::directory_entry& camera : entries_of(options_.dir)) {
    if (!is_folder(camera)) continue;
    for (const fs::directory_entry& day : entries_of(camera.path())) {
      if (is_folder(day)) scan_day(day.path());
    }
  }
}

void EvidenceStore::scan_day(const fs::path& day) {
  for (const fs::directory_entry& file : entries_of(day)) {
    std::error_code error;
    if (file.symlink_status(error).type() != fs::file_type::regular) continue;
    if (file.path().filename().string().starts_with(base::kUnfinished)) {
      fs::remove(file.path(), error);
      continue;
    }
    if (!is_evidence(file.path())) continue;
    const std::uintmax_t size = file.file_size(error);
    const auto kept = wall_time(file.last_write_time(error));
    if (error) continue;
    make_private(day.parent_path());
    make_private(day);
    make_private(file.path());
    const fs::path path = file.path().lexically_relative(options_.dir);
    const std::string stem = fs::path(path).replace_extension().string();
    // What belongs together goes together.
    const auto known = kept_.try_emplace(stem, kept).first;
    Pair& pair = pairs_[{known->second, stem}];
    pair.sizes[path.extension().string()] = size;
    // The clock was wrong then, or is wrong now: all that is known is how long processes lived with it.
    if (known->second > seen_) {
      const auto noted = noted_.find(stem);
      pair.since = noted == noted_.end() ? base::Duration(0) : -noted->second;
    }
    bytes_ += size;
  }
}

void EvidenceStore::scan_clips() {
  for (const auto& [key, pair] : pairs_)
    for (const auto& [extension, size] : pair.sizes)
      if (extension != kStill) unread_.push_back(key.second + extension);
}

void EvidenceStore::shows(const fs::path& clip, const ClipNote& note) {
  if (options_.clips == nullptr) return;
  const std::string stem = fs::path(clip).replace_extension().string();
  const auto known = kept_.find(stem);
  if (known == kept_.end()) return;
  const auto& sizes = pairs_.at({known->second, stem}).sizes;
  const std::string still = stem + std::string(kStill);
  options_.clips->add(stem, note, clip.string(), sizes.contains(std::string(kStill)) ? still : "");
}

void EvidenceStore::forget(const std::string& stem) {
  if (options_.clips != nullptr) options_.clips->remove(stem);
}

void EvidenceStore::read_next() {
  if (unread_.empty()) return;
  const std::string clip = std::move(unread_.back());
  unread_.pop_back();
  try {
    const auto note = parse_clip_note(media::note_of(options_.dir / clip));
    // It lies where this camera's do, or it is not believed.
    if (note && *fs::path(clip).begin() == safe(note->camera.camera)) shows(clip, *note);
  } catch (const media::Error&) {
    // It is damaged, or gone: there is nothing to be found.
  }
}

void EvidenceStore::make_private(const fs::path& path) {
  std::error_code error;
  const fs::perms modes = fs::status(path, error).permissions();
  if (error || (modes & kOthers) == fs::perms::none) return;
  // Such as /tmp: what it would take from others is not the store's.
  if ((modes & fs::perms::sticky_bit) != fs::perms::none) {
    failure_ = std::string(kDir) + path.string() +
               ": is a folder that others use, too; evidence needs one of its own";
    return;
  }
  fs::permissions(path, kOthers, fs::perm_options::remove, error);
  if (error && failure_.empty())
    failure_ = std::string(kDir) + path.string() + ": others may be able to read it: " + error.message();
}

fs::path EvidenceStore::place(std::string_view camera, std::string_view rule, std::string_view episode,
                              base::Clock::WallTime still) {
  const std::string time = base::format_rfc3339(still);
  return fs::path(safe(camera)) / time.substr(0, 10) /
         (compact(time) + '-' + safe(rule) + '-' + safe(episode));
}

fs::path EvidenceStore::prepare(const fs::path& file) {
  fs::path path = options_.dir / file;
  try {
    base::make_folders(path.parent_path());
  } catch (const base::FileError& error) {
    throw EvidenceError(error.what());
  }
  make_private(path.parent_path().parent_path());
  make_private(path.parent_path());
  return path;
}

void EvidenceStore::make_room(std::uintmax_t bytes) {
  if (bytes > options_.budget) {
    throw EvidenceError("the clip is larger than what all may have together (evidence.budget)");
  }
  const std::uintmax_t needed = bytes == 0 ? 0 : options_.keep_free + bytes;
  const std::uintmax_t free = free_bytes();
  if (free + bytes_ < needed) {
    throw EvidenceError("the disk is nearly full (" + mebibytes_text(free) + " are free; a clip needs " +
                        mebibytes_text(needed) + ", since events come first)");
  }
  remove_oldest(options_.budget - bytes, needed);
  if (bytes_ + bytes > options_.budget) {
    throw EvidenceError("there is no room for it within evidence.budget: older files cannot be removed");
  }
  if (free_bytes() < needed) throw EvidenceError("the disk is nearly full, and what was removed is not free");
}

std::size_t EvidenceStore::remove_oldest(std::uintmax_t allowed, std::uintmax_t needed) {
  std::size_t removed = 0;
  for (auto entry = pairs_.begin(); entry != pairs_.end() && (bytes_ > allowed || free_bytes() < needed);) {
    const std::uintmax_t before = free_bytes();
    const bool takes_room = is_there(*entry);
    if (!remove(entry)) continue;
    ++removed;
    const std::uintmax_t after = free_bytes();
    // It is still open somewhere, or others were faster: what else goes would bring no more.
    if (after < needed && after <= before && takes_room) break;
  }
  return removed;
}

// Whether anything of it is, as far as this can tell.
bool EvidenceStore::is_there(const Pairs::value_type& entry) const {
  const auto& [key, pair] = entry;
  return std::any_of(pair.sizes.begin(), pair.sizes.end(), [&, &stem = key.second](const auto& file) {
    std::error_code none;
    return file.second > 0 && fs::exists(options_.dir / (stem + file.first), none);
  });
}

std::uintmax_t EvidenceStore::keep(const fs::path& file) {
  follow();
  const fs::path path = options_.dir / file;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error || !is_evidence(file)) throw EvidenceError(file.string() + ": is gone");
  make_private(path);
  const std::string stem = fs::path(file).replace_extension().string();
  const auto newest = pairs_.empty() ? seen_ : pairs_.rbegin()->first.first + std::chrono::microseconds(1);
  const auto known = kept_.try_emplace(stem, std::max(seen_, newest)).first;
  fs::last_write_time(path, file_time(known->second), error);
  Pair& pair = pairs_[{known->second, stem}];
  pair.since = lived_;
  pair.ours = true;
  std::uintmax_t& before = pair.sizes[file.extension().string()];
  bytes_ += size - before;
  before = size;
  return size;
}

void EvidenceStore::discard(const fs::path& file) {
  forget(fs::path(file).replace_extension().string());
  std::error_code error;
  fs::remove(options_.dir / file, error);
  if (error) {
    try {
      keep(file);
    } catch (const EvidenceError&) {
      // Nothing can be done with it, nor known of it.
    }
    return;
  }
  const auto known = kept_.find(fs::path(file).replace_extension().string());
  if (known == kept_.end()) return;
  auto entry = pairs_.find({known->second, known->first});
  const auto counted = entry->second.sizes.find(file.extension().string());
  if (counted == entry->second.sizes.end()) return;
  bytes_ -= counted->second;
  entry->second.sizes.erase(counted);
  if (entry->second.sizes.empty()) remove(entry);
}

// What the clock says beyond what this process can have lived through since it looked last is what it did not
// know before, as after a night's rest: none of it passed since anything was kept here.
void EvidenceStore::follow() {
  const base::Clock::WallTime now = clock_.now();
  const auto passed = std::chrono::duration_cast<base::Duration>(now - std::exchange(seen_, now));
  lived_ += std::clamp(passed, base::Duration(0), kLongestStep);
  if (passed <= kLongestStep) return;
  Pairs moved;
  for (auto entry = pairs_.begin(); entry != pairs_.end();) {
    auto& [key, pair] = *entry;
    if (!pair.ours || key.first >= now) {
      ++entry;
      continue;
    }
    auto node = pairs_.extract(entry++);
    node.key().first = std::min(now, node.key().first + passed);
    kept_[node.key().second] = node.key().first;
    for (const auto& [extension, size] : node.mapped().sizes) {
      std::error_code none;
      fs::last_write_time(options_.dir / (node.key().second + extension), file_time(node.key().first), none);
    }
    moved.insert(std::move(node));
  }
  pairs_.merge(moved);
}

bool EvidenceStore::is_old(const Pairs::value_type& entry) const {
  const auto& [key, pair] = entry;
  if (!pair.ours && lived_ < kPatience) return false;
  if (pair.since) return lived_ - *pair.since > options_.max_age;
  return seen_ - key.first > options_.max_age;
}

void EvidenceStore::note_ages() {
  if (lived_ - noted_at_ < kBetweenNotes) return;
  noted_at_ = lived_;
  LivedAges ages;
  for (auto entry = pairs_.rbegin(); entry != pairs_.rend() && entry->first.first > seen_; ++entry)
    if (entry->second.since) ages[entry->first.second] = lived_ - *entry->second.since;
  if (ages.empty() && noted_.empty()) return;
  const fs::path file = options_.dir / kAges;
  try {
    if (ages.empty()) {
      std::error_code none;
      fs::remove(file, none);
    } else {
      write_lived_ages(file, ages);
      make_private(file);
    }
    noted_ = std::move(ages);
  } catch (const base::FileError&) {
    // On a disk that is full, they are younger for the next process, and go for lack of room.
  }
}

void EvidenceStore::tidy() {
  follow();
  note_ages();
  for (auto entry = pairs_.begin(); entry != pairs_.end();) {
    if (is_old(*entry)) {
      remove(entry);
    } else {
      ++entry;
    }
  }
  given_ += remove_oldest(options_.budget, options_.keep_free / 2);
}

std::uintmax_t EvidenceStore::free_bytes() const {
  constexpr auto kUnknown = std::numeric_limits<std::uintmax_t>::max() / 2;
  if (options_.free_bytes) return options_.free_bytes().value_or(kUnknown);
  std::error_code error;
  const fs::space_info space = fs::space(options_.dir, error);
  return error ? kUnknown : space.available;
}

std::string EvidenceStore::shown(std::string text) const {
  const std::string folder = options_.dir.string() + '/';
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

// With all that belongs to it, and its folders when nothing else is in them.
bool EvidenceStore::remove(Pairs::iterator& entry) {
  auto& [key, pair] = *entry;
  const fs::path stem = key.second;
  forget(key.second);
  for (auto file = pair.sizes.begin(); file != pair.sizes.end(); file = pair.sizes.erase(file)) {
    std::error_code error;
    fs::remove(options_.dir / (key.second + file->first), error);
    if (error) {
      if (!pair.stuck) stuck_ = key.second + file->first + ": cannot be removed: " + error.message();
      pair.stuck = true;
      ++entry;
      return false;
    }
    bytes_ -= file->second;
  }
  std::error_code none;
  fs::remove(options_.dir / stem.parent_path(), none);
  fs::remove(options_.dir / stem.parent_path().parent_path(), none);
  kept_.erase(key.second);
  entry = pairs_.erase(entry);
  return true;
}

std::optional<std::string> EvidenceStore::take_news() {
  const std::size_t given = std::exchange(given_, 0);
  std::string news = std::exchange(stuck_, {});
  if (given > 0)
    news += (news.empty() ? "" : "; ") + std::string("the disk is nearly full: the oldest ") +
            std::to_string(given) + (given == 1 ? " clip was" : " clips were") +
            " removed, since events come first";
  return news.empty() ? std::nullopt : std::optional(std::move(news));
}

}  // namespace vigil::actors
