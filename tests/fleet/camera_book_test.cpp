// A node's own cameras: by which configuration they are opened, and with which secrets.
#include "fleet/node/camera_book.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/references.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::ManualClock;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
class CameraBookTest : public ::testing::Test {
 protected:
  static config::CameraSettings camera(const std::string& name, const std::string& password = "") {
    config::CameraSettings camera;
    camera.name = name;
    camera.inputs = {{{"rtsp://h/" + name, "rtsp://h/" + name}}};
    camera.rules.resize(1);
    camera.rules[0].name = "person";
    if (!password.empty()) {
      camera.username = {"viewer", "***"};
      camera.password = {password, "***"};
    }
    return camera;
  }
  static SettingsPtr settings(std::vector<config::CameraSettings> cameras) {
    config::Settings settings;
    settings.cameras = std::move(cameras);
    return std::make_shared<const config::Settings>(settings);
  }
  static config::CameraSettings in_file(const std::string& name) {
    config::CameraSettings with = camera(name);
    with.username = {"viewer", "***"};
    with.password_file = "/run/" + name;
    return with;
  }

  config::CameraSettings resolve(config::CameraSettings each) {
    resolved_.push_back(each.name);
    const std::string& reference =
        each.password_file.empty() ? each.password.value : each.password_file.string();
    if (reference.empty()) return each;
    const auto secret = secrets_.find(reference);
    if (secret == secrets_.end()) throw std::runtime_error("password: " + reference + " is not there");
    (each.password_file.empty() ? each.password : each.password_read) = {secret->second, "***"};
    return each;
  }

  ManualClock clock_;
  std::map<std::string, std::string> secrets_ = {{"{A}", "one"}, {"/run/c", "three"}};
  std::vector<std::string> resolved_;
  std::vector<std::string> warnings_;
  CameraBook book_{clock_,
                   {.resolve = [this](config::CameraSettings each) { return resolve(std::move(each)); },
                    .warn = [this](const std::string& line) { warnings_.push_back(line); },
                    .again = 10s}};
};

TEST_F(CameraBookTest, LooksForTheSecretsOfThoseAloneThatItOpens) {
  config::CameraSettings off = camera("off");
  off.enabled = false;
  book_.run_by(settings({camera("a", "{A}"), camera("b", "{B}"), off}));
  EXPECT_THAT(book_.names(), ElementsAre("a", "b"));
  EXPECT_EQ(book_.find("off"), nullptr);
  EXPECT_THAT(resolved_, IsEmpty());
  EXPECT_EQ(book_.open("a").url().value, "rtsp://viewer:one@h/a");
  book_.open("a");
  EXPECT_THAT(resolved_, ElementsAre("a"));
  EXPECT_THAT(warnings_, IsEmpty());
  secrets_["{A}"] = "other";
  book_.keep({});
  EXPECT_EQ(book_.open("a").url().value, "rtsp://viewer:other@h/a") << "nothing is kept of one that has gone";
}

TEST_F(CameraBookTest, OneWithoutItsSecretSaysSoAndIsTriedAgain) {
  book_.run_by(settings({camera("b", "{B}")}));
  EXPECT_TRUE(config::is_without_secrets(book_.open("b").url().value));
  EXPECT_EQ(book_.open("b").url().shown, "password: {B} is not there");
  EXPECT_THAT(warnings_, ElementsAre("camera b: password: {B} is not there")) << "once";
  secrets_["{B}"] = "two";
  EXPECT_FALSE(book_.look_again()) << "not all the time";
  clock_.advance(10s);
  EXPECT_TRUE(book_.look_again());
  EXPECT_EQ(book_.open("b").url().value, "rtsp://viewer:two@h/b");
  clock_.advance(10s);
  EXPECT_FALSE(book_.look_again());
}

