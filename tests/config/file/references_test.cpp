// Secrets of cameras that are put in by whoever opens them.
#include "config/file/references.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/file/texts.h"
#include "tests/temporary_folder.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Settings kept(const std::string& cameras, const Environment& environment = kNothing) {
  return parse("model: m\nrules: [{name: r, prompt: p}]\ncameras:\n" + cameras, "/etc/vigil/site.yaml",
               environment, {}, Unset::problem, Secrets::kept);
}

std::string why_not(const CameraSettings& camera, const Environment& environment = kNothing) {
  try {
    with_secrets(camera, environment, "/etc/vigil");
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(References, StayAsTheyStandUntilSomebodyOpensTheCamera) {
  const Settings settings = kept(
      "  gate: {url: 'rtsp://10.0.0.1/live?key={GATE_PASSWORD}', username: viewer, password: "
      "'{GATE_PASSWORD}'}\n"
      "  yard: {url: '{SITE}/yard.mp4'}\n"
      "  roof: {url: roof.mp4}\n"
      "  dock: {url: 'rtsp://h/', username: '{SITE}', password_file: '{SITE}/dock'}\n",
      kSecret);
  const CameraSettings& gate = settings.cameras[0];
  EXPECT_EQ(gate.password.value, "{GATE_PASSWORD}") << "although it is set here";
  EXPECT_EQ(gate.password.shown, "***");
  EXPECT_EQ(gate.url().shown, "rtsp://***@10.0.0.1/live?***");
  EXPECT_THAT(effective(settings), Not(HasSubstr("hunter2")));
  EXPECT_EQ(settings.cameras[2].url().value, "/etc/vigil/roof.mp4");
  EXPECT_EQ(settings.cameras[3].password_file, "{SITE}/dock");

  const CameraSettings open = with_secrets(gate, kSecret, "/etc/vigil");
  EXPECT_EQ(open.url().value, "rtsp://viewer:hunter2@10.0.0.1/live?key=hunter2");
  EXPECT_EQ(open.url().shown, "rtsp://***@10.0.0.1/live?***");
  EXPECT_EQ(with_secrets(settings.cameras[1], kSecret, "/etc/vigil").url().value,
            "/etc/vigil/north/yard.mp4");
  EXPECT_EQ(with_secrets(settings.cameras[2], kNothing, "/etc/vigil"), settings.cameras[2]);
}

TEST(References, AreLookedAtWhenTheyArePutIn) {
  const Settings settings = kept(
      "  gate: {url: 'rtsp://h/', username: viewer, password: '{GATE_PASSWORD}'}\n"
      "  yard: {url: '{SITE}'}\n"
      "  dock: {url: 'rtsp://h/', username: '{USER}', password: '{GATE_PASSWORD}'}\n");
  EXPECT_EQ(why_not(settings.cameras[0]), "password: the environment variable GATE_PASSWORD is not set");
  const auto says = [](const std::string& text) {
    return [text](const std::string&) { return std::optional(text); };
  };
  EXPECT_THAT(why_not(settings.cameras[0], says("hunter2\n")),
              AllOf(HasSubstr("password: expected"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(why_not(settings.cameras[1], says("hunter2@gate")),
              AllOf(HasSubstr("url: expected"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(why_not(settings.cameras[2], says("a:b")), HasSubstr("username: expected a user's name"));
}

TEST(References, WhatIsNoSecretOfACameraIsPutInAtOnce) {
  const auto parsed = [](const std::string& text) {
    return parse(text, "/etc/vigil/site.yaml", kSecret, {}, Unset::problem, Secrets::kept);
  };
  const Settings settings = parsed(
      "name: '{SITE}'\nmodel: '{SITE}'\nrules: [{name: r, prompt: p}]\n"
      "cameras: {gate: {url: x, tls: {ca_file: '{SITE}/ca'}}}\n"
      "cluster: {registry: {username: u, password: '{GATE_PASSWORD}'}}\n");
  EXPECT_EQ(settings.name, "north");
  EXPECT_EQ(settings.model, "/etc/vigil/north");
  EXPECT_EQ(settings.cluster.registry.password.value, "hunter2");
  EXPECT_EQ(settings.cameras[0].stream.tls.ca_file, "/etc/vigil/north/ca");
  EXPECT_THROW(parsed("model: '{NONE}'\nrules: [{name: r, prompt: p}]\ncameras: {gate: {url: x}}\n"),
               ConfigError);
}

class PasswordFileTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) const {
    std::ofstream(folder_.path() / "gate", std::ios::binary) << content;
    return folder_.path() / "gate";
  }
  std::string fault(const std::filesystem::path& path) const {
    try {
      password_in(path);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  const TemporaryFolder folder_;
};

TEST_F(PasswordFileTest, HoldsAPasswordAndNothingElse) {
  for (const char* content : {"hun ter2", "hun ter2\n", "hun ter2\r\n"})
    EXPECT_EQ(password_in(file(content)).value, "hun ter2");
  EXPECT_EQ(password_in(file("{NAME}")).value, "{NAME}") << "it is no reference again";
  EXPECT_EQ(password_in(file("hunter2")).shown, "***");
  for (const std::string& content :
       {std::string(), std::string("\n"), std::string("hunter2\n\n"), std::string("hunter2\nuser: x\n"),
        std::string("hunter2\0", 8), std::string(5000, 'x')})
    EXPECT_THAT(fault(file(content)), AllOf(HasSubstr("holds no password"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(fault(folder_.path() / "none"), HasSubstr("none: no such file"));
  EXPECT_THAT(fault(folder_.path()), HasSubstr("not a regular file"));
}

TEST_F(PasswordFileTest, StandsForThePassword) {
  const std::string path = file("p@ss\n").string();
  const std::string text =
      "  gate: {url: 'rtsp://h/live', username: viewer, password_file: '" + path + "'}\n";
  const Settings settings = read("model: m\nrules: [{name: r, prompt: p}]\ncameras:\n" + text);
  EXPECT_EQ(settings.cameras[0].url().value, "rtsp://viewer:p%40ss@h/live");
  EXPECT_THAT(effective(settings), AllOf(HasSubstr(path), Not(HasSubstr("p@ss"))));
  EXPECT_EQ(effective(read(effective(settings))), effective(settings));

  CameraSettings camera = kept(text).cameras[0];
  EXPECT_EQ(camera.url().value, "rtsp://viewer@h/live");
  EXPECT_TRUE(may_change(camera));
  const CameraSettings open = with_secrets(camera, kNothing, "/");
  EXPECT_EQ(open.url().value, "rtsp://viewer:p%40ss@h/live");
  EXPECT_EQ(open.url().shown, "rtsp://***@h/live");
  EXPECT_TRUE(same_stream(open, settings.cameras[0]));
  file("other");
  EXPECT_FALSE(same_stream(with_secrets(camera, kNothing, "/"), open))
      << "another password is another stream";
  std::filesystem::remove(path);
  EXPECT_THAT(why_not(camera), HasSubstr("password_file: " + path + ": no such file"));
}

TEST_F(PasswordFileTest, IsAProblemWhereItIsNeeded) {
  const auto problems = [](const std::string& camera) {
    return problems_of("model: m\nrules: [{name: r, prompt: p}]\ncameras:\n  gate: {url: 'rtsp://h/', " +
                       camera + "}\n");
  };
  EXPECT_THAT(problems("username: u, password_file: none"),
              ElementsAre(Problem{4, 56, "cameras.gate.password_file: /etc/vigil/none: no such file"}));
  EXPECT_THAT(problems("password_file: '" + file("x").string() + "'").at(0).message,
              HasSubstr("username: is missing beside the password"));
  EXPECT_THAT(problems("username: u, password: x, password_file: '" + file("x").string() + "'").at(0).message,
              HasSubstr("password_file: stands beside `password`; give one of the two"));
}

TEST(WithoutSecrets, HasTheReasonForAnAddress) {
  const CameraSettings gate =
      kept("  gate: {url: 'rtsp://{HOST}/live', username: u, password: '{P}'}\n").cameras[0];
  const CameraSettings closed = without_secrets(gate, "password: the environment variable P is not set");
  EXPECT_TRUE(is_without_secrets(closed.url().value));
  EXPECT_FALSE(is_without_secrets(gate.url().value));
  EXPECT_EQ(closed.url().shown, "password: the environment variable P is not set");
  EXPECT_FALSE(closed.is_file());
  EXPECT_EQ(closed.rules, gate.rules);
}

}  // namespace
}  // namespace vigil::config
