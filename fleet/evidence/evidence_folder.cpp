#include "fleet/evidence/evidence_folder.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "cluster/membership/fleet_keys.h"

namespace vigil::fleet {
namespace {

using base::Descriptor;

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTypes = {
    {{".jpg", "image/jpeg"}, {".mp4", "video/mp4"}, {".mkv", "video/x-matroska"}}};
constexpr std::size_t kParts = 3;
/// File systems take names of 255 bytes.
constexpr std::size_t kMostOfAPart = 255;

bool is_plain(std::string_view part) {
  return !part.empty() && part.size() <= kMostOfAPart && part.front() != '.' && cluster::is_key_part(part);
}

/// A file that is one, opened part by part; below 0: there is none.
Descriptor open_file(const std::filesystem::path& dir, const std::string& name) {
  if (dir.empty() || !is_evidence_name(name)) return Descriptor(-1);
  Descriptor at(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::string_view rest = name;
  while (at.number() >= 0) {
    const std::size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    if (slash == std::string_view::npos) {
      // One that is no file must not be waited for.
      Descriptor file(::openat(at.number(), part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
      struct stat status {};
      const bool is_file =
          file.number() >= 0 && ::fstat(file.number(), &status) == 0 && S_ISREG(status.st_mode);
      return is_file ? std::move(file) : Descriptor(-1);
    }
    at = Descriptor(::openat(at.number(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    rest.remove_prefix(slash + 1);
  }
  return at;
}

}  // namespace

bool is_evidence_name(std::string_view name) {
  std::size_t parts = 0;
  std::string_view last;
  for (std::string_view rest = name; parts <= kParts;) {
    const std::size_t slash = rest.find('/');
    last = rest.substr(0, slash);
    if (!is_plain(last)) return false;
    ++parts;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return parts == kParts && std::ranges::any_of(kTypes, [&](const auto& type) {
           return last.size() > type.first.size() && last.ends_with(type.first);
         });
}

std::string_view content_type_of(std::string_view name) {
  for (const auto& [extension, type] : kTypes)
    if (name.ends_with(extension)) return type;
  return "application/octet-stream";
}

std::optional<std::uint64_t> EvidenceFolder::size(const std::string& name) const {
  const Descriptor file = open_file(dir_, name);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.st_size);
}

std::optional<std::string> EvidenceFolder::read(const std::string& name, std::uint64_t offset,
                                                std::size_t bytes) const {
  const Descriptor file = open_file(dir_, name);
  if (file.number() < 0) return std::nullopt;
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(file.number(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace vigil::fleet
