#include "config/file/fleet.h"

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "config/file/document.h"
#include "config/file/fit.h"
#include "config/file/substitute.h"
#include "config/schema/fields.h"

namespace vigil::config {
namespace {

constexpr std::array<std::string_view, 3> kOfFleet = {"cameras", "defaults", "rules"};

YAML::Node document(const std::string& text) {
  try {
    return only_document(text,
                         [](const YAML::Node&, const std::string& what) { throw std::runtime_error(what); });
  } catch (const YAML::Exception& error) {
    throw std::runtime_error("not YAML: " + error.msg);
  }
}

/// Writes what a document says in one form. Aliases are written out, so that one that names itself, or many
/// that name each other, would have no end: they may say some times what the text has.
class Normaliser {
 public:
  explicit Normaliser(const std::string& text)
      : most_(std::clamp(kTimes * text.size(), kAlwaysBytes, kMostBytes)) {}

  std::string text_of(const YAML::Node& node) {
    std::string out;
    if (++depth_ > kDeepest) throw std::runtime_error("it is nested too deeply");
    if (node.IsSequence()) {
      out += '[';
      for (const YAML::Node& item : node) out += text_of(item);
      out += ']';
    } else if (node.IsMap()) {
      std::map<std::string, std::string> entries;
      for (const auto& entry : node) entries[entry.first.Scalar()] += text_of(entry.second);
      out += '{';
      for (const auto& [key, value] : entries) out += counted(key) + value;
      out += '}';
    } else {
      out += node.IsScalar() ? counted(node.Scalar()) : "~";
    }
    --depth_;
    return out;
  }

  /// With its length before it, no text can be taken for another.
  std::string counted(std::string_view text) {
    written_ += text.size() + 1;
    if (written_ > most_) throw std::runtime_error("it says too much");
    std::string out = std::to_string(text.size()) + ':';
    out += text;
    return out;
  }

 private:
  static constexpr int kDeepest = 64;
  static constexpr std::size_t kTimes = 16;
  static constexpr std::size_t kAlwaysBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  std::size_t most_;
  int depth_ = 0;
  std::size_t written_ = 0;
};

std::string without_variables(std::string_view text) {
  return substitute(text, [](const std::string&) { return std::string(); }).text.value;
}

/// A query without the values that a reference was all of.
std::string without_empty_values(std::string_view url) {
  const std::size_t query = url.find('?');
  std::string kept(url.substr(0, query));
  if (query == url.npos) return kept;
  char separator = '?';
  for (std::string_view rest = url.substr(query + 1); !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of("&;"), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (part.empty() || part.ends_with('=')) continue;
    kept += separator;
    kept += part;
    separator = '&';
  }
  return kept;
}

bool has_literal_secret(const std::string& url) {
  const std::string text = without_variables(url);
  if (!has_scheme(text)) return false;
  const std::string_view host = behind_credentials(text);
  if (has_credentials(text)) {
    const std::size_t begin = base::authority_begin(text);
    const std::string_view user =
        std::string_view(text).substr(begin, static_cast<std::size_t>(host.data() - text.data()) - begin);
    const std::size_t colon = user.find(':');
    // What is left of a user whose password is a reference ends in "@".
    if (colon != user.npos && colon + 2 < user.size()) return true;
  }
  const std::string rest = without_empty_values("http://" + std::string(host));
  return mask_credentials(rest) != rest;
}

class LiteralSecrets {
 public:
  std::vector<Problem> look(const YAML::Node& root) {
    if (!root.IsMap()) return {};
    if (const YAML::Node cameras = root["cameras"]; cameras.IsDefined() && cameras.IsMap())
      for (const auto& entry : cameras)
        if (entry.second.IsMap()) camera("cameras." + entry.first.Scalar(), entry.second);
    if (const YAML::Node cluster = root["cluster"]; cluster.IsDefined() && cluster.IsMap())
      if (const YAML::Node registry = cluster["registry"]; registry.IsDefined() && registry.IsMap())
        password("cluster.registry", registry);
    return std::move(problems_);
  }

 private:
  void camera(const std::string& path, const YAML::Node& node) {
    password(path, node);
    url(path, node);
    const YAML::Node inputs = node["inputs"];
    if (!inputs.IsDefined() || !inputs.IsSequence()) return;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].IsMap()) url(path + ".inputs[" + std::to_string(i) + ']', inputs[i]);
  }
  void password(const std::string& path, const YAML::Node& node) {
    const YAML::Node value = node["password"];
    if (value.IsDefined() && value.IsScalar() && !without_variables(value.Scalar()).empty())
      report(value, path +
                        ".password: a password stands here as it is; write a reference, such as \"{NAME}\"" +
                        (path.starts_with("cameras.") ? ", or `password_file`" : ""));
  }
  void url(const std::string& path, const YAML::Node& node) {
    const YAML::Node value = node["url"];
    if (value.IsDefined() && value.IsScalar() && has_literal_secret(value.Scalar()))
      report(value,
             path +
                 ".url: a password, or what looks like one, stands here as it is; write a reference, such "
                 "as \"{NAME}\", in its place");
  }
  void report(const YAML::Node& node, std::string message) {
    problems_.push_back({node.Mark().line + 1, node.Mark().column + 1, std::move(message)});
  }

  std::vector<Problem> problems_;
};

}  // namespace

bool is_of_fleet(std::string_view key) {
  return std::find(kOfFleet.begin(), kOfFleet.end(), key) != kOfFleet.end();
}

bool is_in_registry(const std::string& own) {
  try {
    const YAML::Node root = document(own);
    const YAML::Node cluster = root.IsMap() ? root["cluster"] : YAML::Node();
    const YAML::Node from = cluster.IsMap() ? cluster["configuration"] : YAML::Node();
    return from.IsScalar() && from.Scalar() == name_of(ConfigurationFrom::registry);
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string fleet_part(const std::string& text) {
  const YAML::Node root = document(text);
  std::string out;
  Normaliser normaliser(text);
  if (!root.IsMap()) return out;
  for (const std::string_view key : kOfFleet) {
    const YAML::Node value = root[std::string(key)];
    // A section that is empty says what none says.
    if (!value.IsDefined() || value.IsNull()) continue;
    out += normaliser.counted(key) + normaliser.text_of(value);
  }
  return out;
}

std::vector<Problem> literal_secrets(const std::string& text) {
  return LiteralSecrets().look(document(text));
}

std::string without_comments(const std::string& text) {
  YAML::Emitter out;
  out << document(text);
  return std::string(out.c_str()) + '\n';
}

std::string together(const std::string& own, const std::string& fleet, const std::filesystem::path& file) {
  const YAML::Node mine = document(own);
  YAML::Node all = document(fleet);
  std::vector<Problem> problems;
  for (const auto& entry : mine) {
    const std::string& key = entry.first.Scalar();
    if (is_of_fleet(key))
      problems.push_back(
          {entry.first.Mark().line + 1, entry.first.Mark().column + 1, key + std::string(kInRegistry)});
    all[key] = entry.second;
  }
  if (!problems.empty()) throw ConfigError(file, std::move(problems));
  YAML::Emitter out;
  out << all;
  return std::string(out.c_str()) + '\n';
}

}  // namespace vigil::config