TEST_F(CameraBookTest, ARefusedCameraStaysAsItWasOpenedLast) {
  config::CameraSettings own = camera("a", "{A}");
  own.stream.fps = 2;
  own.stream.degrade = {{.name = "fewer", .fps = 0.5}};
  book_.run_by(settings({own}));
  EXPECT_EQ(book_.open("a", "refused").stream.fps, 2) << "it was never opened";
  EXPECT_EQ(book_.open("a", "fewer").stream.fps, 1);
  EXPECT_EQ(book_.open("a", "refused").stream.fps, 1);
  clock_.advance(10s);
  book_.look_again();
  book_.run_by(settings({own}));
  EXPECT_EQ(book_.open("a", "refused").stream.fps, 1) << "also by another configuration";
  EXPECT_EQ(book_.open("a").stream.fps, 2);
  EXPECT_EQ(book_.open("a", "refused").stream.fps, 2);
}

TEST_F(CameraBookTest, ASecretInAFileMayBeReplaced) {
  book_.run_by(settings({in_file("c"), camera("a", "{A}")}));
  book_.open("a");
  EXPECT_EQ(book_.open("c").url().value, "rtsp://viewer:three@h/c");
  resolved_.clear();
  clock_.advance(10s);
  EXPECT_FALSE(book_.look_again());
  EXPECT_THAT(resolved_, ElementsAre("c")) << "the environment of a process does not change";
  secrets_.erase("/run/c");
  clock_.advance(10s);
  EXPECT_FALSE(book_.look_again()) << "one that is away for a moment goes on to be used";
  EXPECT_EQ(book_.open("c").url().value, "rtsp://viewer:three@h/c");
  secrets_["/run/c"] = "four";
  clock_.advance(10s);
  EXPECT_TRUE(book_.look_again());
  EXPECT_EQ(book_.open("c").url().value, "rtsp://viewer:four@h/c");
}

TEST_F(CameraBookTest, AnotherConfigurationIsTakenAsAWhole) {
  book_.run_by(settings({camera("a", "{A}"), camera("b")}));
  book_.open("a");
  book_.open("b");
  book_.run_by(settings({camera("a", "{B}"), camera("d")}));
  EXPECT_THAT(book_.names(), ElementsAre("a", "d"));
  EXPECT_TRUE(config::is_without_secrets(book_.open("a").url().value));
  EXPECT_THAT(warnings_, ElementsAre("camera a: password: {B} is not there"));
  EXPECT_EQ(book_.open("d").url().value, "rtsp://h/d");
}

TEST_F(CameraBookTest, AFaultIsOneOfWhatIsOpenAlone) {
  book_.run_by(settings({camera("a", "{A}"), camera("b", "{B}"), camera("e")}));
  book_.open("a");
  book_.open("b");
  EXPECT_EQ(book_.fault_by(*settings({camera("a", "{A}"), camera("e", "{E}")})), "") << "e is another node's";
  EXPECT_EQ(book_.fault_by(*settings({camera("b", "{C}")})), "") << "b cannot be opened as it is";
  EXPECT_EQ(book_.fault_by(*settings({camera("a", "{C}")})), "cameras.a.password: {C} is not there");
  config::CameraSettings off = camera("a", "{C}");
  off.enabled = false;
  EXPECT_EQ(book_.fault_by(*settings({off})), "");
}

TEST_F(CameraBookTest, WhatIsSnoozedIsSilent) {
  book_.run_by(settings({camera("a"), camera("b")}));
  const base::Clock::WallTime until{std::chrono::hours(1)};
  book_.snooze({{"a", "", until}, {"b", "person", until}, {"gone", "", until}});
  EXPECT_EQ(book_.open("a").snooze_until, until);
  EXPECT_EQ(book_.open("b").snooze_until, std::nullopt);
  EXPECT_EQ(book_.open("b").rules[0].snooze_until, until);
  book_.snooze({});
  EXPECT_EQ(book_.open("a").snooze_until, std::nullopt);
}

}  // namespace
}  // namespace vigil::fleet
