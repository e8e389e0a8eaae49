// The command line of `vigil inspect`.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/command.h"
#include "tests/media/clip.h"

namespace vigil::services {
namespace {

struct Outcome {
  int code = 0;
  std::string out;
};

// As `main` does it: parse, then run what was chosen. Parse errors come as CLI::ParseError.
Outcome vigil_inspect(std::vector<std::string> arguments) {
  CLI::App root;
  root.require_subcommand(1);
  Invocation chosen;
  add_inspect(root, chosen);
  // CLI11 takes them from the back.
  std::reverse(arguments.begin(), arguments.end());
  arguments.push_back("inspect");
  root.parse(arguments);
  testing::internal::CaptureStdout();
  try {
    const int code = chosen();
    return {code, testing::internal::GetCapturedStdout()};
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
}

class Inspect : public testing::Test {
 protected:
  void SetUp() override { media::write_clip(video_, {}); }

  media::Scratch scratch_;
  std::string video_ = scratch_ / "clip.mp4";
};

TEST_F(Inspect, PrintsTextOrJson) {
  const Outcome text = vigil_inspect({video_});
  EXPECT_EQ(text.code, kDone);
  EXPECT_THAT(text.out, testing::StartsWith(video_ + "\n  container"));
  const Outcome json = vigil_inspect({video_, "--output", "json"});
  EXPECT_EQ(json.code, kDone);
  EXPECT_EQ(nlohmann::json::parse(json.out)["frames"], 50);
}

TEST_F(Inspect, WritesASheetWhenAsked) {
  const Outcome outcome = vigil_inspect({video_, "--sheet", scratch_ / "sheet.png", "--fps", "2"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(media::read_bytes(scratch_ / "sheet.png"), testing::StartsWith("\x89PNG"));
}

TEST_F(Inspect, EndsAfterSoManySeconds) {
  const auto part =
      nlohmann::json::parse(vigil_inspect({video_, "--output", "json", "--seconds", "0.5"}).out);
  EXPECT_GE(part["seconds"], 0.5);
  EXPECT_LT(part["frames"], 50);
  EXPECT_EQ(part["ended_by"], "limit");
  const auto& types = part["frame_types"];
  EXPECT_EQ(part["frames"], types["I"].get<int>() + types["P"].get<int>() + types["B"].get<int>());
  EXPECT_THAT(vigil_inspect({video_, "--seconds", "0.5"}).out,
              testing::HasSubstr("looked at    the first 0."));
  const auto all = nlohmann::json::parse(vigil_inspect({video_, "--output", "json", "--seconds", "600"}).out);
  EXPECT_EQ(all["frames"], 50);
  EXPECT_EQ(all["ended_by"], "end");
}

TEST_F(Inspect, SaysWhatAPolicyKeeps) {
  const auto all = nlohmann::json::parse(
      vigil_inspect({video_, "--prune", "none", "--size", "84x56", "--output", "json"}).out);
  EXPECT_EQ(all["kept_share"], 1);
  ASSERT_EQ(all["patches"].size(), 2U) << "two seconds at two frames a second";
  EXPECT_EQ(all["patches"][1]["kept"], (std::vector<int>{0, 1, 2, 3, 4, 5}));
  const auto often =
      nlohmann::json::parse(vigil_inspect({video_, "--prune", "none", "--fps", "8", "--output", "json"}).out);
  EXPECT_EQ(often["patches"].size(), 8U);
  EXPECT_EQ(often["patches"][0]["rows"], 16) << "448x448 unless told otherwise";
  const Outcome text =
      vigil_inspect({video_, "--prune", "codecsight", "--seconds", "1", "--sheet", scratch_ / "kept.png"});
  EXPECT_THAT(text.out, testing::StartsWith(video_ + "\n  pruning      codecsight\n  patches      1 of 16"));
  EXPECT_THAT(media::read_bytes(scratch_ / "kept.png"), testing::StartsWith("\x89PNG"));
}

TEST_F(Inspect, WeighsMotionAndResidualsAsItIsTold) {
  const auto kept = [this](std::vector<std::string> more) {
    more.insert(more.begin(), {video_, "--prune", "codecsight", "--fps", "8", "--output", "json"});
    return nlohmann::json::parse(vigil_inspect(more).out)["kept_share"].get<double>();
  };
  const double motion = kept({});
  EXPECT_LT(motion, 1);
  EXPECT_LT(kept({"--motion-threshold", "1000"}), motion);
  EXPECT_GT(kept({"--residual-weight", "1"}), motion);
  EXPECT_THROW(kept({"--residual-weight", "-1"}), CLI::ParseError);
  EXPECT_THROW(vigil_inspect({video_, "--residual-weight", "1"}), CLI::ParseError) << "of --prune alone";
}

TEST_F(Inspect, FailsWithTheFilesName) {
  try {
    vigil_inspect({scratch_ / "missing.mp4"});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_EQ(std::string(error.what()), scratch_ / "missing.mp4: No such file or directory");
  }
}

TEST_F(Inspect, RefusesWrongUsage) {
  EXPECT_THROW(vigil_inspect({}), CLI::ParseError);
  EXPECT_THROW(vigil_inspect({video_, "--output", "xml"}), CLI::ParseError);
  EXPECT_THROW(vigil_inspect({video_, "--fps", "2"}), UsageError);
  EXPECT_THROW(vigil_inspect({video_, "--size", "448x448"}), CLI::ParseError) << "of --prune alone";
  EXPECT_THROW(vigil_inspect({video_, "--prune", "motion"}), CLI::ParseError);
  for (const char* size : {"450x448", "448", "0x28", "28x28x28", "-28x28", "448x 448", "99999999999x28"})
    EXPECT_THROW(vigil_inspect({video_, "--prune", "none", "--size", size}), UsageError) << size;
  EXPECT_THROW(vigil_inspect({video_, "--sheet", "a.png", "--fps", "0"}), CLI::ParseError);
}

}  // namespace
}  // namespace vigil::services
