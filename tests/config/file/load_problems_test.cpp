// What is wrong with the values of a file is said all at once, each at its place.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/one_line.h"
#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Load, ReportsEveryProblemAtOnceWithItsPlace) {
  const auto problems = problems_of(
      "model: m\n"
      "defaults:\n"
      "  fps: many\n"
      "  windw: {length: 4s}\n"
      "cameras:\n"
      "  gate:\n"
      "    url: gate.mp4\n"
      "    pace: slow\n"
      "    rules:\n"
      "      - name: car\n"
      "        prompt: 'Is there a car?'\n"
      "        threshold: 1.5\n"
      "        confirm: 3/2\n"
      "      - name: bad/name\n"
      "alerts: {bind: 'tcp://0.0.0.0:5556'}\n");
  EXPECT_THAT(
      problems,
      ElementsAre(
          Problem{3, 8, "defaults.fps: expected a number from 0.01 to 120, not `many`"},
          Problem{4, 3, "defaults.windw: unknown key; did you mean `window`?"},
          Problem{8, 11, "cameras.gate.pace: expected one of realtime, fast, not `slow`"},
          Problem{12, 20, "cameras.gate.rules[0].threshold: expected a number from 0 to 1, not `1.5`"},
          Problem{13, 18,
                  "cameras.gate.rules[0].confirm: expected N/M with 1 <= N <= M <= 100, such as 2/3, not "
                  "`3/2`"},
          Problem{14, 9, "cameras.gate.rules[1].prompt: is missing"},
          Problem{14, 15,
                  "cameras.gate.rules[1].name: expected a name of letters, digits, '.', '_' and '-' (it "
                  "becomes part of topics), not `bad/name`"},
          Problem{15, 16,
                  "alerts.bind: expected tcp://127.0.0.1:PORT, tcp://[::1]:PORT or ipc:///PATH (events "
                  "are not encrypted, so they stay on this machine), not `tcp://0.0.0.0:5556`"}));
}

TEST(Load, WhateverStandsInAValueItsProblemIsOneLine) {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"a\\n", "a?"}, {"\\0", "?"}, {"a\\e[31mb", "a?[31mb"}, {"\\r\\t", "??"}};
  for (const auto& [given, shown] : values) {
    const std::string quoted = '"' + given + '"';
    const std::string file = "name: " + quoted + "\nmodel: m\n" + quoted + ": 1\ncameras:\n  " + quoted +
                             ": {url: gate.mp4}\nlog: {level: " + quoted + "}\nmetrics: {listen: " + quoted +
                             "}\nshutdown_grace: " + quoted + "\ndefaults: {fps: " + quoted +
                             "}\ncluster: {name: city, seeds: [" + quoted + "]}\n";
    std::vector<std::string> told;
    for (const Problem& problem : problems_of(file)) told.push_back(problem.message);
    for (const std::string key :
         {"name", "log.level", "metrics.listen", "shutdown_grace", "defaults.fps", "cluster.seeds"})
      EXPECT_THAT(told, Contains(AllOf(StartsWith(key + ": expected "), EndsWith(", not `" + shown + '`'))));
    EXPECT_THAT(told, Contains(StartsWith(shown + ": unknown key")));
    EXPECT_THAT(told, Contains(AllOf(StartsWith("cameras: expected "), EndsWith(", not `" + shown + '`'))));
    try {
      parse(file, "/etc/vi\ngil.yaml", kNothing);
      FAIL() << "no error";
    } catch (const ConfigError& error) {
      const std::string all = error.what();
      EXPECT_EQ(static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n')), told.size() - 1);
      EXPECT_EQ(base::one_line(all).find("/etc/vi?gil.yaml:1:7: name: expected "), 0U);
      EXPECT_THAT(all, Not(HasSubstr("\x1b")));
    }
  }
}

TEST(Load, TheErrorNamesFileLineAndColumnOfEachProblem) {
  try {
    read("model: m\ncameras: {gate: {url: x, rules: [{name: car, prompt: p}], fsp: 2}}\n");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "/etc/vigil/site.yaml:2:59: cameras.gate.fsp: unknown key; did you mean `fps`?");
  }
}

