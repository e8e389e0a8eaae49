// Variables of the environment, and secrets, which nothing that is shown holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/values/source.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_THAT(problems_of(text), ::testing::SizeIs(10)) << "each variable is a problem elsewhere";

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
                  HasSubstr("expected HOST:PORT ([HOST]:PORT for IPv6), or nothing for none, not `"))
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

}  // namespace
}  // namespace vigil::config
