// From a changed file to what changes in a running process.
#include "config/running/reload.h"

#include <fstream>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/file/load.h"
#include "config/running/changes.h"

namespace vigil::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kSite =
    "model: m\n"
    "rules: [{name: fire, prompt: p, labels: {zone: a}}]\n"
    "cameras:\n"
    "  gate: {url: 'rtsp://h/gate', username: u, password: '{SECRET}', rules: [{name: car, prompt: p}]}\n"
    "  yard: {url: yard.mp4, labels: {zone: a}}\n"
    "  dock: {url: dock.mp4, enabled: false, rules: [{name: car, prompt: p}]}\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

Settings site(const std::string& text = kSite, const std::string& secret = "hunter2") {
  return parse(text, "/etc/vigil/site.yaml", [&](const std::string& name) {
    return name == "SECRET" ? std::optional(secret) : std::nullopt;
  });
}

TEST(Changes, AreNoneWhereNothingDiffers) {
  EXPECT_TRUE(compare(site(), site()).empty());
  EXPECT_EQ(describe_changes({}), "nothing");
  EXPECT_TRUE(
      compare(site(), site(replaced(kSite, "model: m\n", "# words\nmodel: m\nshutdown_grace: 10000ms\n")))
          .empty())
      << "comments, and the default in other words";
}

TEST(Changes, NameEachCameraOnce) {
  const Settings wanted = site(
      "model: m\n"
      "cameras:\n"
      "  dock: {url: dock.mp4, rules: [{name: car, prompt: p}]}\n"
      "  gate: {url: 'rtsp://h/gate', username: u, password: '{SECRET}', rules: [{name: car, prompt: q}]}\n"
      "  roof: {url: roof.mp4, rules: [{name: car, prompt: p}]}\n");
  const Changes changes = compare(site(), wanted);
  EXPECT_THAT(changes.added, ElementsAre("dock", "roof"));
  EXPECT_THAT(changes.removed, ElementsAre("yard"));
  EXPECT_THAT(changes.altered, ElementsAre("gate"));
  EXPECT_THAT(changes.restarted, IsEmpty());
  EXPECT_THAT(changes.fixed, IsEmpty());
  EXPECT_EQ(describe_changes(changes), "added dock, roof; removed yard; altered gate");
}

TEST(Changes, TellAnotherStreamFromOtherRules) {
  const auto of = [](const std::string& what, const std::string& by) {
    return compare(site(), site(replaced(kSite, what, by)));
  };
  EXPECT_THAT(of("h/gate", "h/door").restarted, ElementsAre("gate"));
  EXPECT_THAT(compare(site(), site(kSite, "other")).restarted, ElementsAre("gate")) << "a new password";
  EXPECT_THAT(of("model: m", "model: m\ndefaults: {fps: 4}").restarted, ElementsAre("gate", "yard"));
  EXPECT_THAT(of("url: yard.mp4", "url: yard.mp4, window: {stride: 4s}").restarted, ElementsAre("yard"));
  EXPECT_THAT(of("url: yard.mp4", "url: yard.mp4, window: {length: 20s}").altered, ElementsAre("yard"));
  EXPECT_THAT(of("url: yard.mp4", "url: yard.mp4, window: {length: 20s}").restarted, IsEmpty());
  EXPECT_THAT(of("zone: a}}]", "zone: b}}, {name: smoke, prompt: p}]").altered, ElementsAre("gate", "yard"))
      << "shared rules are those of their cameras";
  EXPECT_THAT(of("car, prompt: p", "car, prompt: p, snooze_until: 2026-08-01T10:00:00Z").altered,
              ElementsAre("gate"));
  EXPECT_THAT(of("labels: {zone: a}}\n", "labels: {zone: a, floor: 2}}\n").altered, ElementsAre("yard"));
  EXPECT_THAT(of("url: yard.mp4", "url: yard.mp4, keep: off").altered, ElementsAre("yard"));
  EXPECT_THAT(of("model: m", "model: m\ndefaults: {keep: 1h}").altered, ElementsAre("gate", "yard"));
  EXPECT_THAT(of("model: m", "model: m\ndefaults: {keep: 1h}").restarted, IsEmpty());
  EXPECT_TRUE(of("url: yard.mp4", "url: yard.mp4, keep: 1d").empty()) << "the default in other words";
  EXPECT_TRUE(of("dock.mp4", "pier.mp4").empty()) << "it is not watched";
}

