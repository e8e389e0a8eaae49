#include "actors/alerts/outbox_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/durable.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStore = "store-";
constexpr std::string_view kDamaged = "damaged-";
constexpr std::string_view kUnfinished = ".tmp";
constexpr fs::perms kOwnersFolder = fs::perms::owner_all;
constexpr fs::perms kOwnersFile = fs::perms::owner_read | fs::perms::owner_write;

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// As RocksDB names its files.
bool is_database_file(const std::string& name) {
  for (const char* exact : {"CURRENT", "IDENTITY", "LOCK", "LOG"})
    if (name == exact) return true;
  for (const char* beginning : {"MANIFEST-", "OPTIONS-", "LOG.old."})
    if (name.starts_with(beginning)) return true;
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos || !is_digits(name.substr(0, dot))) return false;
  const std::string extension = name.substr(dot);
  return extension == ".log" || extension == ".sst" || extension == ".blob" || extension == ".dbtmp";
}

std::optional<std::uint64_t> store_number(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kStore) || !is_digits(name.substr(kStore.size()))) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + kStore.size(), name.data() + name.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

bool is_ours(const fs::path& path) {
  const std::string name = path.filename().string();
  return is_database_file(name) || name == "WATERMARK" || name == "lost+found" || name.starts_with(kStore) ||
         name.starts_with(kDamaged) || name.ends_with(kUnfinished);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> result;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    result.push_back(entry->path());
  if (error) throw OutboxError("outbox " + folder.string() + ": " + error.message());
  std::sort(result.begin(), result.end());
  return result;
}

template <class Do>
void as_outbox_error(const Do& act) {
  try {
    act();
  } catch (const base::FileError& error) {
    throw OutboxError(std::string("outbox ") + error.what());
  }
}

std::string utc_text(base::Clock::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data();
}

}  // namespace

void sync_folder(const fs::path& folder) {
  as_outbox_error([&] { base::sync(folder); });
}

OutboxFolder::OutboxFolder(fs::path path) : path_(std::move(path)) {
  as_outbox_error([&] { base::make_folders(path_); });
}

void OutboxFolder::fail(const std::string& what, const std::error_code& error) const {
  throw OutboxError("outbox " + path_.string() + ": " + what + ": " + error.message());
}

// What protects the files is the folder's mode: nobody else can reach them, whatever the process's umask let
// them begin with.
std::optional<std::string> OutboxFolder::make_private() const {
  const std::vector<fs::path> all = entries(path_);
  std::error_code error;
  const bool shared = !std::all_of(all.begin(), all.end(), is_ours);
  if (!shared) fs::permissions(path_, kOwnersFolder, error);
  std::optional<std::string> trouble;
  if (shared) trouble = "other files are in the folder, so that its mode is left as it is";
  if (error) trouble = "its mode cannot be set: " + error.message();
  const auto tighten = [&](const fs::path& path) {
    const fs::file_status status = fs::symlink_status(path, error);
    if (fs::is_regular_file(status)) fs::permissions(path, kOwnersFile, error);
    if (fs::is_directory(status)) fs::permissions(path, kOwnersFolder, error);
  };
  for (const fs::path& each : all) {
    if (!is_ours(each) || each.filename() == "lost+found") continue;
    tighten(each);
    if (!fs::is_directory(fs::symlink_status(each, error))) continue;
    for (const fs::path& inner : entries(each)) tighten(inner);
  }
  const auto mode = fs::status(path_, error).permissions();
  const auto others = fs::perms::group_all | fs::perms::others_all;
  return (mode & others) == fs::perms::none ? std::nullopt : trouble;
}

fs::path OutboxFolder::database() const {
  fs::path newest = path_;
  std::uint64_t highest = 0;
  for (const fs::path& each : entries(path_)) {
    const auto number = store_number(each);
    if (!number || *number < highest) continue;
    newest = each;
    highest = *number;
  }
  return newest;
}

