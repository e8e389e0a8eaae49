#include "config/load.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "config/fit.h"
#include "config/section_reader.h"

namespace vigil::config {
namespace {

std::string join(const std::filesystem::path& file, const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += file.string() + ':';
    if (problem.line > 0) text += std::to_string(problem.line) + ':' + std::to_string(problem.column) + ':';
    text += ' ' + problem.message;
  }
  return text;
}

/// The one document that a text holds; what others hold is a problem. Empty ones are none: "---" may stand at
/// the end, and around comments.
YAML::Node only_document(const std::string& text, Reading& reading) {
  std::optional<YAML::Node> found;
  for (const YAML::Node& document : YAML::LoadAll(text)) {
    if (document.IsNull()) continue;
    if (!found) {
      found = document;
    } else {
      reading.report(document, "another document, behind the one that begins in line " +
                                   std::to_string(found->Mark().line + 1) + "; a file holds one");
    }
  }
  return found.value_or(YAML::Node());
}

}  // namespace

template <class S>
void SectionReader::read(Reading& reading, const YAML::Node& node, const std::string& path, S& value) {
  const std::size_t before = reading.problems.size();
  SectionReader section(reading, node, path);
  describe(section, value);
  section.finish();
  check_present(reading, section, value);
  if constexpr (std::is_same_v<S, Settings>) share_rules(reading, section, value);
  // Defaults that stand in for what was wrong would only raise more complaints.
  if (reading.problems.size() == before) check_fit(reading, section, value);
}

ConfigError::ConfigError(const std::filesystem::path& file, std::vector<Problem> problems)
    : std::runtime_error(join(file, problems)), problems_(std::move(problems)) {}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // Nothing in this process writes to the environment.
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Settings parse(const std::string& text, const std::filesystem::path& file, const Environment& environment) {
  Reading reading{std::filesystem::absolute(file).parent_path(), environment, {}};
  Settings settings;
  try {
    SectionReader::read(reading, only_document(text, reading), "", settings);
  } catch (const YAML::Exception& error) {
    reading.problems.push_back({error.mark.line + 1, error.mark.column + 1, "not YAML: " + error.msg});
  }
  if (!reading.problems.empty()) {
    std::stable_sort(reading.problems.begin(), reading.problems.end(),
                     [](const Problem& a, const Problem& b) {
                       return std::pair(a.line, a.column) < std::pair(b.line, b.column);
                     });
    throw ConfigError(file, std::move(reading.problems));
  }
  return settings;
}

Settings load(const std::filesystem::path& file, const Environment& environment) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError(file, {{0, 0, "is a folder, not a file"}});
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw ConfigError(file,
                      {{0, 0, std::filesystem::exists(file, error) ? "cannot be read" : "no such file"}});
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return parse(text.str(), file, environment);
}

}  // namespace vigil::config