TEST(Changes, NameWhatNeedsARestart) {
  const Settings wanted = site(std::string(kSite) +
                               "alerts: {bind: 'tcp://127.0.0.1:7000', retention: 1d}\n"
                               "metrics: {listen: ''}\n"
                               "log: {level: debug, format: json}\n"
                               "shutdown_grace: 5s\n");
  const Changes changes = compare(site(), wanted);
  EXPECT_THAT(changes.fixed, ElementsAre("alerts.bind", "alerts.retention", "metrics.listen", "log.format",
                                         "shutdown_grace"));
  EXPECT_TRUE(changes.log_level);
  EXPECT_THAT(compare(site(), site(replaced(kSite, "model: m", "model: other"))).fixed, ElementsAre("model"));
}

TEST(Changes, TheSchemaSaysWhichKeysNeedARestart) {
  std::ifstream file(VIGIL_SOURCE_DIR "/config/vigil.schema.json");
  const nlohmann::json schema = nlohmann::json::parse(file);
  std::set<std::string> flagged;
  const std::function<void(const nlohmann::json&, const std::string&)> collect =
      [&](const nlohmann::json& section, const std::string& prefix) {
        for (const auto& [key, value] : section.at("properties").items()) {
          if (value.value("x-needs-restart", false)) flagged.insert(prefix + key);
          if (value.contains("properties")) collect(value, prefix + key + '.');
        }
      };
  collect(schema, "");
  const std::vector<std::string> fixed = fixed_keys();
  EXPECT_EQ(flagged, std::set<std::string>(fixed.begin(), fixed.end()));
}

TEST(Changes, WhatIsRememberedAndWhoMayAskNeedARestart) {
  const std::string key(40, 'k');
  const Changes changes = compare(
      site(std::string(kSite) + "asks: {secret_key_file: k, askers: [{key: " + key + ", tenants: [a]}]}\n"),
      site(std::string(kSite) +
           "memory: {enabled: true, host: {forms: {fp8: 1h}}, disk: {budget: 1TiB}, eviction: lru, dir: d}\n"
           "asks: {secret_key_file: k, askers: [{key: " +
           key + ", tenants: [a], erase: true}]}\n"));
  EXPECT_THAT(changes.fixed, ElementsAre("memory.enabled", "memory.host.forms.fp8", "memory.host.forms.int4",
                                         "memory.host.forms.sketch", "memory.disk.budget", "memory.eviction",
                                         "memory.dir", "asks.askers"));
  EXPECT_THAT(changes.altered, IsEmpty());
}

class ReloaderTest : public ::testing::Test {
 protected:
  Reloader::Outcome reload(const std::string& text) {
    text_ = text;
    return reloader_.reload();
  }
  std::string text_;
  Reloader reloader_{site(), [this] { return site(text_); }};
};

TEST_F(ReloaderTest, AppliesAFileAsAWhole) {
  const auto outcome = reload(replaced(kSite, "  yard: {url: yard.mp4, labels: {zone: a}}\n", ""));
  EXPECT_TRUE(outcome.applied);
  EXPECT_EQ(outcome.message, "removed yard");
  EXPECT_EQ(reloader_.running(), site(text_));
  const auto again = reload(text_);
  EXPECT_TRUE(again.applied);
  EXPECT_TRUE(again.changes.empty());
  EXPECT_EQ(again.message, "nothing");
}

TEST_F(ReloaderTest, AnInvalidFileChangesNothingAndSaysAllThatIsWrong) {
  const auto outcome = reload("model: m\ncameras:\n  gate: {url: x, fps: fast, rules: [{name: car}]}\n");
  EXPECT_FALSE(outcome.applied);
  EXPECT_THAT(outcome.message, HasSubstr("/etc/vigil/site.yaml:3:23: cameras.gate.fps"));
  EXPECT_THAT(outcome.message, HasSubstr("rules[0].prompt: is missing"));
  EXPECT_EQ(reloader_.running(), site());
  EXPECT_TRUE(reload(kSite).changes.empty()) << "compared with what runs, not with what was refused";
}

TEST_F(ReloaderTest, AKeyThatNeedsARestartRefusesTheWholeFile) {
  const auto outcome =
      reload(replaced(replaced(kSite, "model: m", "model: other"), "url: yard.mp4", "url: x.mp4"));
  EXPECT_FALSE(outcome.applied);
  EXPECT_EQ(outcome.message, "model: cannot change while running; put it back, or start again");
  EXPECT_EQ(reloader_.running(), site());
}

TEST_F(ReloaderTest, NoMessageHoldsASecret) {
  const auto outcome = reload(replaced(kSite, "'rtsp://h/gate'", "'rtsp://root:hunter2@h/gate'"));
  EXPECT_FALSE(outcome.applied);
  EXPECT_THAT(outcome.message, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace vigil::config
