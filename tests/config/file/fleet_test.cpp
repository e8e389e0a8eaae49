// What of a configuration's text is one for a fleet, and what must not stand in it.
#include "config/file/fleet.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kSite =
    "name: '{NODE}'\n"
    "model: m\n"
    "defaults: {fps: 2, window: {length: 4s, stride: 2s}}\n"
    "cameras:\n"
    "  gate: {url: 'rtsp://h/gate', username: viewer, password: '{GATE}'}\n"
    "  yard: {url: yard.mp4}\n"
    "rules: [{name: person, prompt: 'Is there a person?'}, {name: car, prompt: 'A car?'}]\n";

std::string with(const std::string& what, const std::string& by) {
  std::string text = kSite;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(FleetPart, IsTheSameHoweverItIsWritten) {
  const std::string part = fleet_part(kSite);
  EXPECT_EQ(fleet_part("# words\n" + kSite + "---\n"), part);
  EXPECT_EQ(fleet_part(with("{fps: 2, window: {length: 4s, stride: 2s}}",
                            "\n  window:   # of all\n    stride: '2s'\n    length: \"4s\"\n  fps: 2")),
            part);
  EXPECT_EQ(
      fleet_part("rules: [{prompt: 'Is there a person?', name: person}, {name: car, prompt: 'A car?'}]\n"
                 "cameras: {yard: {url: yard.mp4}, gate: {password: \"{GATE}\", username: viewer, url: "
                 "rtsp://h/gate}}\n"
                 "defaults: {window: {stride: 2s, length: 4s}, fps: 2}\n"),
      part)
      << "in another order, and without what is a node's own";
}

TEST(FleetPart, LeavesOutWhatIsANodesOwn) {
  const std::string part = fleet_part(kSite);
  for (const char* own :
       {"engine: {device: cuda}\n", "cluster: {name: city, listen: '10.0.0.7:7400', weight: 3}\n",
        "memory: {enabled: true, dir: past}\n", "asks: {bind: 'tcp://127.0.0.1:7000', at_once: 1}\n",
        "log: {level: debug}\n", "metrics: {listen: ''}\n", "shutdown_grace: 3s\n"})
    EXPECT_EQ(fleet_part(kSite + own), part) << own;
  EXPECT_EQ(fleet_part(with("'{NODE}'", "north")), part);
}

TEST(FleetPart, DiffersWithWhateverIsTheFleets) {
  const std::string part = fleet_part(kSite);
  for (const auto& [what, by] :
       {std::pair("fps: 2", "fps: 3"), std::pair("{GATE}", "{GATE_2}"),
        std::pair("  yard: {url: yard.mp4}\n", ""), std::pair("yard.mp4", "'~'"),
        std::pair("'A car?'", "'A  car?'"), std::pair("{name: person, ", "{name: people, "),
        std::pair("stride: 2s", "stride: 1s"), std::pair("fps: 2", "fps: 2, keep: off"),
        std::pair("url: yard.mp4", "url: yard.mp4, keep: 1h")})
    EXPECT_NE(fleet_part(with(what, by)), part) << what;
  EXPECT_NE(
      fleet_part("rules: [{name: car, prompt: 'A car?'}, {name: person, prompt: 'Is there a person?'}]\n" +
                 kSite.substr(0, kSite.find("rules:"))),
      part)
      << "a list has an order";
  EXPECT_NE(fleet_part("cameras: {a: {url: x}}"), fleet_part("cameras: {a: {url: }}"));
  EXPECT_NE(fleet_part("cameras: {a: {labels: {b: 'c:d'}}}"),
            fleet_part("cameras: {a: {labels: {'b:c': d}}}"));
}

TEST(FleetPart, TakesWhateverText) {
  EXPECT_EQ(fleet_part(""), "");
  EXPECT_EQ(fleet_part("cameras:\nrules: ~\n"), "") << "what is empty says nothing";
  EXPECT_EQ(fleet_part("just words"), "");
  EXPECT_THROW(fleet_part("cameras: [\n"), std::runtime_error);
  EXPECT_THROW(fleet_part("a: 1\n---\nb: 2\n"), std::runtime_error);
  EXPECT_EQ(fleet_part("x: &a {fps: 2}\ndefaults: *a\n"), fleet_part("defaults: {fps: 2}\n"));
  EXPECT_THROW(fleet_part("cameras: &a {a: *a}\n"), std::runtime_error) << "it has no end";
  std::string laughs = "cameras: {a: &a0 [x, x]";
  for (int i = 1; i < 40; ++i)
    laughs += ", b" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
              ", *a" + std::to_string(i - 1) + "]";
  EXPECT_THROW(fleet_part(laughs + "}\n"), std::runtime_error) << "it has one that nobody would see";
  EXPECT_THROW(fleet_part("cameras: " + std::string(200, '[') + std::string(200, ']') + "\n"),
               std::runtime_error);
  EXPECT_THROW(fleet_part("{[a]: b"), std::runtime_error);
  EXPECT_NO_THROW(fleet_part("cameras: {[a]: b, {c: d}: e}\n"));
}

TEST(LiteralSecrets, AreNamedWithoutBeingShown) {
  const auto problems = literal_secrets(
      "cameras:\n"
      "  a: {url: 'rtsp://h/live', username: u, password: hunter2}\n"
      "  b: {url: 'rtsp://u:hunter2@h/live'}\n"
      "  c: {inputs: [{url: 'rtsp://h/sub'}, {url: 'http://h/live?password=hunter2&channel=1'}]}\n"
      "  d: {url: 'rtsp://h/live', username: u, password: 'x{PASSWORD}'}\n"
      "cluster: {registry: {username: u, password: hunter2}}\n");
  ASSERT_THAT(problems, SizeIs(5));
  EXPECT_EQ(problems[0],
            (Problem{2, 52,
                     "cameras.a.password: a password stands here as it is; write a reference, such as "
                     "\"{NAME}\", or `password_file`"}));
  EXPECT_THAT(problems[1].message, HasSubstr("cameras.b.url: a password, or what looks like one"));
  EXPECT_THAT(problems[2].message, HasSubstr("cameras.c.inputs[1].url: "));
  EXPECT_THAT(problems[3].message, HasSubstr("cameras.d.password: "));
  EXPECT_THAT(problems[4].message, HasSubstr("cluster.registry.password: "));
  for (const Problem& problem : problems) EXPECT_THAT(problem.message, Not(HasSubstr("hunter2")));
}

TEST(LiteralSecrets, AreNoReferences) {
  EXPECT_THAT(literal_secrets("cameras:\n"
                              "  a: {url: 'rtsp://h/live', username: viewer, password: '{A}'}\n"
                              "  b: {url: 'rtsp://viewer:{B}@h:554/live'}\n"
                              "  c: {url: 'rtsp://{C}:{D}@h/live?channel=1&key={E}'}\n"
                              "  d: {url: '{F}'}\n"
                              "  e: {url: 'rtsp://h/live', username: v, password_file: /run/secrets/e}\n"
                              "  f: {url: 'rtsp://viewer@h/live'}\n"
                              "  g: {url: videos/a@b.mp4}\n"
                              "  h: not a camera\n"
                              "cluster: {registry: {password: '{ETCD}'}}\n"),
              IsEmpty());
  EXPECT_THAT(literal_secrets("cameras: [a]\ncluster: 7\n"), IsEmpty());
  EXPECT_THAT(literal_secrets(""), IsEmpty());
}

TEST(WithoutComments, SaysTheSame) {
  const std::string text = without_comments("# hunter2\n" + kSite + "# hunter2\n");
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_EQ(fleet_part(text), fleet_part(kSite));
  const Environment set = [](const std::string&) { return std::optional<std::string>("x"); };
  EXPECT_EQ(read(text, set), read(kSite, set));
}

TEST(Together, ANodesOwnKeysWin) {
  const std::string own =
      "cluster: {name: city, configuration: registry, listen: '127.0.0.1:1'}\nlog: {level: debug}\n";
  const std::string all =
      together(own, kSite + "log: {level: error, format: json}\nshutdown_grace: 3s\n", "n.yaml");
  const Settings settings = read(all, [](const std::string&) { return std::optional<std::string>("x"); });
  EXPECT_EQ(settings.cluster.name, "city");
  EXPECT_EQ(settings.cluster.configuration, ConfigurationFrom::registry);
  EXPECT_EQ(settings.cameras.size(), 2U);
  EXPECT_EQ(settings.log.level, LogLevel::debug);
  EXPECT_EQ(settings.log.format, LogFormat::text) << "a section of its own is all of it";
  EXPECT_EQ(fleet_part(all), fleet_part(kSite));
  try {
    together("log: {}\nrules: []\n", kSite, "n.yaml");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("n.yaml:2:1: rules: is the fleet's, whose configuration is in the registry"));
  }
}

