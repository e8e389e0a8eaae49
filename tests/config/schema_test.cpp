// The published JSON Schema has the keys that the code reads, no more and no fewer.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "config/load.h"

namespace vigil::config {
namespace {

using nlohmann::json;

json schema() {
  std::ifstream file(VIGIL_SOURCE_DIR "/config/vigil.schema.json");
  return json::parse(file);
}

const json& resolve(const json& root, const json& node) {
  if (!node.contains("$ref")) return node;
  const std::string pointer = node.at("$ref").get<std::string>().substr(1);
  return root.at(json::json_pointer(pointer));
}

void collect(const json& root, const json& node, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [key, value] : node.at("properties").items()) {
    keys.push_back(prefix + key);
    const json& below = resolve(root, value);
    if (below.contains("properties")) {
      collect(root, below, prefix + key + '.', keys);
    } else if (below.contains("items") && resolve(root, below.at("items")).contains("properties")) {
      collect(root, resolve(root, below.at("items")), prefix + key + "[].", keys);
    } else if (below.contains("additionalProperties") && below.at("additionalProperties").contains("$ref")) {
      collect(root, resolve(root, below.at("additionalProperties")), prefix + key + ".*.", keys);
    }
  }
}

TEST(Schema, HasTheKeysOfTheCode) {
  const json root = schema();
  std::vector<std::string> keys;
  collect(root, root, "", keys);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, known_keys());
}

TEST(Schema, RefusesUnknownKeysWhereverTheCodeDoes) {
  const json root = schema();
  EXPECT_EQ(root.at("additionalProperties"), false);
  for (const auto& [name, definition] : root.at("$defs").items()) {
    EXPECT_EQ(definition.at("additionalProperties"), false) << name;
  }
  for (const char* section : {"defaults", "alerts", "metrics", "log"}) {
    EXPECT_EQ(root.at("properties").at(section).at("additionalProperties"), false) << section;
  }
}

template <class E>
std::vector<std::string> legal() {
  std::vector<std::string> names;
  for (const auto& [name, value] : names_of(E{})) names.emplace_back(name);
  return names;
}

TEST(Schema, ListsTheLegalValuesOfTheCode) {
  const json root = schema();
  const auto names = [&](const char* pointer) {
    return root.at(json::json_pointer(pointer)).get<std::vector<std::string>>();
  };
  EXPECT_EQ(names("/$defs/camera/properties/pace/enum"), legal<Pace>());
  EXPECT_EQ(names("/properties/defaults/properties/pace/enum"), legal<Pace>());
  EXPECT_EQ(names("/$defs/rule/properties/severity/enum"), legal<Severity>());
  EXPECT_EQ(names("/$defs/input/properties/roles/items/enum"), legal<Role>());
  EXPECT_EQ(names("/properties/log/properties/level/enum"), legal<LogLevel>());
  EXPECT_EQ(names("/properties/log/properties/format/enum"), legal<LogFormat>());
}

TEST(Schema, StatesTheDefaultsOfTheCode) {
  const json root = schema();
  const auto text = [&](const char* pointer) {
    return root.at(json::json_pointer(pointer)).get<std::string>();
  };
  const auto number = [&](const char* pointer) { return root.at(json::json_pointer(pointer)).get<double>(); };
  const StreamSettings stream;
  const RuleSettings rule;
  EXPECT_EQ(parse_duration(text("/$defs/window/properties/length/default")), stream.window.length);
  EXPECT_EQ(parse_duration(text("/$defs/window/properties/stride/default")), stream.window.stride);
  EXPECT_EQ(parse_duration(text("/$defs/reconnect/properties/min/default")), stream.reconnect.min);
  EXPECT_EQ(parse_duration(text("/$defs/reconnect/properties/max/default")), stream.reconnect.max);
  EXPECT_EQ(parse_duration(text("/$defs/camera/properties/stall_after/default")), stream.stall_after);
  EXPECT_EQ(number("/$defs/camera/properties/fps/default"), stream.fps);
  EXPECT_EQ(number("/$defs/rule/properties/threshold/default"), rule.threshold);
  EXPECT_EQ(text("/$defs/rule/properties/confirm/default"),
            std::to_string(rule.confirm.needed) + '/' + std::to_string(rule.confirm.of));
  EXPECT_EQ(parse_duration(text("/$defs/rule/properties/cooldown/default")), rule.cooldown);
  EXPECT_EQ(number("/$defs/rule/properties/max_tokens/default"), rule.max_tokens);
  const Settings settings;
  EXPECT_EQ(text("/properties/alerts/properties/bind/default"), settings.alerts.bind);
  EXPECT_EQ(parse_duration(text("/properties/alerts/properties/retention/default")),
            settings.alerts.retention);
  EXPECT_EQ(text("/properties/metrics/properties/listen/default"), settings.metrics.listen);
  EXPECT_EQ(parse_duration(text("/properties/shutdown_grace/default")), settings.shutdown_grace);
}

}  // namespace
}  // namespace vigil::config
