#include "config/running/snoozes.h"

#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/timestamp.h"
#include "tests/temporary_folder.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

base::Clock::WallTime at(const char* time) {
  return base::parse_rfc3339(time).value();
}

const base::Clock::WallTime kNoon = at("2026-08-01T12:00:00Z");

class SnoozeFile : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream stream(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  const TemporaryFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
  const std::filesystem::path file_ = snooze_file(folder_ / "site.yaml");
};

Settings site() {
  Settings settings;
  for (const char* name : {"gate", "yard"}) {
    CameraSettings& camera = settings.cameras.emplace_back();
    camera.name = name;
    for (const char* rule : {"car", "person"}) camera.rules.emplace_back().name = rule;
  }
  return settings;
}

TEST(Snoozes, ReadTheirLines) {
  const Snoozes read = parse_snoozes(
      "# words\n\nyard/car 2026-08-01T12:00:00+02:00\ngate 2026-08-01T12:00:00Z\n"
      "yard/car 2026-08-01T12:00:00Z\ngate/car 2026-08-01T12:00:00Z",
      "s");
  EXPECT_THAT(read.faults, IsEmpty());
  EXPECT_THAT(read.entries, ElementsAre(Snooze{"gate", "", kNoon}, Snooze{"gate", "car", kNoon},
                                        Snooze{"yard", "car", kNoon}))
      << "the last line of a target counts";
}