TEST(ParseCluster, NeedsNothingElse) {
  const ClusterSettings cluster = parse_cluster(
      "cluster: {name: city, configuration: registry, registry: {endpoints: ['e:1'], password: '{P}', "
      "username: "
      "u, ca_file: ca}}\n",
      "/etc/vigil/n.yaml", [](const std::string&) { return std::optional<std::string>("hunter2"); });
  EXPECT_EQ(cluster.name, "city");
  EXPECT_EQ(cluster.registry.password.value, "hunter2");
  EXPECT_EQ(cluster.registry.ca_file, "/etc/vigil/ca");
  EXPECT_EQ(parse_cluster("model: m\n", "n", kNothing).name, "");
  EXPECT_THROW(parse_cluster("cluster: {nmae: city}\n", "n", kNothing), ConfigError);
  EXPECT_THROW(parse_cluster("cluster: [\n", "n", kNothing), ConfigError);
}

// Pools of nodes of different sizes have one file.
TEST(ParseCluster, WhatANodeHasRoomForMayComeFromItsEnvironment) {
  const auto problems = [](const std::string& room, const char* value, Unset unset = Unset::problem) {
    const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
      if (name == "ROOM" && value != nullptr) return value;
      return std::nullopt;
    };
    std::string told;
    try {
      const ClusterSettings cluster = parse_cluster(
          "cluster: {max_cameras: " + room + ", max_streams: " + room + "}\n", "n.yaml", environment, unset);
      EXPECT_EQ(cluster.max_cameras, cluster.max_streams);
      told = std::to_string(cluster.max_streams);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) told += problem.message + '\n';
    }
    return told;
  };
  EXPECT_EQ(problems("'{ROOM}'", "40"), "40");
  EXPECT_EQ(problems("'{ROOM}'", "0"), "0");
  EXPECT_EQ(problems("'4{ROOM}'", "2"), "42");
  EXPECT_EQ(problems("7", "40"), "7");
  EXPECT_EQ(problems("'{ROOM}'", nullptr, Unset::accepted), "0");
  EXPECT_EQ(problems("'{ROOM}'", nullptr),
            "cluster.max_cameras: the environment variable ROOM is not set\n"
            "cluster.max_streams: the environment variable ROOM is not set\n");
  const auto of_both = [](const std::string& is) {
    const std::string rest =
        ": expected a variable that is a whole number from 0 to 1000000, not `{ROOM}`, which is " + is + '\n';
    return "cluster.max_cameras" + rest + "cluster.max_streams" + rest;
  };
  for (const char* value : {"many", "-1", "1000001", "4.5", " 4", "{ROOM}"})
    EXPECT_EQ(problems("'{ROOM}'", value), of_both('`' + std::string(value) + '`'));
  EXPECT_EQ(problems("'{ROOM}'", ""), of_both("empty"));
  // What is no slip of a number may be anything.
  for (const char* value : {"-----BEGIN PRIVATE KEY-----", "4\n", "vier\u00a0hundert"})
    EXPECT_EQ(problems("'{ROOM}'", value), of_both("something else"));
  EXPECT_THAT(problems("'4{ROOM}'", "x"), HasSubstr("not `4{ROOM}`, which is `4x`"));
  EXPECT_THAT(problems("{ROOM}", "40"), HasSubstr("`{NAME}` needs quotes"));
}

