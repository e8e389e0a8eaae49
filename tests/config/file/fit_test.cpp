// What a file says that one key alone does not tell, and what it names.
#include "config/file/fit.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "config/file/load.h"

namespace vigil::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Environment kNothing = [](const std::string&) { return std::nullopt; };

constexpr const char* kSite = "model: m\ncameras: {gate: {url: x, rules: [{name: r, prompt: p}]}}\n";

std::vector<std::string> problems_of(const std::string& text, const LookAt& look = {}) {
  std::vector<std::string> lines;
  try {
    parse(text, "/etc/vigil/site.yaml", kNothing, look);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems())
      lines.push_back(std::to_string(problem.line) + ": " + problem.message);
  }
  return lines;
}

std::vector<std::string> of_site(const std::string& more) {
  return problems_of(kSite + more);
}

TEST(Addresses, NoTwoListenOnOne) {
  EXPECT_THAT(
      of_site("metrics: {listen: '127.0.0.1:5556'}\n"),
      ElementsAre("3: metrics.listen: `127.0.0.1:5556` is the address of alerts.bind, too, by default"));
  EXPECT_THAT(
      of_site("metrics: {listen: 'localhost:5557'}\n"),
      ElementsAre("3: metrics.listen: `localhost:5557` is the address of alerts.replay, too, by default"));
  EXPECT_THAT(
      of_site("metrics:\n  probes: 0.0.0.0:9464\n"),
      ElementsAre("4: metrics.probes: `0.0.0.0:9464` is the address of metrics.listen, too, by default"));
  EXPECT_THAT(
      of_site("alerts:\n  bind: tcp://127.0.0.1:9464\n"),
      ElementsAre(
          "4: alerts.bind: `tcp://127.0.0.1:9464` is the address of metrics.listen, too, by default"));
  EXPECT_THAT(
      of_site("alerts: {bind: 'tcp://127.0.0.1:9464'}\nmetrics: {probes: '127.0.0.1:9465'}\n"),
      ElementsAre(HasSubstr("3: alerts.bind: "),
                  "4: metrics.probes: `127.0.0.1:9465` is the address of alerts.replay, too, by default"));
}

TEST(Addresses, OfAsksIsOneWhereSomethingIsRemembered) {
  const auto of_memory = [](const std::string& more) { return of_site("memory: {enabled: true}\n" + more); };
  EXPECT_THAT(of_memory(""), IsEmpty());
  EXPECT_THAT(
      of_memory("metrics: {listen: '127.0.0.1:5558'}\n"),
      ElementsAre("4: metrics.listen: `127.0.0.1:5558` is the address of asks.bind, too, by default"));
  EXPECT_THAT(
      of_memory("alerts: {bind: 'tcp://127.0.0.1:5557'}\n"),
      ElementsAre("1: asks.bind: `tcp://127.0.0.1:5558` is the address of alerts.replay, too, by default"));
  EXPECT_THAT(
      of_memory("asks: {bind: 'tcp://127.0.0.1:5556'}\n"),
      ElementsAre("4: asks.bind: `tcp://127.0.0.1:5556` is the address of alerts.bind, too, by default"));
  EXPECT_THAT(of_memory("asks: {bind: ''}\nmetrics: {listen: '127.0.0.1:5558'}\n"), IsEmpty());
}

TEST(Addresses, OthersAreNoneOfIts) {
  EXPECT_THAT(of_site("metrics: {listen: '127.0.0.2:5556', probes: '[::1]:5557'}\n"), IsEmpty());
  EXPECT_THAT(of_site("alerts: {bind: 'ipc:///run/a:5557'}\nmetrics: {probes: '127.0.0.1:5557'}\n"),
              IsEmpty());
  EXPECT_THAT(of_site("metrics: {listen: '', probes: ''}\n"), IsEmpty());
  EXPECT_THAT(of_site("metrics: {listen: '127.0.0.1:5558'}\n"), IsEmpty()) << "nothing is remembered";
}

TEST(Addresses, AreSaidBesideEveryOtherFault) {
  EXPECT_THAT(of_site("metrics: {listen: '127.0.0.1:5556'}\ncolour: red\n"),
              ElementsAre(HasSubstr("metrics.listen"), HasSubstr("colour: unknown key")));
  EXPECT_THAT(of_site("metrics: {listen: nowhere}\n"), ElementsAre(HasSubstr("metrics.listen: expected")))
      << "a fault is not counted twice";
}

