#include "config/file/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/foreign_keys.h"
#include "config/file/substitute.h"
#include "config/schema/fields.h"
#include "config/values/source.h"
#include "tests/temporary_folder.h"

namespace vigil::config {

void PrintTo(const Problem& problem, std::ostream* out) {
  *out << problem.line << ':' << problem.column << ": " << problem.message;
}

namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

const Environment kNothing = [](const std::string&) { return std::nullopt; };
const Environment kSecret = [](const std::string& name) -> std::optional<std::string> {
  if (name == "GATE_PASSWORD") return "hunter2";
  if (name == "SITE") return "north";
  return std::nullopt;
};

Settings read(const std::string& text, const Environment& environment = kNothing) {
  return parse(text, "/etc/vigil/site.yaml", environment);
}

std::vector<Problem> problems_of(const std::string& text, const Environment& environment = kNothing) {
  try {
    read(text, environment);
  } catch (const ConfigError& error) {
    return error.problems();
  }
  return {};
}

/// The smallest legal file; `camera` adds lines to its camera.
std::string minimal(const std::string& camera = "") {
  return "model: m\n"
         "cameras:\n"
         "  gate:\n"
         "    url: gate.mp4\n"
         "    rules: [{name: car, prompt: 'Is there a car?'}]\n" +
         camera;
}

TEST(Load, EvidenceIsOffUnlessItIsAskedFor) {
  const EvidenceSettings off = read(minimal()).evidence;
  EXPECT_FALSE(off.enabled);
  EvidenceSettings beside_the_file;
  beside_the_file.dir = "/etc/vigil/vigil-evidence";
  EXPECT_EQ(off, beside_the_file);
  const Settings settings = read(minimal() + R"(
evidence: {enabled: true, dir: clips, budget: 1.5GiB, max_age: 30d, pre_roll: 10s, post_roll: 0s, memory: 8MiB}
)");
  const EvidenceSettings& on = settings.evidence;
  EXPECT_TRUE(on.enabled);
  EXPECT_EQ(on.dir, "/etc/vigil/clips");
  EXPECT_EQ(on.budget, mebibytes(1536));
  EXPECT_EQ(on.max_age, 720h);
  EXPECT_EQ(on.pre_roll, 10s);
  EXPECT_EQ(on.post_roll, 0s);
  EXPECT_EQ(on.memory, mebibytes(8));
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, HasSubstr("budget: 1536MiB"));
  EXPECT_EQ(read(printed).evidence, on);
}

TEST(Load, WhatIsWrongWithEvidenceIsSaidWithItsLine) {
  EXPECT_THAT(
      problems_of(minimal() +
                  "evidence:\n  budget: 10\n  max_age: 0s\n  memory: 1kB\n  pre_roll: 1h\n  folder: x\n"),
      ElementsAre(
          Problem{7, 11,
                  "evidence.budget: expected an amount of bytes from 1MiB to 1024TiB, such as 64MiB or "
                  "10GiB, not `10`"},
          Problem{
              8, 12,
              "evidence.max_age: expected a duration from 1s to 3650d, such as 500ms, 40s or 2m, not `0s`"},
          Problem{9, 11,
                  "evidence.memory: expected an amount of bytes from 1MiB to 64GiB, such as 64MiB or 10GiB, "
                  "not `1kB`"},
          Problem{
              10, 13,
              "evidence.pre_roll: expected a duration from 0s to 10m, such as 500ms, 40s or 2m, not `1h`"},
          Problem{11, 3,
                  "evidence.folder: unknown key; legal keys: budget, dir, enabled, max_age, memory, "
                  "post_roll, pre_roll"}));
}

TEST(Load, FillsDefaultsAndOverrides) {
  const Settings settings = read(R"(
model: /models/big
defaults: {fps: 4, window: {length: 20s, stride: 5s}, pace: fast, loop: false}
cameras:
  a:
    url: rtsp://10.0.0.1/live
    rules: [{name: r, prompt: "Is it open?", threshold: 0.75, confirm: 2/3, cooldown: 2m, severity: detection}]
  b:
    enabled: false
    inputs: [{url: clip.mp4, roles: [detect]}]
    window: {stride: 2s}
    pace: realtime
    labels: {tenant: north, zone: "7"}
    rules: [{name: r, prompt: "Is it open?"}, {name: s, prompt: "Is it shut?", explain: true, max_tokens: 32}]
)");
  EXPECT_EQ(settings.model, "/models/big");
  ASSERT_EQ(settings.cameras.size(), 2U);
  const CameraSettings& a = settings.cameras[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.tenant(), "default");
  EXPECT_FALSE(a.is_file());
  EXPECT_EQ(a.stream.fps, 4);
  EXPECT_EQ(a.stream.window.stride, 5s);
  EXPECT_EQ(a.stream.pace, Pace::fast);
  EXPECT_FALSE(a.stream.loop);
  ASSERT_EQ(a.rules.size(), 1U);
  EXPECT_EQ(a.rules[0].threshold, 0.75);
  EXPECT_EQ(a.rules[0].confirm, (Confirmation{2, 3}));
  EXPECT_EQ(a.rules[0].cooldown, 2min);
  EXPECT_EQ(a.rules[0].severity, Severity::detection);
  const CameraSettings& b = settings.cameras[1];
  EXPECT_FALSE(b.enabled);
  EXPECT_TRUE(b.is_file());
  EXPECT_EQ(b.url().value, "/etc/vigil/clip.mp4");
  EXPECT_EQ(b.tenant(), "north");
  EXPECT_EQ(b.labels.at("zone"), "7");
  EXPECT_EQ(b.stream.window.length, 20s);
  EXPECT_EQ(b.stream.window.stride, 2s);
  EXPECT_EQ(b.stream.pace, Pace::realtime);
  EXPECT_TRUE(b.rules[1].explain);
  EXPECT_EQ(b.rules[1].max_tokens, 32);
  EXPECT_EQ(b.rules[1].confirm, (Confirmation{2, 2}));
}