// What is one for the fleet is compared as it stands, and a variable may have another value elsewhere.
TEST(ParseCluster, NoOtherNumberComesFromTheEnvironment) {
  const Environment set = [](const std::string&) { return std::optional<std::string>("2"); };
  EXPECT_THROW(parse_cluster("cluster: {weight: '{W}'}\n", "n.yaml", set), ConfigError);
  const std::string rest = "cameras: {a: {url: x, rules: [{name: r, prompt: p}]}}\n";
  for (const char* key :
       {"defaults: {fps: '{W}'}\n", "defaults: {threads: '{W}'}\n", "engine: {kv_tokens: '{W}'}\n"}) {
    EXPECT_THROW(read("model: m\n" + (key + rest), set), ConfigError) << key;
  }
}

TEST(NodesOwn, IsWhatOneHasWhoseFleetIsInTheRegistry) {
  EXPECT_TRUE(is_in_registry("model: m\ncluster: {configuration: registry}\n"));
  EXPECT_TRUE(is_in_registry("cluster: {configuration: registry, max_streams: nonsense}\n"));
  for (const char* text : {"", "model: m\n", "cluster:\n", "cluster: {name: city}\n",
                           "cluster: {configuration: file}\n", "cluster: {configuration: [registry]}\n",
                           "cluster: [configuration]\n", "- registry\n", "cluster: [\n", "a: {\n\t"}) {
    EXPECT_FALSE(is_in_registry(text)) << text;
  }
}

TEST(NodesOwn, NeedsNoCameraAndTakesNone) {
  const auto told = [](const std::string& text) {
    try {
      const Settings settings =
          parse(text, "/etc/vigil/n.yaml", kNothing, {}, Unset::problem, Secrets::kept, Holds::own);
      EXPECT_EQ(settings.cameras.size(), 0U);
      return settings.cluster.name;
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  const std::string own =
      "model: m\ncluster: {name: city, configuration: registry, registry: {endpoints: ['127.0.0.1:2379']}}\n";
  EXPECT_EQ(told(own), "city");
  EXPECT_THAT(told(own + "log: {level: loud}\n"), HasSubstr("n.yaml:3:14: log.level: expected one of"));
  EXPECT_EQ(told("cluster: {configuration: registry}\n"), "/etc/vigil/n.yaml:1:1: model: is missing");
  for (const char* key : {"cameras: {}", "defaults: {fps: 2}", "rules: []"}) {
    const std::string name(key, std::string(key).find(':'));
    EXPECT_THAT(told(own + key + '\n'),
                HasSubstr(name + ": is the fleet's, whose configuration is in the registry"))
        << key;
  }
  // Of a text that has all of it, nothing changes.
  EXPECT_THAT(problems_of(own), ElementsAre(Problem{1, 1, "cameras: is missing"}));
}

}  // namespace
}  // namespace vigil::config
