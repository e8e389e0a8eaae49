// Where questions about the past are taken, and from whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Of the handbook of ZeroMQ (zmq_curve); it has braces and all kinds of other characters.
const std::string kKey = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const std::string kOther(40, 'k');

std::string asker(const std::string& key, const std::string& rest = "tenants: ['*']") {
  return "{key: '" + key + "', " + rest + "}";
}

std::vector<Problem> of_asks(const std::string& asks) {
  return problems_of(minimal() + "asks: {" + asks + "}\n");
}

std::string problem_of(const std::string& asks) {
  const auto problems = of_asks(asks);
  return problems.size() == 1 ? problems.front().message : std::to_string(problems.size()) + " problems";
}

TEST(Load, QuestionsAreTakenOnThisMachineUnlessMoreIsSaid) {
  const AskSettings asks = read(minimal()).asks;
  EXPECT_EQ(asks.bind, "tcp://127.0.0.1:5558");
  EXPECT_EQ(asks.secret_key_file, "");
  EXPECT_THAT(asks.askers, IsEmpty());
  EXPECT_EQ(asks.at_once, 4);
}

TEST(Load, EachKeyOfAsksIsTaken) {
  const Settings settings =
      read(minimal() + "asks:\n  bind: tcp://0.0.0.0:{PORT}\n  secret_key_file: asks.key\n" +
               "  at_once: 2\n  askers:\n    - " + asker(kKey, "tenants: [north, south-1], erase: true") +
               "\n    - " + asker(kOther) + '\n',
           [](const std::string& name) {
             return name == "PORT" ? std::optional<std::string>("7000") : std::nullopt;
           });
  const AskSettings& asks = settings.asks;
  EXPECT_EQ(asks.bind, "tcp://0.0.0.0:7000");
  EXPECT_EQ(asks.secret_key_file, "/etc/vigil/asks.key");
  EXPECT_THAT(asks.askers, ElementsAre(AskerSettings{kKey, {"north", "south-1"}, true},
                                       AskerSettings{kOther, {"*"}, false}));
  EXPECT_EQ(asks.at_once, 2);
  const std::string printed = effective(settings);
  EXPECT_EQ(read(printed).asks, asks);
  EXPECT_EQ(effective(read(printed)), printed);
  EXPECT_EQ(read(minimal() + "asks: {bind: ''}\n").asks.bind, "") << "none are taken";
}

TEST(Load, BracesInAnAskersKeyAreNoVariables) {
  const std::string key = "rq:rM>}U?@Lns47E1%kR.o@n%{SITE}/@{H8]yf7";
  const Settings settings =
      read(minimal() + "asks: {secret_key_file: k, askers: [" + asker(key) + "]}\n", kSecret);
  EXPECT_EQ(settings.asks.askers.front().key, key);
}

TEST(Load, WhatIsWrongWithAsksIsSaidWithItsLine) {
  EXPECT_THAT(
      problems_of(minimal() +
                  "asks:\n  bind: 5558\n  at_once: 0\n  secret_key_file: k\n  allow: []\n"
                  "  askers:\n    - {tenants: [], erase: perhaps}\n    - {key: hunter2, tenants: [a/b]}\n"),
      ElementsAre(
          Problem{7, 9, "asks.bind: expected tcp://HOST:PORT or ipc:///PATH, or nothing, not `5558`"},
          Problem{8, 12, "asks.at_once: expected a whole number from 1 to 1024, not `0`"},
          Problem{10, 3, "asks.allow: unknown key; legal keys: askers, at_once, bind, secret_key_file"},
          Problem{12, 7, "asks.askers[0].key: is missing"},
          Problem{12, 28, "asks.askers[0].erase: expected true or false, not `perhaps`"},
          Problem{13, 13,
                  "asks.askers[1].key: expected a public CURVE key, 40 characters of Z85 (vigil keygen)"},
          Problem{13, 32, "asks.askers[1].tenants: expected a tenant's name, or \"*\" for all, not `a/b`"}));
  EXPECT_EQ(problem_of("secret_key_file: k, askers: [{key: " + kOther + "}]"),
            "asks.askers[0].tenants: is missing");
}

TEST(Load, AnAskerNamesTenantsOrAll) {
  const auto with = [](const std::string& tenants) {
    return problem_of("secret_key_file: k, askers: [" + asker(kKey, "tenants: " + tenants) + ']');
  };
  for (const char* none : {"[]", ""})
    EXPECT_EQ(with(none), "asks.askers[0].tenants: names none; expected a tenant's name, or \"*\" for all");
  EXPECT_EQ(with("[north, '*']"), "asks.askers[0].tenants: `*` is all of them; leave it out, or the others");
  EXPECT_EQ(with("[north, north]"), "asks.askers[0].tenants: `north` is there twice");
  EXPECT_EQ(with("north"),
            "asks.askers[0].tenants: expected a list, each a tenant's name, or \"*\" for all, not `north`");
  EXPECT_EQ(with("['*']"), "0 problems");
}

TEST(Load, EachAskerIsThereOnce) {
  const auto problems = problems_of(minimal() + "asks:\n  secret_key_file: k\n  askers:\n    - " +
                                    asker(kKey, "tenants: [north]") + "\n    - " + asker(kOther) +
                                    "\n    - " + asker(kKey, "tenants: [south]") + '\n');
  EXPECT_THAT(problems,
              ElementsAre(Problem{11, 13, "asks.askers[2].key: is there twice; the first is in line 9"}));
}

TEST(Load, QuestionsComeFromOtherMachinesWithKeysOnly) {
  for (const char* bind : {"tcp://0.0.0.0:5558", "tcp://10.0.0.7:5558", "tcp://*:5558", "tcp://[::]:5558"}) {
    const std::string at = std::string("bind: '") + bind + '\'';
    EXPECT_EQ(problem_of(at),
              std::string("asks.bind: `") + bind +
                  "` is beyond this machine and not encrypted; give `secret_key_file: FILE` and "
                  "`askers`");
    EXPECT_EQ(problem_of(at + ", secret_key_file: k"), "asks.askers: is missing; nobody could ask");
    EXPECT_EQ(problem_of(at + ", secret_key_file: k, askers: [" + asker(kKey) + ']'), "0 problems");
  }
  for (const char* bind : {"''", "'tcp://127.0.0.1:1'", "'tcp://[::1]:1'", "'ipc:///run/asks'"})
    EXPECT_EQ(problem_of(std::string("bind: ") + bind), "0 problems") << bind;
  EXPECT_EQ(problem_of("secret_key_file: k"), "asks.askers: is missing; nobody could ask");
  EXPECT_EQ(problem_of("askers: [" + asker(kKey) + ']'),
            "asks.secret_key_file: is missing; without it, nobody knows who asks");
}

TEST(Load, AKeyInPlaceOfThatOfAsksIsNotShown) {
  for (const Problem& problem : of_asks("secret_key_file: '" + kKey + "', askers: [" + asker(kOther) + ']'))
    EXPECT_EQ(problem, (Problem{6, 25, "asks.secret_key_file: a key stands where its file is expected"}));
  for (const std::string& key : {kKey.substr(1), kKey + 'x', "hunter2" + std::string(33, '~')})
    for (const Problem& problem : of_asks("secret_key_file: k, askers: [" + asker(key) + ']'))
      EXPECT_THAT(problem.message, Not(HasSubstr(key))) << key;
}

}  // namespace
}  // namespace vigil::config
