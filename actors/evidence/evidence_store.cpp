#include "actors/evidence/evidence_store.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>
#include <vector>

#include "config/timestamp.h"
#include "media/new_file.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kExtensions = {".jpg", ".mp4", ".mkv"};
/// "20260801T100012.480Z", before the first '-'.
constexpr std::size_t kTimeLength = 20;
/// File systems take names of 255 bytes.
constexpr std::size_t kMostOfAName = 100;

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

/// The time in a file's name, if it is one of ours.
std::optional<config::Clock::WallTime> time_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string extension = file.extension().string();
  if (std::find(kExtensions.begin(), kExtensions.end(), extension) == kExtensions.end()) return std::nullopt;
  if (name.size() <= kTimeLength || name[kTimeLength] != '-') return std::nullopt;
  std::string time = name.substr(0, kTimeLength);
  for (const std::size_t at : {4U, 7U}) time.insert(at, 1, '-');
  for (const std::size_t at : {13U, 16U}) time.insert(at, 1, ':');
  const auto parsed = config::parse_rfc3339(time);
  // What is not written as we write it is not ours.
  return parsed && config::format_rfc3339(*parsed) == time ? parsed : std::nullopt;
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

EvidenceStore::EvidenceStore(Options options, const config::Clock& clock)
    : options_(std::move(options)), clock_(clock) {
  std::error_code error;
  fs::create_directories(options_.dir, error);
  if (error) {
    failure_ = options_.dir.string() + ": cannot make the folder: " + error.message();
    return;
  }
  scan();
  try {
    remove_old();
    make_room(0);
  } catch (const EvidenceError& problem) {
    failure_ = problem.what();
  }
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
    if (file.path().filename().string().starts_with(media::kUnfinished)) {
      fs::remove(file.path(), error);
      continue;
    }
    const auto time = time_of(file.path());
    const std::uintmax_t size = file.file_size(error);
    if (!time || error) continue;
    files_.emplace(Key(*time, file.path().lexically_relative(options_.dir).string()), size);
    bytes_ += size;
  }
}

fs::path EvidenceStore::place(std::string_view camera, std::string_view rule, std::string_view episode,
                              config::Clock::WallTime still) {
  const std::string time = config::format_rfc3339(still);
  return fs::path(safe(camera)) / time.substr(0, 10) /
         (compact(time) + '-' + safe(rule) + '-' + safe(episode));
}

fs::path EvidenceStore::prepare(const fs::path& file) const {
  fs::path path = options_.dir / file;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    throw EvidenceError(file.parent_path().string() + ": cannot make the folder: " + error.message());
  return path;
}

void EvidenceStore::make_room(std::uintmax_t bytes) {
  if (bytes > options_.budget) {
    throw EvidenceError("the clip is larger than what all may have together (evidence.budget)");
  }
  while (!files_.empty() && bytes_ + bytes > options_.budget) remove_oldest();
}

std::uintmax_t EvidenceStore::keep(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(options_.dir / file, error);
  const auto time = time_of(file);
  if (error || !time) throw EvidenceError(file.string() + ": is gone");
  files_[Key(*time, file.string())] = size;
  bytes_ += size;
  return size;
}

void EvidenceStore::remove_old() {
  const config::Clock::WallTime oldest = clock_.wall() - options_.max_age;
  while (!files_.empty() && files_.begin()->first.first < oldest) remove_oldest();
}

std::string EvidenceStore::shown(std::string text) const {
  const std::string folder = options_.dir.string() + '/';
  for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at))
    text.erase(at, folder.size());
  return text;
}

// With all that belongs to it, and its folders when nothing else is in them.
void EvidenceStore::remove_oldest() {
  const fs::path stem = fs::path(files_.begin()->first.second).replace_extension();
  while (!files_.empty()) {
    const auto& [key, size] = *files_.begin();
    const fs::path file = key.second;
    if (fs::path(file).replace_extension() != stem) break;
    std::error_code error;
    fs::remove(options_.dir / file, error);
    if (error) throw EvidenceError(file.string() + ": cannot be removed: " + error.message());
    bytes_ -= size;
    files_.erase(files_.begin());
  }
  std::error_code none;
  fs::remove(options_.dir / stem.parent_path(), none);
  fs::remove(options_.dir / stem.parent_path().parent_path(), none);
}

}  // namespace vigil::actors