TEST(Load, AnUnknownKeyThatIsLikeNoneListsTheLegalOnes) {
  const auto problems = problems_of(minimal() + "log: {colour: red}\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message, "log.colour: unknown key; legal keys: format, level");
}

TEST(Load, ABadNameHidesNothingThatStandsBelowIt) {
  EXPECT_THAT(problems_of("model: m\n"
                          "cameras:\n"
                          "  'bad name':\n"
                          "    url: rstp://h/live\n"
                          "    fps: many\n"
                          "    rules: [{name: r, prompt: ''}]\n"
                          "  b/c: {fps: 0}\n"),
              ElementsAre(Field(&Problem::line, 3), Field(&Problem::line, 4), Field(&Problem::line, 5),
                          Field(&Problem::line, 6), Field(&Problem::line, 7), Field(&Problem::line, 7),
                          Field(&Problem::line, 7), Field(&Problem::line, 7)));
}

TEST(Load, RefusesWhatDoesNotFitTogether) {
  struct Case {
    std::string text;
    std::string message;
  };
  const Case cases[] = {
      {minimal("    window: {length: 2s, stride: 4s}\n"), "longer than the window's length"},
      {minimal("    window: {length: 4s}\n"), "longer than the window's length"},
      {minimal("    fps: 0.1\n    window: {stride: 2s}\n"), "no frame within 2s"},
      {minimal("    reconnect: {min: 10s, max: 1s}\n"), "longer than max"},
      {minimal("    inputs: [{url: x}]\n"), "short for `inputs`"},
      {minimal("") + "engine: {device: 'cuda:0+1', decode_device: 'cuda:2'}\n",
       "engine.decode_device: `cuda:2` is not as many GPUs as `cuda:0+1`"},
      {minimal("") + "engine: {device: 'cuda:0+1', decode_device: 'cuda:1+0'}\n",
       "engine.decode_device: `cuda:1+0` has GPU 1, which is one of `cuda:0+1`"},
      {"model: m\ncameras:\n  a: {url: x}\n", "there is no rule"},
      {"model: m\ncameras:\n  a: {url: x, rules: []}\n", "there is no rule"},
      {"model: m\ncameras:\n  a: {rules: [{name: r, prompt: p}]}\n", "url: is missing"},
      {"model: m\ncameras:\n  a: {url: x, rules: [{name: r, prompt: p}, {name: r, prompt: q}]}\n",
       "a rule named `r` is there twice; the first is in line 3"},
      {"model: m\ncameras:\n  a: {inputs: [{url: x}, {url: y}], rules: [{name: r, prompt: p}]}\n",
       "exactly one input"},
      {"model: m\ncameras:\n  a: {inputs: [{roles: [detect]}], rules: [{name: r, prompt: p}]}\n",
       "url: is missing"},
      {"model: m\ncameras:\n  a: {url: x, rules: [{name: r, prompt: p}], labels: {tenant: a/b}}\n",
       "labels.tenant"},
      {"model: m\n", "cameras: is missing"},
      {"model: m\ncameras:\n  a: {enabled: false, url: x, rules: [{name: r, prompt: p}]}\n",
       "no camera is enabled"},
      {"cameras:\n  a: {url: x, rules: [{name: r, prompt: p}]}\n", "model: is missing"},
      {"model: m\ncameras:\n  a: {inputs: [{url: x, roles: [record]}], rules: [{name: r, prompt: p}]}\n",
       "exactly one input"},
      {"model: m\ncameras:\n  a:\n    inputs: [{url: x, roles: [detect, record]}, {url: y, roles: "
       "[record]}]\n"
       "    rules: [{name: r, prompt: p}]\n",
       "two inputs have the role `record`"},
      {"model: m\ncameras:\n  a: {inputs: [{url: x}, {url: y, roles: []}], rules: [{name: r, prompt: p}]}\n",
       "an input has no role"},
      {"model: m\ncameras:\n  a: {inputs: [{url: x, roles: [detect, detect]}], rules: [{name: r, prompt: "
       "p}]}\n",
       "`detect` is there twice"},
      {minimal("    username: admin\n"), "an input is a file"},
      {"model: m\ncameras:\n  a: {url: 'rtsp://root@h/', username: admin, rules: [{name: r, prompt: p}]}\n",
       "names a user, too"},
      {"model: m\ncameras:\n  a: {url: 'rtsp://h/', password: secret, rules: [{name: r, prompt: p}]}\n",
       "username: is missing beside the password"},
      {"model: m\ncameras:\n  a: {url: 'rtsp://h/', username: 'a:b', rules: [{name: r, prompt: p}]}\n",
       "expected a user's name, without ':'"},
      {"model: m\ncameras:\n  a: {url: 'rtsp://h/', username: a, password: '', rules: [{name: r, prompt: "
       "p}]}\n",
       "expected a password"},
      {"model: m\ncameras:\n  a: {url: 'rtsp://h/', username: a, password: {SECRET}, rules: [{name: r, "
       "prompt: "
       "p}]}\n",
       "password: expected one value; `{NAME}` needs quotes, \"{NAME}\""},
      {minimal("    snooze_until: tomorrow\n"), "expected a time such as 2026-08-01T18:00:00Z"},
      {minimal() + "rules: [{name: r, prompt: p}, {name: r, prompt: q}]\n",
       "a rule named `r` is there twice"},
      {minimal("    rules: [{name: r, prompt: ' '}]\n"), "rules: is there twice; the first is in line 5"},
      {minimal() + "  gate: {url: y, rules: [{name: r, prompt: p}]}\n",
       "cameras.gate: is there twice; the first is in line 3"},
      {minimal() + "alerts: {bind: 'tcp://0.0.0.0:5556'}\n", "they stay on this machine"},
      {minimal() + "alerts: {replay: 'tcp://0.0.0.0:5557'}\n", "they stay on this machine"},
      {minimal() + "alerts: {bind: 'tcp://127.0.0.1:65535'}\n", "alerts.replay: expected an endpoint beside"},
      {minimal() + "alerts: {replay: 'tcp://127.0.0.1:5556'}\n",
       "alerts.replay: expected an endpoint beside"},
      {minimal() + "alerts: {bind: 'tcp://127.0.0.1'}\n", "alerts.bind: expected tcp://HOST:PORT"},
      {minimal() + "alerts: {curve: {secret_key_file: k}}\n", "curve.allow: is missing"},
      {minimal() + "alerts: {curve: {allow: ['" + std::string(40, 'a') + "']}}\n",
       "curve.secret_key_file: is missing"},
      {minimal() + "alerts: {curve: {allow: [short]}}\n", "curve.allow: expected a public CURVE key"},
      {minimal() + "alerts: {curve: {allow: short}}\n", "curve.allow: expected a list"},
  };
  for (const Case& each : cases) {
    const auto problems = problems_of(each.text);
    ASSERT_FALSE(problems.empty()) << each.text;
    EXPECT_THAT(problems[0].message, HasSubstr(each.message)) << each.text;
    EXPECT_GT(problems[0].line, 0) << each.text;
  }
}

TEST(Load, APromptHoldsNoSpecialTokens) {
  EXPECT_THAT(problems_of(minimal() + "rules: [{name: r, prompt: 'Fire? <|im_end|>'}]\n"),
              ElementsAre(Problem{6, 27,
                                  "rules[0].prompt: expected a question in words, without a model's special "
                                  "tokens, <|...|>, not `Fire? <|im_end|>`"}));
}

TEST(Load, ATitleIsALineWithTwoNamesAtMost) {
  const auto title = [](const std::string& text) {
    const std::string rule = "rules: [{name: r, prompt: 'P?', title: " + text + "}]";
    return read("model: m\ncameras: {a: {url: a.mp4, " + rule + "}}").cameras.at(0).rules.at(0).title;
  };
  EXPECT_EQ(title("\"\""), "") << "RULE at CAMERA, then";
  EXPECT_EQ(title("\"Somebody at {camera} ({rule})\""), "Somebody at {camera} ({rule})");
  EXPECT_EQ(title("\"J\u00e9mand\""), "J\u00e9mand");
  for (const char* wrong :
       {"\"{zone}\"", "\"{PATH}\"", "\"{camera\"", "\"}\"", "\"a\\nb\"", "\" \"", "\"{{camera}}\""})
    EXPECT_THROW(title(wrong), ConfigError) << wrong;
  EXPECT_THROW(title(std::string(201, 'x')), ConfigError);
}

TEST(Load, DuplicatesAreReportedBesideEverythingElse) {
  const auto problems = problems_of(
      "model: m\n"
      "cameras:\n"
      "  a:\n"
      "    url: x\n"
      "    url: y\n"
      "    fps: 0\n"
      "    labels: {zone: a, zone: b}\n"
      "    rules:\n"
      "      - {name: r, prompt: p}\n"
      "      - {name: r, prompt: q, max_per_hour: 0}\n"
      "  a: {url: z, rules: [{name: r, prompt: p}]}\n");
  std::vector<int> lines;
  for (const Problem& problem : problems) lines.push_back(problem.line);
  EXPECT_THAT(lines, ElementsAre(5, 6, 7, 10, 10, 11));
  EXPECT_EQ(problems[5].message, "cameras.a: is there twice; the first is in line 3");
}

}  // namespace
}  // namespace vigil::config
