// The two visitors of `describe` that write: the effective configuration, and the list of keys.
#include <algorithm>

#include <yaml-cpp/yaml.h>

#include "base/timestamp.h"
#include "config/file/load.h"
#include "config/schema/fields.h"

namespace vigil::config {
namespace {

class Printer {
 public:
  explicit Printer(YAML::Emitter& out) : out_(out) {}

  void field(const char* key, double& value, const Limits<double>&, const char*) { put(key, value); }
  void field(const char* key, int& value, const Limits<int>&, const char*) { put(key, value); }
  void field(const char* key, base::Duration& value, const Limits<base::Duration>& limits, const char*) {
    const bool is_off = limits.off && value == base::Duration{};
    put(key, is_off ? std::string(kOff) : base::format_duration(value));
  }
  void field(const char* key, ByteSize& value, const Limits<ByteSize>&, const char*) {
    put(key, format_byte_size(value));
  }
  void field(const char* key, bool& value, const char*) { put(key, value); }
  void field(const char* key, std::string& value, const Check&, const char*) { put_text(key, value); }
  void field(const char* key, std::filesystem::path& value, const char*) { put_text(key, value.string()); }
  void field(const char* key, MaskedText& value, const char*) { put_text(key, value.shown); }
  void field(const char* key, MaskedText& value, const Check&, const char*) {
    if (!value.value.empty()) put_text(key, value.shown);
  }
  void field(const char* key, std::vector<std::string>& values, const Check&, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const std::string& value : values) out_ << YAML::DoubleQuoted << value;
    out_ << YAML::EndSeq;
  }
  void field(const char* key, std::optional<base::Clock::WallTime>& value, const char*) {
    if (value) put_text(key, base::format_rfc3339(*value));
  }
  void field(const char* key, Confirmation& value, const char*) {
    put(key, std::to_string(value.needed) + '/' + std::to_string(value.of));
  }
  template <class E>
  requires std::is_enum_v<E>
  void field(const char* key, E& value, const char*) { put(key, std::string(name_of(value))); }
  // `url` of a camera is short for `inputs`, which are printed.
  void field(const char*, std::vector<InputSettings>&, const char*) {}
  // `preset` is short for others, which are printed.
  void field(const char*, PruningSettings&, const char*) {}
  void field(const char* key, std::vector<Role>& roles, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
    for (const Role role : roles) out_ << std::string(name_of(role));
    out_ << YAML::EndSeq;
  }
  void field(const char* key, std::map<std::string, std::string>& labels, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginMap;
    for (const auto& [name, text] : labels) put_text(name, text);
    out_ << YAML::EndMap;
  }
  template <class S>
  void section(const char* key, S& value, const char*) {
    out_ << YAML::Key << key << YAML::Value;
    map(value);
  }
  template <class S>
  void list(const char* key, std::vector<S>& values, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginSeq;
    for (S& value : values) map(value);
    out_ << YAML::EndSeq;
  }
  template <class S>
  void named(const char* key, std::vector<S>& values, const S&, const char*) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginMap;
    for (S& value : values) {
      out_ << YAML::Key << value.name << YAML::Value;
      map(value);
    }
    out_ << YAML::EndMap;
  }
  template <class S>
  void map(S& value) {
    out_ << YAML::BeginMap;
    describe(*this, value);
    out_ << YAML::EndMap;
  }

 private:
  template <class T>
  void put(const std::string& key, const T& value) {
    out_ << YAML::Key << key << YAML::Value << value;
  }
  // Quoted, so that a text that looks like a number or a map stays a text.
  void put_text(const std::string& key, const std::string& value) {
    out_ << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
  }

  YAML::Emitter& out_;
};

class KeyLister {
 public:
  KeyLister(std::vector<std::string>& keys, std::string prefix) : keys_(keys), prefix_(std::move(prefix)) {}

  template <class... Anything>
  void field(const char* key, Anything&&...) {
    keys_.push_back(prefix_ + key);
  }
  template <class S>
  void section(const char* key, S& value, const char*) {
    descend(key, "", value);
  }
  template <class S>
  void list(const char* key, std::vector<S>&, const char*) {
    S value;
    descend(key, "[]", value);
  }
  template <class S>
  void named(const char* key, std::vector<S>&, const S&, const char*) {
    S value;
    descend(key, ".*", value);
  }

 private:
  template <class S>
  void descend(const char* key, const char* suffix, S& value) {
    keys_.push_back(prefix_ + key);
    KeyLister below(keys_, prefix_ + key + suffix + '.');
    describe(below, value);
  }

  std::vector<std::string>& keys_;
  std::string prefix_;
};

}  // namespace

std::string effective(const Settings& settings) {
  YAML::Emitter out;
  // As many digits as any number that somebody wrote; the rest is rounding.
  out.SetDoublePrecision(15);
  Settings copy = settings;
  Printer(out).map(copy);
  return std::string(out.c_str()) + '\n';
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  Settings settings;
  KeyLister lister(keys, "");
  describe(lister, settings);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace vigil::config