TEST(Snoozes, ALineThatIsNoneChangesNothingAndIsNamed) {
  for (const std::string& line :
       {std::string("gate"), std::string("gate "), std::string("gate tomorrow"),
        std::string(" gate 2026-08-01T12:00:00Z"), std::string("gate/ 2026-08-01T12:00:00Z"),
        std::string("/car 2026-08-01T12:00:00Z"), std::string("gate/car/x 2026-08-01T12:00:00Z"),
        std::string("gate 2026-08-01T12:00:00Z "), std::string("gate\t2026-08-01T12:00:00Z"),
        std::string("g\0te 2026-08-01T12:00:00Z", 25), std::string(10'000, 'x'),
        std::string("gate 2026-08-01T12:00:00Z\r")}) {
    const Snoozes read = parse_snoozes("yard 2026-08-01T12:00:00Z\n" + line + "\n", "site.yaml.snoozes");
    EXPECT_EQ(read.entries.size(), 1U) << line;
    EXPECT_THAT(read.faults, ElementsAre(HasSubstr("site.yaml.snoozes:2: expected CAMERA TIME"))) << line;
  }
}

TEST(Snoozes, SilenceACameraOrARuleUntilTheLaterTime) {
  Settings settings = site();
  settings.cameras[0].rules[0].snooze_until = kNoon + 1h;
  settings.cameras[1].snooze_until = kNoon - 1h;
  apply_snoozes(settings, {{"gate", "car", kNoon},
                           {"gate", "person", kNoon},
                           {"yard", "", kNoon},
                           {"gone", "", kNoon},
                           {"gate", "gone", kNoon}});
  const CameraSettings& gate = settings.cameras[0];
  EXPECT_EQ(gate.snoozed_until(gate.rules[0]), kNoon + 1h) << "the configuration's is later";
  EXPECT_EQ(gate.snoozed_until(gate.rules[1]), kNoon);
  EXPECT_EQ(gate.snooze_until, std::nullopt);
  const CameraSettings& yard = settings.cameras[1];
  EXPECT_EQ(yard.snoozed_until(yard.rules[0]), kNoon);
  EXPECT_EQ(yard.snoozed_until(yard.rules[1]), kNoon);
}

TEST(Snoozes, ATargetIsOneOfTheConfiguration) {
  EXPECT_TRUE(has_target(site(), {"gate", "", {}}));
  EXPECT_TRUE(has_target(site(), {"gate", "car", {}}));
  EXPECT_FALSE(has_target(site(), {"gate", "dog", {}}));
  EXPECT_FALSE(has_target(site(), {"door", "", {}}));
  EXPECT_EQ(parse_target("gate/car")->target(), "gate/car");
  for (const char* text : {"", "/", "gate/", "/car", "a/b/c", "a b", "-x"})
    EXPECT_EQ(parse_target(text), std::nullopt) << text;
}

TEST(Snoozes, OfTheConfigurationAreCamerasAndRules) {
  Settings settings = site();
  EXPECT_THAT(configured_snoozes(settings), IsEmpty());
  settings.cameras[0].rules[1].snooze_until = kNoon;
  settings.cameras[1].snooze_until = kNoon + 1h;
  EXPECT_THAT(configured_snoozes(settings),
              ElementsAre(Snooze{"gate", "person", kNoon}, Snooze{"yard", "", kNoon + 1h}));
}

TEST(Snoozes, ARuleIsSilentWithItsCamera) {
  const Snooze whole{"gate", "", kNoon};
  EXPECT_EQ(snooze_of_camera({whole}, {"gate", "car", {}}), whole);
  EXPECT_EQ(snooze_of_camera({whole}, {"yard", "car", {}}), std::nullopt);
  EXPECT_EQ(snooze_of_camera({whole}, {"gate", "", {}}), std::nullopt) << "that is its own";
  EXPECT_EQ(snooze_of_camera({{"gate", "person", kNoon}}, {"gate", "car", {}}), std::nullopt);
}

TEST_F(SnoozeFile, KeepsWhatIsSetAndLifted) {
  EXPECT_THAT(read_snoozes(file_).entries, IsEmpty()) << "no file";
  change_snoozes(file_, [](auto& entries) {
    put(entries, {"gate", "", kNoon});
    put(entries, {"gate", "car", kNoon});
    put(entries, {"yard", "car", kNoon + 1h});
  });
  EXPECT_THAT(text(),
              HasSubstr("\ngate 2026-08-01T12:00:00.000Z\ngate/car 2026-08-01T12:00:00.000Z\nyard/car "));
  change_snoozes(file_, [](auto& entries) {
    forget_past(entries, kNoon - 1h);
    EXPECT_EQ(entries.size(), 3U);
    EXPECT_FALSE(lift(entries, {"gate", "person", {}}));
    EXPECT_TRUE(lift(entries, {"gate", "car", {}}));
    put(entries, {"gate", "person", kNoon});
    EXPECT_TRUE(lift(entries, {"gate", "", {}})) << "with those of its rules";
  });
  EXPECT_THAT(read_snoozes(file_).entries, ElementsAre(Snooze{"yard", "car", kNoon + 1h}));
  change_snoozes(file_, [](auto& entries) { forget_past(entries, kNoon + 1h); });
  EXPECT_THAT(read_snoozes(file_).entries, IsEmpty());
}

TEST_F(SnoozeFile, AFileThatCannotBeReadIsNotOverwritten) {
  // As somebody would write it by hand.
  std::ofstream(file_) << "gate tomorrow\n";
  EXPECT_THROW(change_snoozes(file_, [](auto& entries) { entries.clear(); }), std::runtime_error);
  EXPECT_EQ(text(), "gate tomorrow\n");
  std::filesystem::remove(file_);
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THAT(read_snoozes(file_).faults, ElementsAre(HasSubstr("is no regular file")));
  EXPECT_THROW(change_snoozes("/nowhere/at/all.snoozes", [](auto&) {}), std::runtime_error);
}

TEST_F(SnoozeFile, NoBitOfItCanChangeUnseen) {
  change_snoozes(file_, [](auto& entries) {
    put(entries, {"gate", "", kNoon});
    put(entries, {"yard", "car", kNoon + 1h});
  });
  const std::string whole = text();
  ASSERT_EQ(read_snoozes(file_).entries.size(), 2U);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    std::ofstream(file_, std::ios::binary) << flipped;
    const Snoozes read = read_snoozes(file_);
    ASSERT_THAT(read.entries, IsEmpty()) << bit;
    ASSERT_THAT(read.faults, ElementsAre(HasSubstr("does not fit its checksum"))) << bit;
  }
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    std::ofstream(file_, std::ios::binary) << whole.substr(0, bytes);
    ASSERT_THAT(read_snoozes(file_).faults, ElementsAre(HasSubstr("does not fit its checksum"))) << bytes;
  }
}

TEST_F(SnoozeFile, WhatTwoSetAtOnceIsBothKept) {
  std::vector<std::thread> setters;
  for (const char* camera : {"a", "b", "c", "d"}) {
    setters.emplace_back([this, camera] {
      for (int i = 0; i < 10; ++i) {
        change_snoozes(file_, [&](auto& entries) { put(entries, {camera, "r" + std::to_string(i), kNoon}); });
      }
    });
  }
  for (std::thread& setter : setters) setter.join();
  EXPECT_EQ(read_snoozes(file_).entries.size(), 40U);
}

}  // namespace
}  // namespace vigil::config