TEST(Load, FilesAreToldFromLiveSources) {
  CameraSettings camera;
  camera.inputs.resize(1);
  const auto is_file = [&camera](const std::string& url) {
    camera.inputs[0].url = {url, url};
    return camera.is_file();
  };
  for (const char* file :
       {"/clips/gate.mp4", "/clips/12:30.mp4", "file:///clips/gate.mp4", "/dev/shm/gate.mp4"}) {
    EXPECT_TRUE(is_file(file)) << file;
  }
  for (const char* live : {"rtsp://10.0.0.1/live", "rtsps://10.0.0.1/live", "http://10.0.0.1/live.ts",
                           "/dev/video0", "v4l2:///dev/video0", "lavfi://testsrc=rate=5"}) {
    EXPECT_FALSE(is_file(live)) << live;
  }
}

TEST(Load, ACamerasTransportIsTcpOrUdp) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.transport, Transport::tcp);
  EXPECT_EQ(read(minimal() + "defaults: {transport: udp}\n").cameras[0].stream.transport, Transport::udp);
  EXPECT_THROW(read(minimal() + "defaults: {transport: http}\n"), ConfigError);
}

TEST(Load, PruningIsNoneUnlessACameraOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.policy, Pruning::none);
  const std::string defaults = "defaults: {pruning: {policy: reference}}\n";
  EXPECT_EQ(read(minimal() + defaults).cameras[0].stream.pruning.policy, Pruning::reference);
  EXPECT_EQ(read(minimal("    pruning: {policy: codecsight}\n") + defaults).cameras[0].stream.pruning.policy,
            Pruning::codecsight);
  EXPECT_EQ(read(minimal("    pruning: {policy: dtd}\n")).cameras[0].stream.pruning.policy, Pruning::dtd);
  EXPECT_EQ(read(minimal("    pruning: {policy: scene}\n")).cameras[0].stream.pruning.policy, Pruning::scene);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: {policy: motion}}\n"), ConfigError);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: reference}\n"), ConfigError);
}

TEST(Load, WindowsAreComputedWholeUnlessACameraOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.refresh, Refresh::all);
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.refresh_share, 0.15);
  const std::string defaults = "defaults: {pruning: {refresh: first-k, refresh_share: 0.3}}\n";
  EXPECT_EQ(read(minimal() + defaults).cameras[0].stream.pruning.refresh, Refresh::first_k);
  const PruningSettings own =
      read(minimal("    pruning: {refresh: random-k}\n") + defaults).cameras[0].stream.pruning;
  EXPECT_EQ(own.refresh, Refresh::random_k);
  EXPECT_EQ(own.refresh_share, 0.3) << "what it does not say, the defaults do";
  EXPECT_EQ(read(minimal("    pruning: {refresh: none}\n")).cameras[0].stream.pruning.refresh, Refresh::none);
  EXPECT_EQ(read(minimal("    pruning: {refresh: topk}\n")).cameras[0].stream.pruning.refresh, Refresh::topk);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: {refresh: some}}\n"), ConfigError);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: {refresh_share: 1.5}}\n"), ConfigError);
}

TEST(Load, WhatCodecsightCountsIsMotionUnlessACameraOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.motion_threshold, 0.25);
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.residual_weight, 0);
  const std::string defaults = "defaults: {pruning: {motion_threshold: 1.5, residual_weight: 0.0005}}\n";
  const PruningSettings own =
      read(minimal("    pruning: {motion_threshold: 0}\n") + defaults).cameras[0].stream.pruning;
  EXPECT_EQ(own.motion_threshold, 0);
  EXPECT_EQ(own.residual_weight, 0.0005) << "what it does not say, the defaults do";
  for (const char* key : {"motion_threshold", "residual_weight"})
    for (const char* bad : {"-0.1", "1001", ".nan", ".inf", "much"})
      EXPECT_THROW(read(minimal() + "defaults: {pruning: {" + key + ": " + bad + "}}\n"), ConfigError)
          << key << " " << bad;
}

