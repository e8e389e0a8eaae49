// What a file means: its values, and what holds where it says nothing.
#include "config/file/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/values/source.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

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

TEST(Load, PruningIsOfTheDefaultPresetUnlessACameraOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.policy, Pruning::scene);
  const std::string defaults = "defaults: {pruning: {policy: reference}}\n";
  EXPECT_EQ(read(minimal() + defaults).cameras[0].stream.pruning.policy, Pruning::reference);
  EXPECT_EQ(read(minimal("    pruning: {policy: codecsight}\n") + defaults).cameras[0].stream.pruning.policy,
            Pruning::codecsight);
  EXPECT_EQ(read(minimal("    pruning: {policy: dtd}\n")).cameras[0].stream.pruning.policy, Pruning::dtd);
  EXPECT_EQ(read(minimal("    pruning: {policy: none}\n")).cameras[0].stream.pruning.policy, Pruning::none);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: {policy: motion}}\n"), ConfigError);
  EXPECT_THROW(read(minimal() + "defaults: {pruning: reference}\n"), ConfigError);
}

TEST(Load, WindowsKeepTheirKeysUnlessACameraOrTheDefaultsSayOtherwise) {
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.refresh, Refresh::none);
  EXPECT_EQ(read(minimal()).cameras[0].stream.pruning.refresh_share, 0.15);
  const std::string defaults = "defaults: {pruning: {refresh: first-k, refresh_share: 0.3}}\n";
  EXPECT_EQ(read(minimal() + defaults).cameras[0].stream.pruning.refresh, Refresh::first_k);
  const PruningSettings own =
      read(minimal("    pruning: {refresh: random-k}\n") + defaults).cameras[0].stream.pruning;
  EXPECT_EQ(own.refresh, Refresh::random_k);
  EXPECT_EQ(own.refresh_share, 0.3) << "what it does not say, the defaults do";
  EXPECT_EQ(read(minimal("    pruning: {refresh: all}\n")).cameras[0].stream.pruning.refresh, Refresh::all);
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

TEST(Load, TheProcessHasANameOrTheHosts) {
  const auto name = [](const std::string& text) {
    return read("name: " + text + "\nmodel: m\ncameras: {a: {url: a.mp4, rules: [{name: r, prompt: 'P?'}]}}")
        .name;
  };
  EXPECT_EQ(name("north-1"), "north-1");
  EXPECT_EQ(name("\"\""), "");
  for (const char* wrong : {"a/b", "\"a b\"", "-a"}) EXPECT_THROW(name(wrong), ConfigError) << wrong;
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
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("0 /etc/vigil/m", "1 /etc/vigil/a.mp4",
                                                    "1 file:///hunter2.mp4", "3 /etc/vigil/vigil-outbox"));
  EXPECT_THAT(problems,
              ElementsAre(Problem{1, 8, "model: one"}, Problem{1, 8, "model: two"},
                          Problem{3, 12, "cameras.a.url: /etc/vigil/a.mp4: no such file"},
                          Problem{5, 22, "cameras.c.inputs[0].url: file:///***.mp4: no such file"}));
  EXPECT_NO_THROW(parse(text, "/etc/vigil/site.yaml", kSecret)) << "nobody looks";
}

TEST(Load, EffectiveSettingsReadBackTheSame) {
  const Settings settings = load(VIGIL_SOURCE_DIR "/config/demo.yaml", kNothing);
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
  EXPECT_THAT(printed, HasSubstr("stall_after: 10s"));
}

TEST(Load, TheDemoNamesFilesThatAreThere) {
  const Settings settings = load(VIGIL_SOURCE_DIR "/config/demo.yaml", kNothing);
  EXPECT_EQ(settings.cameras.size(), 7U);
  for (const CameraSettings& camera : settings.cameras) {
    EXPECT_TRUE(std::filesystem::exists(camera.url().value)) << camera.url().value;
  }
}

}  // namespace
}  // namespace vigil::config
