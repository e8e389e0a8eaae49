// What reading one file shares. Of load.cpp and fit.cpp alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/file/load.h"
#include "config/file/substitute.h"

namespace vigil::config {

/// Where problems go, and what texts are resolved against.
struct Reading {
  std::filesystem::path folder;
  const Environment& environment;
  const LookAt& look_at;
  const Unset unset = Unset::problem;
  const Secrets secrets = Secrets::resolved;
  const Holds holds = Holds::all;
  std::vector<Problem> problems = {};

  void report(const YAML::Node& node, std::string message, bool of_whole = false) {
    const YAML::Mark mark = node.Mark();
    problems.push_back({mark.line + 1, mark.column + 1, std::move(message), of_whole});
  }

  /// Reports what is wrong with what a file names, if anybody looks.
  void look(const YAML::Node& node, const std::string& path, Named what, const MaskedText& name) {
    if (!look_at) return;
    for (const std::string& fault : look_at(what, name))
      report(node, std::string(path).append(": ").append(fault));
  }

  /// `what` is there twice.
  void report_again(const YAML::Node& node, const YAML::Node& first, const std::string& what) {
    report(node, what + " is there twice; the first is in line " + std::to_string(first.Mark().line + 1));
  }

  std::optional<MaskedText> substituted(const YAML::Node& node, const std::string& path) {
    Substituted result = substitute(node.Scalar(), environment);
    if (is_open(node.Scalar())) return MaskedText{node.Scalar(), std::move(result.text.shown)};
    for (const std::string& name : result.missing) {
      std::string message = path;
      message.append(": the environment variable ").append(name).append(" is not set");
      report(node, std::move(message));
    }
    if (!result.missing.empty()) return std::nullopt;
    return std::move(result.text);
  }

  /// Whether nothing is known of a text, since a variable in it is not set and need not be.
  bool is_open(std::string_view text) const {
    return unset == Unset::accepted && !substitute(text, environment).missing.empty();
  }

  /// Whether a text of a camera stays a reference; and whether what a text will be cannot be looked at.
  bool is_kept(std::string_view text) const { return secrets == Secrets::kept && has_variable(text); }
  bool is_unknown(std::string_view text) const { return is_open(text) || is_kept(text); }

  std::string resolved(const std::string& path_text) const {
    const std::filesystem::path path(path_text);
    return path.is_absolute() ? path_text : (folder / path).lexically_normal().string();
  }
};

}  // namespace vigil::config