TEST(Folders, AreLookedAtWhereTheyAreNamed) {
  const LookAt look = [](Named what, const MaskedText& name) -> std::vector<std::string> {
    if (what != Named::folder) return {};
    return {name.shown + ": is not a folder"};
  };
  EXPECT_THAT(problems_of(std::string(kSite) + "alerts:\n  outbox: out\nevidence: {enabled: true}\n", look),
              ElementsAre("1: evidence.dir: /etc/vigil/vigil-evidence: is not a folder",
                          "4: alerts.outbox: /etc/vigil/out: is not a folder"));
}

TEST(Folders, OfWhatIsRememberedAreLookedAtWhereAnythingIs) {
  std::vector<std::string> seen;
  const LookAt look = [&seen](Named what, const MaskedText& name) -> std::vector<std::string> {
    if (what == Named::folder) seen.push_back(name.value);
    return {};
  };
  const auto folders = [&](const std::string& memory) {
    seen.clear();
    EXPECT_THAT(problems_of(kSite + memory, look), IsEmpty());
    return seen;
  };
  EXPECT_THAT(folders("memory: {enabled: true, dir: past}\n"),
              ElementsAre("/etc/vigil/vigil-outbox", "/etc/vigil/past"));
  EXPECT_THAT(folders("memory: {enabled: true}\n"), ElementsAre("/etc/vigil/vigil-outbox"));
  EXPECT_THAT(folders("memory: {dir: past}\n"), ElementsAre("/etc/vigil/vigil-outbox"));
}

TEST(KeyFiles, AreLookedAtAsWhatTheyAre) {
  const LookAt look = [](Named what, const MaskedText& name) -> std::vector<std::string> {
    if (what == Named::memory_key) return {name.shown + ": a memory's"};
    if (what == Named::secret_key) return {name.shown + ": a server's"};
    if (what == Named::private_key) return {name.shown + ": a certificate's"};
    return {};
  };
  const std::string key(40, 'k');
  EXPECT_THAT(problems_of(std::string(kSite) +
                              "memory: {dir: d, key_file: past.key}\n"
                              "asks:\n  secret_key_file: asks.key\n"
                              "  askers: [{key: " +
                              key + ", tenants: [a]}]\n",
                          look),
              ElementsAre("3: memory.key_file: /etc/vigil/past.key: a memory's",
                          "5: asks.secret_key_file: /etc/vigil/asks.key: a server's"));
  EXPECT_THAT(problems_of(std::string(kSite) + "memory: {key_file: ''}\nasks: {secret_key_file: ''}\n", look),
              IsEmpty());
}

TEST(Certificates, AreLookedAtBeforeTheirKeys) {
  std::vector<std::string> seen;
  const LookAt look = [&seen](Named what, const MaskedText& name) -> std::vector<std::string> {
    if (what == Named::certificate) seen.push_back("certificate " + name.value);
    if (what == Named::private_key) seen.push_back("key " + name.value);
    return {};
  };
  EXPECT_THAT(problems_of(std::string(kSite) + "metrics: {tls: {key_file: k, cert_file: c}}\n"
                                               "defaults: {tls: {ca_file: a}}\n",
                          look),
              IsEmpty());
  EXPECT_THAT(seen, testing::UnorderedElementsAre("certificate /etc/vigil/a", "certificate /etc/vigil/c",
                                                  "key /etc/vigil/k"));
  EXPECT_LT(std::find(seen.begin(), seen.end(), "certificate /etc/vigil/c"),
            std::find(seen.begin(), seen.end(), "key /etc/vigil/k"));
}

TEST(OfAMachine, ANodesCertificatesAndDevicesAreLookedAtWhereTheyAreNamed) {
  const LookAt look = [](Named what, const MaskedText& name) -> std::vector<std::string> {
    if (what == Named::node_certificates) return {name.shown + ": is no folder of certificates"};
    if (what == Named::device) return {"no " + name.shown};
    if (what == Named::decode_device) return {"nor " + name.shown};
    return {};
  };
  EXPECT_THAT(problems_of(std::string(kSite) + "engine:\n  device: cuda:0\n  decode_device: cuda:1\n"
                                               "cluster:\n  tls_dir: tls\n",
                          look),
              ElementsAre("4: engine.device: no cuda:0", "5: engine.decode_device: nor cuda:1",
                          "7: cluster.tls_dir: /etc/vigil/tls: is no folder of certificates"));
  EXPECT_THAT(problems_of(std::string(kSite) + "engine: {device: cpu, decode_device: ''}\n"
                                               "cluster: {tls_dir: ''}\n",
                          look),
              ElementsAre("3: engine.device: no cpu"));
}