TEST(Load, ACamerasKeysHaveNoBudgetUnlessItOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.kv_budget, ByteSize{0});
  const std::string defaults = "defaults: {pruning: {kv_budget: 300MiB}}\n";
  EXPECT_EQ(read(minimal() + defaults).cameras[0].stream.pruning.kv_budget, mebibytes(300));
  EXPECT_EQ(
      read(minimal("    pruning: {kv_budget: 1.5GiB}\n") + defaults).cameras[0].stream.pruning.kv_budget,
      mebibytes(1536));
  const Settings lifted = read(minimal("    pruning: {kv_budget: 0B}\n") + defaults);
  EXPECT_EQ(lifted.cameras[0].stream.pruning.kv_budget, ByteSize{0}) << "a camera may have none all the same";
  EXPECT_EQ(read(effective(lifted)), lifted);
  EXPECT_THAT(effective(read(minimal() + defaults)), HasSubstr("kv_budget: 300MiB"));
  for (const std::string bad : {"300", "-1MiB", "2048TiB", "much"})
    EXPECT_THAT(problems_of(minimal() + "defaults: {pruning: {kv_budget: " + bad + "}}\n"),
                ElementsAre(Field(&Problem::message,
                                  "defaults.pruning.kv_budget: expected an amount of bytes from 0B to 1TiB, "
                                  "such as 64MiB or 10GiB, not `" +
                                      bad + "`")));
}

TEST(Load, ACamerasServerIsVerifiedUnlessItIsSaidOtherwise) {
  const StreamSettings plain = read(minimal()).cameras[0].stream;
  EXPECT_FALSE(plain.tls.insecure);
  EXPECT_EQ(plain.tls.ca_file, "");
  EXPECT_FALSE(plain.playlists);
  EXPECT_EQ(plain.decoder_memory, mebibytes(512));
  const StreamSettings told =
      read(minimal() +
           "defaults: {tls: {ca_file: ca.pem, insecure: true}, playlists: true, decoder_memory: 1GiB}\n")
          .cameras[0]
          .stream;
  EXPECT_TRUE(told.tls.insecure);
  EXPECT_TRUE(told.tls.ca_file.is_absolute()) << "relative to the file";
  EXPECT_EQ(told.tls.ca_file.filename(), "ca.pem");
  EXPECT_TRUE(told.playlists);
  EXPECT_EQ(told.decoder_memory, gibibytes(1));
  EXPECT_THROW(read(minimal() + "defaults: {tls: {insecure: maybe}}\n"), ConfigError);
  EXPECT_THROW(read(minimal() + "defaults: {tls: {verify: false}}\n"), ConfigError);
  EXPECT_THROW(read(minimal() + "defaults: {decoder_memory: 100kB}\n"), ConfigError);
}

TEST(Load, DefaultsReachCamerasWhateverTheOrderInTheFile) {
  const Settings settings = read(minimal() + "defaults: {fps: 8}\n");
  EXPECT_EQ(settings.cameras[0].stream.fps, 8);
}

