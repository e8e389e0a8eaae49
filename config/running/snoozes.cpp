#include "config/running/snoozes.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/sealed_text.h"
#include "base/timestamp.h"
#include "config/schema/fields.h"

namespace vigil::config {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 20;

bool same_target(const Snooze& a, const Snooze& b) {
  return a.camera == b.camera && a.rule == b.rule;
}

[[noreturn]] void fail(const std::filesystem::path& file) {
  throw std::runtime_error(file.string() + ": " + std::generic_category().message(errno));
}

}  // namespace

std::optional<Snooze> parse_target(std::string_view text) {
  const std::size_t slash = text.find('/');
  Snooze snooze;
  snooze.camera = text.substr(0, slash);
  if (slash != text.npos) snooze.rule = text.substr(slash + 1);
  if (!is_name(snooze.camera) || (slash != text.npos && !is_name(snooze.rule))) return std::nullopt;
  return snooze;
}

std::filesystem::path snooze_file(const std::filesystem::path& configuration) {
  return configuration.string() + ".snoozes";
}

Snoozes parse_snoozes(std::string_view text, const std::string& name) {
  Snoozes snoozes;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view entry = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (entry.empty() || entry.front() == '#') continue;
    const std::size_t blank = std::min(entry.find(' '), entry.size());
    auto snooze = parse_target(entry.substr(0, blank));
    const auto until = blank < entry.size() ? base::parse_rfc3339(entry.substr(blank + 1))
                                            : std::optional<base::Clock::WallTime>();
    if (!snooze || !until) {
      snoozes.faults.push_back(name + ':' + std::to_string(line) +
                               ": expected CAMERA TIME or CAMERA/RULE TIME; the line changes nothing");
      continue;
    }
    snooze->until = *until;
    put(snoozes.entries, std::move(*snooze));
  }
  return snoozes;
}

Snoozes read_snoozes(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) return {};
  const auto fault = [&file](const std::string& why) { return Snoozes{{}, {file.string() + ": " + why}}; };
  if (!std::filesystem::is_regular_file(status)) return fault("is no regular file; no snooze of it counts");
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error || bytes > kMostBytes) return fault("cannot be a file of snoozes; none of it counts");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return fault("cannot be read; no snooze of it counts");
  std::ostringstream text;
  text << stream.rdbuf();
  const std::string whole = text.str();
  const auto lines = base::unsealed(whole);
  if (!lines) {
    return fault(
        "does not fit its checksum, as if it was damaged or edited; none of it counts (remove it, and snooze "
        "again)");
  }
  return parse_snoozes(*lines, file.string());
}

void put(std::vector<Snooze>& entries, Snooze snooze) {
  const auto place = std::lower_bound(
      entries.begin(), entries.end(), snooze,
      [](const auto& a, const auto& b) { return std::pair(a.camera, a.rule) < std::pair(b.camera, b.rule); });
  if (place != entries.end() && same_target(*place, snooze)) {
    *place = std::move(snooze);
  } else {
    entries.insert(place, std::move(snooze));
  }
}

bool lift(std::vector<Snooze>& entries, const Snooze& target) {
  return std::erase_if(entries, [&target](const Snooze& each) {
           return each.camera == target.camera && (target.rule.empty() || each.rule == target.rule);
         }) > 0;
}

void forget_past(std::vector<Snooze>& entries, base::Clock::WallTime now) {
  std::erase_if(entries, [now](const Snooze& each) { return each.until <= now; });
}

bool has_target(const Settings& settings, const Snooze& target) {
  return std::any_of(
      settings.cameras.begin(), settings.cameras.end(), [&target](const CameraSettings& camera) {
        return camera.name == target.camera &&
               (target.rule.empty() ||
                std::any_of(camera.rules.begin(), camera.rules.end(),
                            [&target](const RuleSettings& rule) { return rule.name == target.rule; }));
      });
}

std::vector<Snooze> configured_snoozes(const Settings& settings) {
  std::vector<Snooze> entries;
  for (const CameraSettings& camera : settings.cameras) {
    if (camera.snooze_until) entries.push_back({camera.name, "", *camera.snooze_until});
    for (const RuleSettings& rule : camera.rules) {
      if (rule.snooze_until) entries.push_back({camera.name, rule.name, *rule.snooze_until});
    }
  }
  return entries;
}

std::optional<Snooze> snooze_of_camera(const std::vector<Snooze>& entries, const Snooze& target) {
  const auto entry = std::find_if(entries.begin(), entries.end(), [&target](const Snooze& each) {
    return each.camera == target.camera && each.rule.empty() && !target.rule.empty();
  });
  return entry == entries.end() ? std::nullopt : std::optional(*entry);
}

void apply_snoozes(CameraSettings& camera, const std::vector<Snooze>& entries) {
  const auto prolong = [](std::optional<base::Clock::WallTime>& until, base::Clock::WallTime time) {
    until = until ? std::max(*until, time) : time;
  };
  for (const Snooze& snooze : entries) {
    if (camera.name != snooze.camera) continue;
    if (snooze.rule.empty()) prolong(camera.snooze_until, snooze.until);
    for (RuleSettings& rule : camera.rules) {
      if (rule.name == snooze.rule) prolong(rule.snooze_until, snooze.until);
    }
  }
}

void apply_snoozes(Settings& settings, const std::vector<Snooze>& entries) {
  for (CameraSettings& camera : settings.cameras) apply_snoozes(camera, entries);
}

std::string print_snoozes(const std::vector<Snooze>& entries) {
  std::string text =
      "# Written by `vigil snooze`: a camera, or one of its rules, and until when it is silent.\n";
  for (const Snooze& each : entries) text += each.target() + ' ' + base::format_rfc3339(each.until) + '\n';
  return text;
}

void change_snoozes(const std::filesystem::path& file,
                    const std::function<void(std::vector<Snooze>&)>& change) {
  // What is locked stays: the file itself is replaced.
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  const base::Descriptor lock = base::open_file(folder, O_RDONLY | O_DIRECTORY);
  if (::flock(lock.number(), LOCK_EX) != 0) fail(folder);
  Snoozes now = read_snoozes(file);
  if (!now.faults.empty()) throw std::runtime_error(now.faults.front());
  const std::vector<Snooze> before = now.entries;
  change(now.entries);
  if (now.entries == before) return;
  base::NewFile written(file);
  written.write(base::sealed(print_snoozes(now.entries)));
  written.commit();
}

}  // namespace vigil::config
