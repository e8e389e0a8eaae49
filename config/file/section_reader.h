// What turns a YAML map into one struct of the configuration, and every problem in it into a line. Of
// load.cpp and fit.cpp alone.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/timestamp.h"
#include "config/file/foreign_keys.h"
#include "config/file/named_keys.h"
#include "config/file/reading.h"
#include "config/file/substitute.h"
#include "config/schema/fields.h"
#include "config/values/curve_key.h"
#include "config/values/master_key.h"
#include "config/values/meant_name.h"
#include "config/values/source.h"

namespace vigil::config {

/// The visitor of `describe` that fills one struct from one YAML map.
class SectionReader {
 public:
  /// Fills `value` from `node` and checks the whole; `path` stands in messages.
  template <class S>
  static void read(Reading& reading, const YAML::Node& node, const std::string& path, S& value);

  SectionReader(Reading& reading, const YAML::Node& node, std::string path)
      : reading_(reading), node_(node), path_(std::move(path)) {
    if (node.IsNull()) return;
    if (!node.IsMap()) {
      reading_.report(node, (path_.empty() ? std::string("the file") : path_) + ": expected keys and values",
                      /*of_whole=*/path_.empty());
      return;
    }
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        reading_.report(entry.first, at("?") + ": expected a plain key");
        continue;
      }
      const std::string& key = entry.first.Scalar();
      const auto [first, is_new] = entries_.emplace(key, entry);
      if (!is_new) reading_.report_again(entry.first, first->second.first, at(key) + ':');
    }
  }

  /// Reports the keys that no field asked for. Call once, after `describe`.
  void finish() {
    for (const auto& [key, entry] : entries_) {
      if (known_.contains(key)) continue;
      std::string message = at(key) + ": unknown key";
      if (const auto here = in_place_of(key)) {
        message += "; " + std::string(*here);
      } else if (const auto meant = meant_name(key, known_)) {
        message += "; did you mean `" + *meant + "`?";
      } else {
        message += "; legal keys: ";
        for (const std::string& name : known_) message += (name == *known_.begin() ? "" : ", ") + name;
      }
      reading_.report(entry.first, std::move(message));
    }
  }

  bool has(const std::string& key) const { return entries_.contains(key); }
  const YAML::Node& node() const { return node_; }
  /// Where to point at for a key: at its value, or at the section if it is not there.
  const YAML::Node& where(const std::string& key) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? node_ : entry->second.second;
  }
  std::string at(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + '.' + std::string(key);
  }

  void field(const char* key, double& value, const Limits<double>& limits, const char*) {
    number(key, value, limits, "a number");
  }

  void field(const char* key, int& value, const Limits<int>& limits, const char*) {
    number(key, value, limits, "a whole number");
  }

  void field(const char* key, base::Duration& value, const Limits<base::Duration>& limits, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      const bool is_off = limits.off && node.Scalar() == kOff;
      const auto duration = is_off ? base::Duration{} : base::parse_duration(node.Scalar());
      const bool is_none = limits.off && duration == base::Duration{};
      if (!duration || (!is_none && *duration < limits.min) || *duration > limits.max) {
        return expected(node, key,
                        (limits.off ? "off, or a duration from " : "a duration from ") +
                            base::format_duration(limits.min) + " to " + base::format_duration(limits.max) +
                            (limits.min < 1s ? ", such as 500ms, 40s or 2m" : ", such as 40s or 2m"));
      }
      value = *duration;
    });
  }

  void field(const char* key, ByteSize& value, const Limits<ByteSize>& limits, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      const auto size = parse_byte_size(node.Scalar());
      if (!size || size->bytes < limits.min.bytes || size->bytes > limits.max.bytes) {
        return expected(node, key,
                        "an amount of bytes from " + format_byte_size(limits.min) + " to " +
                            format_byte_size(limits.max) + ", such as 64MiB or 10GiB");
      }
      value = *size;
    });
  }

  void field(const char* key, bool& value, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      if (node.Scalar() != "true" && node.Scalar() != "false") return expected(node, key, "true or false");
      value = node.Scalar() == "true";
    });
  }

  template <class E>
  requires std::is_enum_v<E>
  void field(const char* key, E& value, const char*) {
    scalar(key, [&](const YAML::Node& node) { enumerator(node, key, value); });
  }

  void field(const char* key, Confirmation& value, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      const std::string& text = node.Scalar();
      const std::size_t slash = text.find('/');
      const auto needed = parse_number<int>(text.substr(0, slash));
      const auto of = slash == std::string::npos ? std::nullopt : parse_number<int>(text.substr(slash + 1));
      if (!needed || !of || *needed < 1 || *of > 100 || *needed > *of) {
        return expected(node, key, "N/M with 1 <= N <= M <= 100, such as 2/3");
      }
      value = {*needed, *of};
    });
  }

  void field(const char* key, std::string& value, const Check& check, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      // A prompt and a title are the operator's own words, and a key has any characters: braces in them are
      // no variable's.
      if (check.legal == is_prompt || check.legal == is_title || check.legal == is_curve_key) {
        value = node.Scalar();
      } else if (auto text = reading_.substituted(node, at(key))) {
        value = std::move(text->value);
      } else {
        return;
      }
      if (reading_.is_open(node.Scalar())) return;
      if (!check.legal(value)) return expected(node, key, std::string(check.expected));
      const auto what = named_by(at(key));
      if (what && !value.empty()) reading_.look(node, at(key), *what, {value, value});
    });
  }

  void field(const char* key, std::filesystem::path& value, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      const auto no_path = [&](const std::string& given) {
        if (!(std::string_view(key) == "secret_key_file" && is_key_for_path(given)) &&
            !(named_by(at(key)) == Named::memory_key && is_master_key_for_path(given)))
          return false;
        reading_.report(node, at(key) + ": a key stands where its file is expected");
        return true;
      };
      // First as it stands: braces in a key are no variable's.
      if (no_path(node.Scalar())) return;
      if (std::string_view(key) == "password_file" && reading_.is_kept(node.Scalar())) {
        value = node.Scalar();
        return;
      }
      const auto text = reading_.substituted(node, at(key));
      if (!text || no_path(text->value)) return;
      // A path with a default has a meaning when it is empty.
      if (text->value.empty() && !value.empty()) return expected(node, key, "a path");
      value = text->value.empty() ? text->value : reading_.resolved(text->value);
      const auto what = value.empty() ? std::nullopt : named_by(at(key));
      if (what) reading_.look(node, at(key), *what, {value.string(), value.string()});
    });
  }

  void field(const char* key, MaskedText& value, const char*) {
    scalar(key, [&](const YAML::Node& node) { url(node, key, value); });
  }

  void field(const char* key, MaskedText& value, const Check& check, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      if (path_.starts_with("cameras.") && reading_.is_kept(node.Scalar())) {
        value = {node.Scalar(), "***"};
        return;
      }
      const auto text = reading_.substituted(node, at(key));
      if (!text) return;
      if (!reading_.is_open(node.Scalar()) && !check.legal(text->value))
        return expected(node, key, std::string(check.expected));
      value = {text->value, "***"};
    });
  }

  void field(const char* key, std::vector<std::string>& values, const Check& check, const char*) {
    sequence(key, std::string(check.expected), [&](const YAML::Node& item) {
      if (!check.legal(item.Scalar())) return expected(item, key, std::string(check.expected));
      if (std::find(values.begin(), values.end(), item.Scalar()) != values.end()) {
        return reading_.report(item, at(key) + ": `" + item.Scalar() + "` is there twice");
      }
      values.push_back(item.Scalar());
    });
  }

  void field(const char* key, std::optional<base::Clock::WallTime>& value, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      value = base::parse_rfc3339(node.Scalar());
      if (!value) expected(node, key, "a time such as 2026-08-01T18:00:00Z or 2026-08-01T20:00:00+02:00");
    });
  }

  void field(const char* key, std::vector<InputSettings>& inputs, const char*) {
    scalar(key, [&](const YAML::Node& node) {
      InputSettings input;
      url(node, key, input.url);
      inputs = {std::move(input)};
    });
  }

  void field(const char* key, PruningSettings& pruning, const char*) {
    scalar(key, [&](const YAML::Node& node) { preset(node, key, "", pruning); });
  }

  void field(const char* key, std::vector<Role>& roles, const char*) {
    if (find(key) != nullptr) roles.clear();
    sequence(key, alternatives<Role>(), [&](const YAML::Node& item) {
      Role role{};
      if (!enumerator(item, key, role)) return;
      if (std::find(roles.begin(), roles.end(), role) != roles.end()) {
        return reading_.report(item, at(key) + ": `" + item.Scalar() + "` is there twice");
      }
      roles.push_back(role);
    });
  }

  void field(const char* key, std::map<std::string, std::string>& labels, const char*) {
    const YAML::Node* node = find(key);
    if (node == nullptr || node->IsNull()) return;
    if (!node->IsMap()) return expected(*node, key, "names and texts");
    std::map<std::string, YAML::Node> seen;
    for (const auto& entry : *node) {
      if (!entry.first.IsScalar() || !entry.second.IsScalar()) {
        expected(entry.first, key, "names and texts");
        continue;
      }
      const std::string& name = entry.first.Scalar();
      const auto [first, is_new] = seen.emplace(name, entry.first);
      if (!is_new) reading_.report_again(entry.first, first->second, at(key) + '.' + name + ':');
      // Labels go out with every event, and a variable may hold a secret.
      if (has_variable(entry.second.Scalar())) {
        reading_.report(entry.second, at(key) + '.' + name +
                                          ": labels go out with every event, so no environment variable can "
                                          "stand in one; write the text itself");
        continue;
      }
      if (name == "tenant" && !is_name(entry.second.Scalar())) {
        expected(entry.second, "labels.tenant", std::string(kName.expected));
      }
      labels[name] = entry.second.Scalar();
    }
  }

  template <class S>
  void section(const char* key, S& value, const char*) {
    if (const YAML::Node* node = find(key)) read_section(*node, at(key), value);
  }

  /// A preset may stand for the whole.
  void section(const char* key, PruningSettings& pruning, const char* help) {
    const YAML::Node* node = find(key);
    if (node == nullptr || !node->IsScalar()) return section<PruningSettings>(key, pruning, help);
    preset(*node, key, ", or keys and values", pruning);
  }

  /// What is said of forms takes the place of all of them.
  void section(const char* key, FormSettings& forms, const char* help) {
    const YAML::Node* node = find(key);
    if (node != nullptr && node->IsMap()) forms = {};
    section<FormSettings>(key, forms, help);
  }

  template <class S>
  void list(const char* key, std::vector<S>& values, const char*) {
    const YAML::Node* node = find(key);
    if (node == nullptr || node->IsNull()) return;
    if (!node->IsSequence()) return expected(*node, key, "a list (lines that start with `- `)");
    values.clear();
    for (const YAML::Node& item : *node) {
      const std::string path = at(key) + '[' + std::to_string(values.size()) + ']';
      read_section(item, path, values.emplace_back());
    }
  }

  template <class S>
  void named(const char* key, std::vector<S>& values, const S& prototype, const char*) {
    const YAML::Node* node = find(key);
    if (node == nullptr || node->IsNull()) return;
    if (!node->IsMap()) return expected(*node, key, "a name and settings for each");
    std::map<std::string, YAML::Node> seen;
    for (const auto& entry : *node) {
      if (!entry.first.IsScalar()) {
        expected(entry.first, key, std::string(kName.expected));
        continue;
      }
      const std::string& name = entry.first.Scalar();
      // What stands below it may be wrong, too.
      if (!is_name(name)) expected(entry.first, key, std::string(kName.expected));
      const auto [first, is_new] = seen.emplace(name, entry.first);
      if (!is_new) reading_.report_again(entry.first, first->second, at(key) + '.' + name + ':');
      S& value = values.emplace_back(prototype);
      value.name = name;
      read_section(entry.second, at(key) + '.' + name, value);
    }
  }

 private:
  template <class S>
  void read_section(const YAML::Node& node, const std::string& path, S& value) {
    read(reading_, node, path, value);
  }

  const YAML::Node* find(const char* key) {
    known_.insert(key);
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : &entry->second.second;
  }

  template <class F>
  void scalar(const char* key, F&& read) {
    const YAML::Node* node = find(key);
    if (node == nullptr) return;
    // Not what stands there, which may be a secret.
    if (is_bare_variable(*node)) return expected(*node, key, "one value; `{NAME}` needs quotes, \"{NAME}\"");
    if (!node->IsScalar()) return expected(*node, key, "one value");
    read(*node);
  }

  /// Whether `{NAME}` stands there without quotes, which is a map to YAML.
  static bool is_bare_variable(const YAML::Node& node) {
    if (!node.IsMap() || node.size() != 1) return false;
    const auto only = node.begin();
    return only->second.IsNull() && only->first.IsScalar() && has_variable('{' + only->first.Scalar() + '}');
  }

  /// Calls `read` for each item of a list of plain values.
  template <class F>
  void sequence(const char* key, const std::string& of, F&& read) {
    const YAML::Node* node = find(key);
    if (node == nullptr || node->IsNull()) return;
    if (!node->IsSequence()) return expected(*node, key, "a list, each " + of);
    for (const YAML::Node& item : *node) {
      if (item.IsScalar()) {
        read(item);
      } else {
        expected(item, key, of);
      }
    }
  }

  template <class E>
  static std::string alternatives() {
    std::string text;
    for (const auto& [name, each] : names_of(E{})) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }

  template <class E>
  bool enumerator(const YAML::Node& node, const char* key, E& value, const char* or_else = "") {
    for (const auto& [name, each] : names_of(E{})) {
      if (node.Scalar() == name) {
        value = each;
        return true;
      }
    }
    expected(node, key, "one of " + alternatives<E>() + or_else);
    return false;
  }

  void preset(const YAML::Node& node, const char* key, const char* or_else, PruningSettings& pruning) {
    Preset preset{};
    if (enumerator(node, key, preset, or_else)) set_preset(pruning, preset);
  }

  void url(const YAML::Node& node, const char* key, MaskedText& value) {
    if (reading_.is_kept(node.Scalar())) {
      value = {node.Scalar(), mask_credentials(substitute(node.Scalar(), reading_.environment).text.shown)};
      return;
    }
    auto text = reading_.substituted(node, at(key));
    if (!text) return;
    // Nothing of the value, which may be a password with a part of its URL missing.
    const auto fault = reading_.is_open(node.Scalar()) ? std::nullopt : source_fault(text->value);
    if (fault) return reading_.report(node, at(key) + ": " + *fault);
    if (has_scheme(text->value)) {
      value = {text->value, mask_credentials(text->shown)};
    } else {
      value.value = reading_.resolved(text->value);
      value.shown =
          std::filesystem::path(text->value).is_absolute() ? text->shown : reading_.resolved(text->shown);
    }
    if (is_file(value.value)) reading_.look(node, at(key), Named::video, value);
  }

  template <class T>
  void number(const char* key, T& value, const Limits<T>& limits, const char* kind) {
    scalar(key, [&](const YAML::Node& node) {
      const bool refers = limits.referable && has_variable(node.Scalar());
      const auto text = refers ? reading_.substituted(node, at(key)) : MaskedText{node.Scalar(), {}};
      if (!text || (refers && reading_.is_open(node.Scalar()))) return;
      const auto found = parse_number<T>(text->value);
      if (found && *found >= limits.min && *found <= limits.max) return void(value = *found);
      const std::string what = kind + (" from " + show(limits.min)) + " to " + show(limits.max);
      if (!refers) return expected(node, key, what);
      reading_.report(node, at(key) + ": expected a variable that is " + what + ", not `" + node.Scalar() +
                                "`, which is " + in_a_word(text->value));
    });
  }

  template <class T>
  static std::optional<T> parse_number(const std::string& text) {
    T value{};
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
  }

  static std::string show(auto value) {
    std::ostringstream text;
    text << value;
    return text.str();
  }

  void expected(const YAML::Node& node, std::string_view key, const std::string& what) {
    // Where a public key belongs, a secret one may stand by mistake.
    const bool secret =
        key == "url" || key == "username" || key == "password" || key == "allow" || key == "key";
    const std::string given = node.IsScalar() && !secret ? ", not `" + node.Scalar() + '`' : std::string();
    reading_.report(node, at(key) + ": expected " + what + given);
  }

  Reading& reading_;
  YAML::Node node_;
  std::string path_;
  std::map<std::string, std::pair<YAML::Node, YAML::Node>> entries_;
  std::set<std::string> known_;
};

}  // namespace vigil::config