TEST(NotYaml, SaysWhatIsUsuallyWrong) {
  EXPECT_THAT(problems_of("model: m\nname: a: b\n"),
              ElementsAre(testing::AllOf(HasSubstr("2: not YAML: "), HasSubstr("needs quotes"))));
  EXPECT_THAT(problems_of("model: m\nname: @b\n"), ElementsAre(HasSubstr("needs quotes")));
  EXPECT_THAT(problems_of("engine:\n\tdevice: cpu\n"),
              ElementsAre(HasSubstr("indented with blanks, not with tabs")));
}

/// The demo with the settings that stand in comments: "# name: north-1", and what is indented below one.
std::string demo_with_comments() {
  std::ifstream file(VIGIL_SOURCE_DIR "/config/demo.yaml");
  const std::regex setting("( *)# ([a-z_]+:.*)");
  const std::regex below("( *)# (  +[a-z_]+:.*)");
  std::string text;
  bool commented = false;
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    commented = std::regex_match(line, found, setting) || (commented && std::regex_match(line, found, below));
    text += (commented ? found.str(1) + found.str(2) : line) + '\n';
  }
  return text;
}

/// Every key as in `known_keys`; what all cameras or all rules may have is one wherever it stands.
void collect(const YAML::Node& node, const std::string& path, std::set<std::string>& keys) {
  if (node.IsSequence())
    for (const YAML::Node& item : node) collect(item, path + "[]", keys);
  if (!node.IsMap()) return;
  for (const auto& entry : node) {
    const std::string key = path == "cameras" ? "*" : entry.first.Scalar();
    const std::string below = path.empty() ? key : path + '.' + key;
    keys.insert(below);
    collect(entry.second, below, keys);
  }
}

std::string wherever(std::string path) {
  for (const auto& [from, to] :
       {std::pair("defaults.", "cameras.*."), std::pair("cameras.*.rules[].", "rules[].")}) {
    if (path.starts_with(from)) path = to + path.substr(std::string(from).size());
  }
  return path;
}

// Everything that may be set is shown there, if only in a comment.
TEST(Demo, HasEveryKey) {
  const std::string text = demo_with_comments();
  std::set<std::string> keys;
  collect(YAML::Load(text), "", keys);
  std::set<std::string> shown;
  for (const std::string& key : keys) shown.insert(wherever(key));
  for (const std::string& path : known_keys()) {
    // How a camera that asks for a password is written stands at the top.
    const std::string at_the_top = "\n#   " + path.substr(path.rfind('.') + 1) + ": ";
    if (path.starts_with("cameras.*.") && text.find(at_the_top) != std::string::npos) continue;
    EXPECT_TRUE(shown.contains(wherever(path))) << path;
  }
}

TEST(Degrade, EachMistakeHasALine) {
  const auto of = [](const std::string& steps) {
    return problems_of("model: m\ndefaults:\n  degrade: " + steps +
                       "\ncameras: {gate: {url: x, rules: [{name: r, prompt: p}]}}\n");
  };
  EXPECT_THAT(of("[{name: fewer, fps: 0.5}, {name: less, kept: 0.5}]"), IsEmpty());
  EXPECT_THAT(of("[{fps: 0.5}]"), ElementsAre("3: defaults.degrade[0].name: is missing"));
  EXPECT_THAT(of("[{name: fewer, fps: 0.5}, {name: fewer, fps: 0.2}]"),
              ElementsAre("3: defaults.degrade: two steps are named `fewer`"));
  EXPECT_THAT(
      of("[{name: nothing, stride: 1}]"),
      ElementsAre("3: defaults.degrade[0].name: the step `nothing` leaves all as it is; give `fps` or "
                  "`kept` below 1, or `stride` above 1"));
  EXPECT_THAT(
      of("[{name: full, fps: 0.5}]"),
      ElementsAre("3: defaults.degrade[0].name: expected a line of at most 40 letters, digits, spaces, "
                  "'.', '_' and '-', other than `full` and `refused`, not `full`"));
  EXPECT_THAT(of("[{name: more, fps: 2}]"),
              ElementsAre("3: defaults.degrade[0].fps: expected a number from 0.01 to 1, not `2`"));
  EXPECT_THAT(of("never"), ElementsAre(HasSubstr("3: defaults.degrade: expected a list")));
}

