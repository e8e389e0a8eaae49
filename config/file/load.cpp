#include "config/file/load.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <type_traits>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/one_line.h"
#include "base/utf8.h"
#include "config/file/document.h"
#include "config/file/fit.h"
#include "config/file/section_reader.h"

namespace vigil::config {
namespace {

/// Ten thousand cameras take a few.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

std::string join(const std::filesystem::path& file, const std::vector<Problem>& problems) {
  std::string text;
  const std::string name = base::one_line(file.string());
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += name + ':';
    if (problem.line > 0) text += std::to_string(problem.line) + ':' + std::to_string(problem.column) + ':';
    text += ' ' + base::one_line(problem.message);
  }
  return text;
}

/// They quote what stands in a file, with whatever characters.
std::vector<Problem> in_lines(std::vector<Problem> problems) {
  for (Problem& problem : problems) problem.message = base::one_line(problem.message);
  return problems;
}

/// What is usually wrong where the parser of YAML stumbles: its own words help nobody.
std::string yaml_fault(const std::string& text, const YAML::Mark& mark, const std::string& message) {
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= mark.line && std::getline(lines, line); ++i) {
  }
  const std::size_t indented = line.find_first_not_of(' ');
  if (mark.line >= 0 && indented != line.npos && line[indented] == '\t')
    return message + "; lines are indented with blanks, not with tabs";
  return message +
         "; a text with \": \" or \" #\" in it, or with one of ?!&*@%|>{}[] at its beginning, needs quotes";
}

/// The one problem of bytes that are no text: a parser of YAML would put other characters in their places,
/// and what is masked in one is not what is masked in the other.
std::optional<Problem> not_text(std::string_view text) {
  const std::optional<std::size_t> found = base::first_not_utf8(text);
  if (!found) return std::nullopt;
  const std::string_view before = text.substr(0, *found);
  const std::size_t newline = before.rfind('\n');
  int column = 1;
  for (std::size_t at = newline == before.npos ? 0 : newline + 1; at < before.size(); ++column)
    at += base::utf8_character(before, at);
  return Problem{static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, column,
                 "not UTF-8: in another encoding, or no text at all", /*of_whole=*/true};
}

/// The folders that a process makes for itself, unless something else has their names.
void look_at_folders(Reading& reading, const YAML::Node& root, const Settings& settings) {
  const auto look = [&](const char* section, const char* key, const std::filesystem::path& path) {
    const YAML::Node below = root.IsMap() ? root[section] : YAML::Node();
    const bool named = below.IsDefined() && below.IsMap() && below[key].IsDefined();
    reading.look(named ? below[key] : root, std::string(section) + '.' + key, Named::folder,
                 {path.string(), path.string()});
  };
  look("alerts", "outbox", settings.alerts.outbox);
  if (settings.evidence.enabled) look("evidence", "dir", settings.evidence.dir);
  if (settings.memory.enabled && !settings.memory.dir.empty()) look("memory", "dir", settings.memory.dir);
}

}  // namespace

template <class S>
void SectionReader::read(Reading& reading, const YAML::Node& node, const std::string& path, S& value) {
  const std::size_t before = reading.problems.size();
  SectionReader section(reading, node, path);
  describe(section, value);
  section.finish();
  check_present(reading, section, value);
  if constexpr (std::is_same_v<S, CameraSettings>) read_password(reading, section, value);
  if constexpr (std::is_same_v<S, Settings>) {
    share_rules(reading, section, value);
    check_addresses(reading, section, value);
  }
  // Defaults that stand in for what was wrong would only raise more complaints.
  if (reading.problems.size() == before) check_fit(reading, section, value);
}

ConfigError::ConfigError(const std::filesystem::path& file, std::vector<Problem> problems)
    : std::runtime_error(join(file, problems)), problems_(in_lines(std::move(problems))) {}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Nothing in this process writes to the environment.
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

namespace {

/// Reads a text with this, and throws what is wrong with it.
template <class Read>
void read_document(const std::string& text, const std::filesystem::path& file, Reading& reading,
                   Read&& read) {
  if (const auto problem = not_text(text)) throw ConfigError(file, {*problem});
  try {
    read(only_document(text, [&reading](const YAML::Node& node, const std::string& what) {
      reading.report(node, what, /*of_whole=*/true);
    }));
  } catch (const YAML::Exception& error) {
    reading.problems.push_back({error.mark.line + 1, error.mark.column + 1,
                                "not YAML: " + yaml_fault(text, error.mark, error.msg), /*of_whole=*/true});
  }
  if (reading.problems.empty()) return;
  std::stable_sort(reading.problems.begin(), reading.problems.end(), [](const Problem& a, const Problem& b) {
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  throw ConfigError(file, std::move(reading.problems));
}

}  // namespace

Settings parse(const std::string& text, const std::filesystem::path& file, const Environment& environment,
               const LookAt& look_at, Unset unset, Secrets secrets, Holds holds) {
  Reading reading{std::filesystem::absolute(file).parent_path(), environment, look_at, unset, secrets, holds};
  Settings settings;
  read_document(text, file, reading, [&](const YAML::Node& root) {
    SectionReader::read(reading, root, "", settings);
    // What the file leaves out lies beside it, too, from wherever it is started.
    settings.alerts.outbox = reading.resolved(settings.alerts.outbox.string());
    settings.evidence.dir = reading.resolved(settings.evidence.dir.string());
    look_at_folders(reading, root, settings);
  });
  return settings;
}

ClusterSettings parse_cluster(const std::string& text, const std::filesystem::path& file,
                              const Environment& environment, Unset unset) {
  const LookAt nobody;
  Reading reading{std::filesystem::absolute(file).parent_path(), environment, nobody, unset};
  ClusterSettings settings;
  read_document(text, file, reading, [&](const YAML::Node& root) {
    if (root.IsMap() && root["cluster"].IsDefined())
      SectionReader::read(reading, root["cluster"], "cluster", settings);
  });
  return settings;
}

Settings load(const std::filesystem::path& file, const Environment& environment, const LookAt& look_at,
              Unset unset, Secrets secrets) {
  return parse(read_text(file), file, environment, look_at, unset, secrets);
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError(file, {{0, 0, "is a folder, not a file"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const std::string why = std::generic_category().message(errno);
    throw ConfigError(
        file, {{0, 0, std::filesystem::exists(file, error) ? "cannot be read: " + why : "no such file"}});
  }
  // Of a device, say, there is no end.
  std::string text(kMostBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw ConfigError(file, {{0, 0, "cannot be read"}});
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMostBytes)
    throw ConfigError(file, {{0, 0, "is larger than 16 MiB, and so no configuration"}});
  return text;
}

}  // namespace vigil::config