bool OutboxFolder::has_database() const {
  std::error_code error;
  const fs::path database = this->database();
  if (fs::exists(database / "CURRENT", error)) return true;
  const std::vector<fs::path> files = entries(database);
  return std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
    if (!is_database_file(file.filename().string())) return false;
    return file.extension() == ".sst" || (file.extension() == ".log" && fs::file_size(file, error) > 0);
  });
}

std::uintmax_t OutboxFolder::database_bytes() const {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (const fs::path& file : entries(database())) {
    if (!is_database_file(file.filename().string())) continue;
    const std::uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += size;
  }
  return bytes;
}

fs::path OutboxFolder::make_next() const {
  const auto number = store_number(database()).value_or(0);
  fs::path next = path_ / (std::string(kStore) + std::to_string(number + 1) + std::string(kUnfinished));
  std::error_code error;
  fs::remove_all(next, error);
  fs::create_directory(next, error);
  if (error) fail("a new database cannot be made", error);
  fs::permissions(next, kOwnersFolder, error);
  return next;
}

fs::path OutboxFolder::make_scratch() const {
  fs::path scratch = path_ / ("scratch" + std::string(kUnfinished));
  std::error_code error;
  fs::remove_all(scratch, error);
  fs::create_directory(scratch, error);
  if (error) fail("a folder cannot be made", error);
  fs::permissions(scratch, kOwnersFolder, error);
  return scratch;
}

void OutboxFolder::replace(const fs::path& next) const {
  std::error_code error;
  fs::path name = next;
  fs::rename(next, name.replace_extension(), error);
  if (error) fail("the new database cannot take its place", error);
  sync_folder(path_);
}

std::optional<fs::path> OutboxFolder::tidy(base::Clock::WallTime now) const {
  const fs::path current = database();
  std::error_code error;
  std::optional<fs::path> aside;
  bool replaced_one_is_left = false;
  for (const fs::path& each : entries(path_)) {
    const std::string name = each.filename().string();
    if (name.ends_with(kUnfinished) && fs::is_directory(each, error)) fs::remove_all(each, error);
    if (store_number(each) && each != current) aside = set_aside(each, now);
    if (current != path_ && is_database_file(name)) replaced_one_is_left = true;
  }
  if (replaced_one_is_left) aside = set_aside(path_, now);
  return aside;
}

fs::path OutboxFolder::set_aside(const fs::path& database, base::Clock::WallTime now) const {
  std::error_code error;
  const std::string name = std::string(kDamaged) + utc_text(now);
  fs::path aside = path_ / name;
  for (int i = 2; fs::exists(aside, error); ++i) aside = path_ / (name + '-' + std::to_string(i));
  if (database == path_) {
    // The folder itself may be a mount point, and stays.
    fs::create_directory(aside, error);
    if (!error) fs::permissions(aside, kOwnersFolder, error);
    for (const fs::path& file : entries(path_))
      if (!error && is_database_file(file.filename().string()))
        fs::rename(file, aside / file.filename(), error);
  } else {
    fs::rename(database, aside, error);
  }
  if (error) fail("the damaged files cannot be set aside", error);
  sync_folder(path_);
  while (damaged().size() > kDamagedKept && forget_damaged(aside)) {
  }
  return aside;
}

std::vector<fs::path> OutboxFolder::damaged() const {
  std::vector<fs::path> all = entries(path_);
  std::erase_if(all, [](const fs::path& each) { return !each.filename().string().starts_with(kDamaged); });
  return all;
}

std::optional<fs::path> OutboxFolder::forget_damaged(const fs::path& kept) const {
  for (const fs::path& each : damaged()) {
    if (each == kept) continue;
    std::error_code error;
    fs::remove_all(each, error);
    if (error) fail("a folder of damaged files cannot be removed", error);
    return each;
  }
  return std::nullopt;
}

}  // namespace vigil::actors