TEST(Degrade, ACameraHasTheLadderOfAllUnlessItSaysAnother) {
  const Settings settings = parse(
      "model: m\ndefaults: {priority: 2, degrade: [{name: fewer, fps: 0.25}]}\n"
      "rules: [{name: r, prompt: p}]\n"
      "cameras: {a: {url: x}, b: {url: x, degrade: [], priority: 7}, c: {url: x, degrade: [{name: own, kept: "
      "0.5}]}}\n",
      "/etc/vigil/site.yaml", kNothing);
  EXPECT_THAT(settings.cameras[0].stream.degrade, ElementsAre(DegradeStep{.name = "fewer", .fps = 0.25}));
  EXPECT_EQ(settings.cameras[0].stream.priority, 2);
  EXPECT_THAT(settings.cameras[1].stream.degrade, IsEmpty());
  EXPECT_EQ(settings.cameras[1].stream.priority, 7);
  EXPECT_THAT(settings.cameras[2].stream.degrade, ElementsAre(DegradeStep{.name = "own", .kept = 0.5}));
}

TEST(Addresses, OfANodeThatListensOnAllOneIsToBeTold) {
  const auto of_cluster = [](const std::string& more) {
    return of_site("cluster: {name: city, " + more + "}\n");
  };
  const std::string told =
      "` stands for all addresses of this machine, and other nodes have to be told one; give `advertise: "
      "HOST`";
  EXPECT_THAT(of_cluster("tls_dir: /tls, listen: '0.0.0.0:7400', bulk: '[::]:7401'"),
              ElementsAre("3: cluster.listen: `0.0.0.0:7400" + told, "3: cluster.bulk: `[::]:7401" + told));
  EXPECT_THAT(of_cluster("allow_plain_text: true, listen: '10.0.0.7:7400', bulk: '0.0.0.0:7401'"),
              ElementsAre("3: cluster.bulk: `0.0.0.0:7401" + told));
  EXPECT_THAT(of_cluster("tls_dir: /tls, listen: '0.0.0.0:7400', bulk: '0.0.0.0:7401', advertise: n.example"),
              IsEmpty());
  EXPECT_THAT(of_cluster("listen: '0.0.0.0:7400'"),
              ElementsAre(HasSubstr("is beyond this machine and not encrypted")));
}

TEST(Addresses, WhatOthersAreToldIsOneAddressWithoutAPort) {
  const auto told = [](const std::string& advertise) {
    return of_site("cluster: {name: city, allow_plain_text: true, listen: '0.0.0.0:7400', advertise: '" +
                   advertise + "'}\n");
  };
  for (const std::string one : {"n.example", "10.0.0.7", "::1", "[::1]", "fe80::1%eth0", "[2001:db8::7]"})
    EXPECT_THAT(told(one), IsEmpty()) << one;
  for (const std::string with_port :
       {"127.0.0.1:99", "n.example:1", "[::1]:7400", "[::1", "::1]", "[n.example]", "[]", ":", "a b"})
    EXPECT_THAT(told(with_port),
                ElementsAre("3: cluster.advertise: expected a name or an address, without a port, "
                            "or nothing, not `" +
                            with_port + '`'));
  for (const std::string all : {"0.0.0.0", "::", "[::]", "0:0:0:0:0:0:0:0"})
    EXPECT_THAT(
        told(all),
        ElementsAre("3: cluster.advertise: `" + all +
                    "` stands for all addresses of this machine, and other nodes have to be told one"));
}

TEST(Addresses, OfIPv6NeedBrackets) {
  const auto listens = [](const std::string& address) {
    return of_site("cluster: {name: city, listen: '" + address + "'}\n");
  };
  EXPECT_THAT(listens("[::1]:7400"), IsEmpty());
  for (const std::string wrong :
       {"::1:7400", "[::1:7400", "::1]:7400", "[]:7400", "[localhost]:7400", "127.0.0.1:99:7400"})
    EXPECT_THAT(
        listens(wrong),
        ElementsAre("3: cluster.listen: expected HOST:PORT ([HOST]:PORT for IPv6), not `" + wrong + '`'));
}

}  // namespace
}  // namespace vigil::config