TEST(Load, WhatIsLeftOutLiesBesideTheFileToo) {
  EXPECT_EQ(read(minimal()).alerts.outbox, "/etc/vigil/vigil-outbox");
  EXPECT_EQ(read(minimal() + "alerts: {retention: 1h}\n").alerts.outbox, "/etc/vigil/vigil-outbox");
  EXPECT_EQ(read(minimal() + "alerts: {outbox: ../kept}\n").alerts.outbox, "/etc/kept");
  EXPECT_EQ(read(minimal() + "alerts: {outbox: /var/lib/vigil}\n").alerts.outbox, "/var/lib/vigil");
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

TEST(Load, KeysOfOtherProgramsAreTranslated) {
  const auto problems = problems_of(
      "model: m\n"
      "mqtt: {host: x}\n"
      "cameras:\n"
      "  a:\n"
      "    ffmpeg: {inputs: [{path: 'rtsp://h/live'}]}\n"
      "    inputs: [{path: 'rtsp://h/live', roles: [detect]}]\n"
      "    rules: [{name: r, prompt: p}]\n");
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(problem.message);
  EXPECT_THAT(messages, testing::UnorderedElementsAre(
                            "mqtt: unknown key; events go out on `alerts.bind` (docs/topics.md)",
                            "cameras.a.ffmpeg: unknown key; a camera has its `url`, or `inputs`, itself",
                            "cameras.a.inputs[0].path: unknown key; Vigil calls it `url`",
                            "cameras.a.inputs[0].url: is missing"));
}

TEST(Load, NoKeyOfOursIsTakenForAnothersProgram) {
  for (const std::string& path : known_keys()) {
    const std::string key = path.substr(path.rfind('.') + 1);
    EXPECT_EQ(in_place_of(key), std::nullopt) << path;
  }
}

TEST(Load, WhatIsNamedIsLookedAtByWhoeverWantsTo) {
  std::vector<std::string> seen;
  const LookAt look = [&seen](Named what, const MaskedText& name) -> std::vector<std::string> {
    seen.push_back(std::to_string(static_cast<int>(what)) + ' ' + name.value);
    if (what == Named::model) return {"one", "two"};
    if (what == Named::folder) return {};
    return {name.shown + ": no such file"};
  };
  const std::string text =
      "model: m\n"
      "cameras:\n"
      "  a: {url: a.mp4, rules: [{name: r, prompt: p}]}\n"
      "  b: {url: 'rtsp://h/live', rules: [{name: r, prompt: p}]}\n"
      "  c: {inputs: [{url: 'file:///{GATE_PASSWORD}.mp4'}], rules: [{name: r, prompt: p}]}\n"
      "  d: {url: /dev/video0, rules: [{name: r, prompt: p}]}\n";
  std::vector<Problem> problems;
  try {
    parse(text, "/etc/vigil/site.yaml", kSecret, look);
  } catch (const ConfigError& error) {
    problems = error.problems();
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("0 /etc/vigil/m", "1 /etc/vigil/a.mp4",
                                                  "1 file:///hunter2.mp4", "3 /etc/vigil/vigil-outbox"));
  EXPECT_THAT(problems,
              ElementsAre(Problem{1, 8, "model: one"}, Problem{1, 8, "model: two"},
                          Problem{3, 12, "cameras.a.url: /etc/vigil/a.mp4: no such file"},
                          Problem{5, 22, "cameras.c.inputs[0].url: file:///***.mp4: no such file"}));
  EXPECT_NO_THROW(parse(text, "/etc/vigil/site.yaml", kSecret)) << "nobody looks";
}

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

TEST(Load, TheProcessHasANameOrTheHosts) {
  const auto name = [](const std::string& text) {
    return read("name: " + text + "\nmodel: m\ncameras: {a: {url: a.mp4, rules: [{name: r, prompt: 'P?'}]}}")
        .name;
  };
  EXPECT_EQ(name("north-1"), "north-1");
  EXPECT_EQ(name("\"\""), "");
  for (const char* wrong : {"a/b", "\"a b\"", "-a"}) EXPECT_THROW(name(wrong), ConfigError) << wrong;
}

TEST(Load, SaysWhereTheFileIsNotYaml) {
  const auto problems = problems_of("model: m\ncameras: [unclosed\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].message, HasSubstr("not YAML"));
  EXPECT_GE(problems[0].line, 2);
}

TEST(Load, AFileThatCannotBeReadIsSaidSo) {
  try {
    load("/proc/self/mem");
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/proc/self/mem: cannot be read");
  }
}

TEST(Load, WhatBelongsToNothingIsNotReadForEver) {
  for (const char* text : {",", ",\xc2\xb6M,", "---\n,", "{model: m}\n,\n"}) {
    const auto problems = problems_of(text);
    ASSERT_EQ(problems.size(), 1U) << text;
    EXPECT_THAT(problems[0].message, HasSubstr("not YAML")) << text;
  }
  EXPECT_EQ(problems_of(minimal() + "...\n,\n")[0].line, 7) << "the line of the comma";
}

TEST(Load, ATextThatIsNotUtf8HasOnePlace) {
  const auto latin = problems_of("model: m\n# caf\xc3\xa9: \xe9t\xe9\ncameras: {}\n");
  ASSERT_EQ(latin.size(), 1U);
  EXPECT_EQ(latin[0], (Problem{2, 9, "not UTF-8: in another encoding, or no text at all"}));
  for (const std::string& text :
       {std::string("\xff\xfem\0o\0", 6), std::string("\xa0"), std::string("model: m\n\xf0\x9f")}) {
    const auto problems = problems_of(text);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_THAT(problems[0].message, HasSubstr("not UTF-8"));
  }
}

TEST(Load, AFileHoldsOneDocument) {
  const auto again = [](int line, int first) {
    return Problem{line, 1,
                   "another document, behind the one that begins in line " + std::to_string(first) +
                       "; a file holds one"};
  };
  EXPECT_THAT(problems_of(minimal() + "---\nlog: {level: info}\n"), ElementsAre(again(7, 1)));
  EXPECT_THAT(problems_of("---\n" + minimal() + "...\n---\n---\nx: 1\n--- y\n"),
              ElementsAre(again(10, 2), Problem{11, 5, again(11, 2).message}));
  EXPECT_THAT(problems_of(minimal() + "---\nlog: [\n"), testing::SizeIs(1)) << "no YAML, there either";
  for (const char* end : {"---\n", "...\n", "---\n# the end\n", "---\n---\n", "...\n---\n...\n"}) {
    for (const char* begin : {"", "---\n", "%YAML 1.2\n---\n", "# site\n---\n", "---\n---\n"}) {
      EXPECT_THAT(problems_of(begin + minimal() + end), testing::IsEmpty()) << begin << end;
    }
  }
}

TEST(Load, SurvivesShapesThatAreNoConfiguration) {
  for (const std::string& text :
       {std::string(), std::string("- a\n- b\n"), std::string("just words"),
        std::string("model: [1, 2]\ncameras: 7\n"), std::string("cameras: {a: [1]}\n"),
        std::string("cameras: {a: {rules: {x: 1}}}\n"), std::string("? [a]\n: b\n"),
        std::string("a: &a [*a]\n"), std::string(10'000, '['), std::string("\0\x01\xff", 3)}) {
    EXPECT_FALSE(problems_of(text).empty()) << text.substr(0, 40);
  }
}

TEST(Load, PutsEnvironmentVariablesInAndKeepsThemOutOfWhatIsShown) {
  const std::string text =
      "model: m\n"
      "cameras:\n"
      "  gate:\n"
      "    url: 'rtsp://viewer:{GATE_PASSWORD}@10.0.0.1:554/live?key={GATE_PASSWORD}'\n"
      "    labels: {tenant: north}\n"
      "    rules: [{name: car, prompt: 'Is {SITE} written there?'}]\n";
  const Settings settings = read(text, kSecret);
  const CameraSettings& gate = settings.cameras[0];
  EXPECT_EQ(gate.url().value, "rtsp://viewer:hunter2@10.0.0.1:554/live?key=hunter2");
  EXPECT_EQ(gate.url().shown, "rtsp://***@10.0.0.1:554/live?***");
  EXPECT_EQ(gate.rules[0].prompt, "Is {SITE} written there?");
  EXPECT_THAT(effective(settings), Not(HasSubstr("hunter2")));
  EXPECT_THAT(effective(settings), Not(HasSubstr("viewer")));
}

TEST(Load, AnUnsetVariableIsAProblem) {
  const auto problems = problems_of(
      "model: m\n"
      "cameras:\n"
      "  gate:\n"
      "    url: 'rtsp://viewer:{GATE_PASSWORD}@10.0.0.1/live'\n"
      "    rules: [{name: car, prompt: p}]\n");
  EXPECT_THAT(problems, ElementsAre(Problem{
                            4, 10, "cameras.gate.url: the environment variable GATE_PASSWORD is not set"}));
}

TEST(Load, AnUnsetVariableIsNoneWhereItNeedNotBeSet) {
  const std::string text =
      "model: '{MODELS}/demo'\n"
      "cameras:\n"
      "  gate:\n"
      "    url: 'rtsp://viewer:{GATE_PASSWORD}@{HOST}:{PORT}/live'\n"
      "    rules: [{name: car, prompt: p}]\n"
      "  yard:\n"
      "    inputs: [{url: '{YARD}'}, {url: '{YARD_MAIN}', roles: [record]}]\n"
      "    username: '{USER}'\n"
      "    password: '{PASSWORD}'\n"
      "    rules: [{name: car, prompt: p}]\n"
      "alerts: {bind: 'tcp://127.0.0.1:{EVENTS}'}\n"
      "metrics: {listen: '{LISTEN}'}\n";
  const auto accepted = [](const std::string& configuration, const Environment& environment) {
    return parse(configuration, "/etc/vigil/site.yaml", environment, {}, Unset::accepted);
  };
  const Settings settings = accepted(text, kSecret);
  EXPECT_EQ(settings.cameras[0].url().value, "rtsp://viewer:{GATE_PASSWORD}@{HOST}:{PORT}/live")
      << "as it stands, as long as something in it is not known";
  EXPECT_EQ(settings.alerts.bind, "tcp://127.0.0.1:{EVENTS}");
  EXPECT_THAT(problems_of(text), testing::SizeIs(10)) << "each variable is a problem elsewhere";

  // What is known is looked at all the same.
  EXPECT_THROW(accepted("model: m\n"
                        "cameras: {gate: {url: '{GATE_PASSWORD}@gate', rules: [{name: car, prompt: p}]}}\n",
                        kSecret),
               ConfigError);
  EXPECT_THROW(accepted(text + "colour: red\n", kNothing), ConfigError);
}

TEST(Load, CredentialsBesideTheUrlArePercentEncodedAndMasked) {
  const Environment secret = [](const std::string& name) -> std::optional<std::string> {
    if (name == "GATE_PASSWORD") return "p@ss:w/rd?#%&+ \xC3\xA4~-._";
    return std::nullopt;
  };
  const Settings settings = read(
      "model: m\n"
      "alerts: {outbox: /var/lib/vigil}\n"
      "evidence: {dir: /var/lib/vigil/evidence}\n"
      "cameras:\n"
      "  gate:\n"
      "    inputs: [{url: 'rtsp://10.0.0.1:554/live?a=b@c'}, {url: 'rtsp://10.0.0.1/main', roles: "
      "[record]}]\n"
      "    username: ops@north\n"
      "    password: '{GATE_PASSWORD}'\n"
      "    rules: [{name: car, prompt: p}]\n",
      secret);
  const CameraSettings& gate = settings.cameras[0];
  EXPECT_EQ(gate.url().value,
            "rtsp://ops%40north:p%40ss%3Aw%2Frd%3F%23%25%26%2B%20%C3%A4~-._@10.0.0.1:554/live?a=b@c");
  EXPECT_EQ(gate.url().shown, "rtsp://***@10.0.0.1:554/live?***");
  EXPECT_EQ(gate.record_url().shown, "rtsp://***@10.0.0.1/main");
  EXPECT_FALSE(gate.is_file());
  const std::string printed = effective(settings);
  for (const char* hidden : {"ops", "p@ss", "p%40ss"}) EXPECT_THAT(printed, Not(HasSubstr(hidden)));
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, CredentialsInUrlsAreMaskedHoweverTheyAreWritten) {
  const std::pair<const char*, const char*> cases[] = {
      {"rtsp://admin:s3cret@10.0.0.1/live", "rtsp://***@10.0.0.1/live"},
      {"rtsp://admin@gate.example:554/live", "rtsp://***@gate.example:554/live"},
      // What a password has to be escaped for, and is not.
      {"rtsp://admin:s3cr#t@10.0.0.1/live", "rtsp://***@10.0.0.1/live"},
      {"rtsp://admin:s3/cret@gate/live", "rtsp://***@gate/live"},
      {"rtsp://admin:s3?cret@10.0.0.1:554/live", "rtsp://***@10.0.0.1:554/live"},
      {"rtsp://admin:s3@cr/t@[fe80::1]:554/live", "rtsp://***@[fe80::1]:554/live"},
      {"rtsp://admin:554/cret@gate/live", "rtsp://***@gate/live"},
      {"rtsp://admin:s3?channel=1@gate/live", "rtsp://***@gate/live"},
      {"rtsp://admin:s3://cret@gate/live", "rtsp://***@gate/live"},
      // Secrets of a query, whatever they are called.
      {"http://cam/snap?user=admin&password=s3cret", "http://cam/snap?***"},
      {"http://cam/snap?channel=1&subtype=0&pwd=s3&cret&Stream=main",
       "http://cam/snap?channel=1&subtype=0&***&Stream=main"},
      {"http://cam/snap?channel=1;pwd=s3cret", "http://cam/snap?***"},
      {"http://cam/snap?pwd=s3#cr?t", "http://cam/snap?***"},
      {"rtsp://admin:s3cret@10.0.0.1/live?mail=a@b", "rtsp://***@10.0.0.1/live?***"},
      // Nothing to hide.
      {"rtsp://10.0.0.1:554/cam/realmonitor?channel=1&subtype=0",
       "rtsp://10.0.0.1:554/cam/realmonitor?channel=1&subtype=0"},
      {"rtsp://10.0.0.1:554/a@b/live", "rtsp://10.0.0.1:554/a@b/live"},
      {"http://[fe80::1]:80/a@b", "http://[fe80::1]:80/a@b"},
      {"rtsp://gate/live#x", "rtsp://gate/live#x"},
      {"rtsp://gate/live?", "rtsp://gate/live?"},
      {"file:///clips/a@b.mp4", "file:///clips/a@b.mp4"},
      // Who can tell whether this is a user's name?
      {"rtsp://gate/a@b", "rtsp://***@b"},
  };
  for (const auto& [url, shown] : cases) {
    EXPECT_EQ(mask_credentials(url), shown);
    // What a host ends in is refused; it is masked all the same where it stands on a command line.
    if (source_fault(url)) continue;
    const Settings settings =
        read("model: m\ncameras: {a: {url: '" + std::string(url) + "', rules: [{name: r, prompt: p}]}}\n");
    EXPECT_EQ(settings.cameras[0].url().value, url);
    EXPECT_EQ(settings.cameras[0].url().shown, shown);
    EXPECT_THAT(effective(settings), HasSubstr(shown));
  }
}

TEST(Load, CredentialsAreInNoMessage) {
  const auto problems = problems_of(
      "model: m\n"
      "cameras:\n"
      "  a: {url: 'rtsp://h/', username: 'hunter2:x', password: \"hunter2\\n\", rules: [{name: r, prompt: "
      "p}]}\n");
  ASSERT_EQ(problems.size(), 2U);
  for (const Problem& problem : problems) EXPECT_THAT(problem.message, Not(HasSubstr("hunter2")));
}

TEST(Load, TheRecordedInputIsTheWatchedOneUnlessAnotherIsNamed) {
  const Settings settings = read(
      "model: m\n"
      "cameras:\n"
      "  one: {url: 'rtsp://h/sub', rules: [{name: r, prompt: p}]}\n"
      "  two:\n"
      "    inputs: [{url: 'rtsp://h/main', roles: [record]}, {url: 'rtsp://h/sub', roles: [detect]}]\n"
      "    rules: [{name: r, prompt: p}]\n");
  EXPECT_EQ(settings.cameras[0].record_url().value, "rtsp://h/sub");
  EXPECT_EQ(settings.cameras[1].url().value, "rtsp://h/sub");
  EXPECT_EQ(settings.cameras[1].record_url().value, "rtsp://h/main");
  EXPECT_FALSE(settings.cameras[0].records_apart());
  EXPECT_TRUE(settings.cameras[1].records_apart());
  for (const char* inputs : {"[{url: a.mp4}, {url: 'rtsp://h/main', roles: [record]}]",
                             "[{url: 'rtsp://h/sub'}, {url: b.mp4, roles: [record]}]"}) {
    const auto problems = problems_of(std::string("model: m\ncameras:\n  a: {inputs: ") + inputs +
                                      ", rules: [{name: r, prompt: p}]}\n");
    ASSERT_EQ(problems.size(), 1U) << inputs;
    EXPECT_THAT(problems[0].message, HasSubstr("one of the two is a file"));
  }
}

std::vector<std::string> rule_names(const CameraSettings& camera) {
  std::vector<std::string> names;
  for (const RuleSettings& rule : camera.rules) names.push_back(rule.name + ':' + rule.prompt);
  return names;
}

TEST(Load, SharedRulesGoToTheCamerasWithTheirLabels) {
  const std::string text =
      "model: m\n"
      "alerts: {outbox: /var/lib/vigil}\n"
      "evidence: {dir: /var/lib/vigil/evidence}\n"
      "rules:\n"
      "  - {name: fire, prompt: 'Fire?', topics: [safety]}\n"
      "  - {name: truck, prompt: 'Truck?', labels: {zone: dock, tenant: north}}\n"
      "cameras:\n"
      "  dock: {url: a, labels: {zone: dock, tenant: north}}\n"
      "  yard: {url: b, labels: {zone: dock}, rules: [{name: dog, prompt: 'Dog?'}]}\n"
      "  kiln: {url: c, rules: [{name: fire, prompt: 'Outside the kiln?'}]}\n";
  const Settings settings = read(text);
  EXPECT_THAT(rule_names(settings.cameras[0]), ElementsAre("fire:Fire?", "truck:Truck?"));
  EXPECT_THAT(rule_names(settings.cameras[1]), ElementsAre("dog:Dog?", "fire:Fire?"));
  EXPECT_THAT(rule_names(settings.cameras[2]), ElementsAre("fire:Outside the kiln?"))
      << "its own rule of that name stands";
  EXPECT_THAT(settings.cameras[0].rules[0].topics, ElementsAre("safety"));
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, ACameraThatNoRuleFitsIsAProblemAtItsLine) {
  const auto problems = problems_of(
      "model: m\n"
      "rules: [{name: r, prompt: p, labels: {zone: dock}}]\n"
      "cameras:\n"
      "  a: {url: x, labels: {zone: dock}}\n"
      "  b: {url: y, labels: {zone: yard}}\n"
      "  c: {url: z, fps: 0}\n");
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].line, 5);
  EXPECT_THAT(problems[0].message, HasSubstr("cameras.b.rules: there is no rule"));
  EXPECT_EQ(problems[1].line, 6);
  EXPECT_EQ(problems[2].line, 6);
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

TEST(Load, SnoozesAreThoseOfTheRuleAndOfItsCamera) {
  const Settings settings = read(
      "model: m\n"
      "alerts: {outbox: /var/lib/vigil}\n"
      "evidence: {dir: /var/lib/vigil/evidence}\n"
      "cameras:\n"
      "  a:\n"
      "    url: x\n"
      "    snooze_until: 2026-08-01T12:00:00+02:00\n"
      "    rules:\n"
      "      - {name: early, prompt: p, snooze_until: 2026-08-01T09:00:00Z}\n"
      "      - {name: late, prompt: p, snooze_until: 2026-08-01T11:00:00Z}\n"
      "      - {name: none, prompt: p}\n"
      "  b: {url: y, rules: [{name: r, prompt: p}]}\n");
  const base::Clock::WallTime ten{std::chrono::seconds(1785578400)};
  const CameraSettings& a = settings.cameras[0];
  EXPECT_EQ(a.snoozed_until(a.rules[0]), ten);
  EXPECT_EQ(a.snoozed_until(a.rules[1]), ten + 1h);
  EXPECT_EQ(a.snoozed_until(a.rules[2]), ten);
  EXPECT_EQ(settings.cameras[1].snoozed_until(settings.cameras[1].rules[0]), std::nullopt);
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, EffectiveSettingsReadBackTheSame) {
  const Settings settings = load(VIGIL_SOURCE_DIR "/config/demo.yaml", kNothing);
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
  EXPECT_THAT(printed, HasSubstr("stall_after: 10s"));
}

TEST(Load, EventsLeaveTheMachineWithKeysOnly) {
  const std::string key(40, 'k');
  const Settings settings = read(minimal() +
                                 "alerts:\n"
                                 "  bind: tcp://0.0.0.0:6000\n"
                                 "  curve: {secret_key_file: keys/server, allow: ['" +
                                 key + "']}\n");
  EXPECT_EQ(settings.alerts.curve.secret_key_file, "/etc/vigil/keys/server");
  EXPECT_EQ(settings.alerts.curve.allow, std::vector<std::string>{key});
  EXPECT_EQ(settings.alerts.replay_endpoint(), "tcp://0.0.0.0:6001");
  const std::string printed = effective(read(effective(settings)));
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, MetricsLeaveTheMachineWithACertificateOrAWordOnly) {
  const auto problem = [](const std::string& metrics) {
    const auto problems = problems_of(minimal() + "metrics: {" + metrics + "}\n");
    return problems.size() == 1 ? problems.front().message : std::to_string(problems.size()) + " problems";
  };
  for (const char* listen : {"0.0.0.0:9464", "10.0.0.7:9464", "[::]:9464", "node-7:9464",
                             "localhost.example:9464", "127.0.0.1.example:9464"})
    EXPECT_EQ(
        problem(std::string("listen: '") + listen + '\''),
        std::string("metrics.listen: `") + listen +
            "` is beyond this machine and not encrypted; give `tls: {cert_file: FILE, key_file: FILE}`, "
            "or say `allow_plain_text: true`");
  for (const char* metrics :
       {"listen: ''", "listen: '127.0.0.1:1'", "listen: '127.3.2.1:1'", "listen: '[::1]:1'",
        "listen: 'localhost:1'", "listen: '0.0.0.0:1', allow_plain_text: true",
        "listen: '0.0.0.0:1', tls: {cert_file: c, key_file: k}", "probes: '0.0.0.0:1'"})
    EXPECT_EQ(problem(metrics), "0 problems") << metrics;
  EXPECT_EQ(problem("tls: {cert_file: c}"), "metrics.tls.key_file: is missing beside the other file");
  EXPECT_EQ(problem("tls: {key_file: k}"), "metrics.tls.cert_file: is missing beside the other file");
  EXPECT_EQ(problem("listen: '127.0.0.1:1', probes: '127.0.0.1:1'"),
            "metrics.probes: `127.0.0.1:1` is `listen`, too, which serves probes as it is");
  for (const char* listen : {"0.0.0.0", "127.0.0.1", "'[::1]'", "'127.0.0.1:0'", "'127.0.0.1:99999'"})
    for (const char* key : {"listen", "probes"})
      EXPECT_THAT(problem(std::string(key) + ": " + listen),
                  HasSubstr("expected HOST:PORT, or nothing for none, not `"))
          << listen;
  const Settings settings =
      read(minimal() + "metrics: {tls: {cert_file: c.pem, key_file: /k.pem}, cameras: false}\n");
  EXPECT_EQ(settings.metrics.tls.cert_file, "/etc/vigil/c.pem");
  EXPECT_EQ(settings.metrics.tls.key_file, "/k.pem");
  EXPECT_FALSE(settings.metrics.cameras);
}

TEST(Load, WhatStandsWhereAKeyShouldIsNotShown) {
  const auto problems = problems_of(minimal() + "alerts: {curve: {allow: [hunter2]}}\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].message, Not(HasSubstr("hunter2")));
}

TEST(Load, AKeyInPlaceOfItsFileIsNotShown) {
  const auto problems_with = [](const std::string& file) {
    return problems_of(minimal() + "alerts: {curve: {secret_key_file: '" + file + "', allow: ['" +
                           std::string(40, 'k') + "']}}\n",
                       [&](const std::string&) { return "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"; });
  };
  for (const char* file :
       {"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs", "D:)Q[{IL}!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
        "/:)Q[IlAW//hhC2ac:9*A}h:p?([4%wOTJ%JR../", "{KEY}", "keys/{KEY}",
        "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"}) {
    EXPECT_THAT(
        problems_with(file),
        ElementsAre(Problem{6, 35, "alerts.curve.secret_key_file: a key stands where its file is expected"}));
  }
  for (const char* file : {"/etc/vigil/keys/of-the-north/server.keys", "keys/server.key", ""}) {
    for (const Problem& problem : problems_with(file)) EXPECT_THAT(problem.message, Not(HasSubstr("stands")));
  }
}

TEST(Load, TheDemoNamesFilesThatAreThere) {
  const Settings settings = load(VIGIL_SOURCE_DIR "/config/demo.yaml", kNothing);
  EXPECT_EQ(settings.cameras.size(), 7U);
  for (const CameraSettings& camera : settings.cameras) {
    EXPECT_TRUE(std::filesystem::exists(camera.url().value)) << camera.url().value;
  }
}

TEST(Load, AMissingFileIsOneLine) {
  try {
    load("/nowhere/site.yaml", kNothing);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/nowhere/site.yaml: no such file");
  }
  EXPECT_THROW(load("/tmp", kNothing), ConfigError);
}

TEST(Load, AFileWithoutAnEndIsNoConfiguration) {
  try {
    load("/dev/zero");
    ADD_FAILURE() << "it is read";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/dev/zero: is larger than 16 MiB, and so no configuration");
  }
}

}  // namespace
}  // namespace vigil::config
