#include "actors/supervisor/camera_log.h"

#include <sstream>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;

class CameraLogTest : public ::testing::Test {
 protected:
  CameraLogTest() { logger_.set_pattern("%l %v"); }

  /// What was logged since the last call.
  std::string take() {
    const std::string text = text_.str();
    text_.str("");
    return text;
  }

  Fleet::Change change(CameraState state, const std::string& reason = "") const {
    return {.watch = gate_, .state = state, .reason = reason};
  }

  ManualClock clock_;
  WatchPtr gate_ = watch("gate");
  std::ostringstream text_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
  CameraLog log_{logger_, clock_};
};

TEST_F(CameraLogTest, TroubleIsLouderThanWhatWasAskedFor) {
  log_.changed(change(CameraState::down, "refused"), false);
  EXPECT_EQ(take(), "warning camera gate: down: refused\n");
  log_.changed(change(CameraState::down, "end of file"), true);
  EXPECT_EQ(take(), "info camera gate: down\n");
  auto leaving = change(CameraState::down, "stopped");
  leaving.leaving = true;
  log_.changed(leaving, false);
  EXPECT_EQ(take(), "info camera gate: down\n");
  log_.changed(change(CameraState::stalled, "silent for 10s"), true);
  EXPECT_EQ(take(), "warning camera gate: stalled: silent for 10s\n");
}

TEST_F(CameraLogTest, WhoWasToldOfALossIsToldOfTheReturn) {
  log_.changed(change(CameraState::up), false);
  EXPECT_EQ(take(), "info camera gate: up\n");
  auto recovered = change(CameraState::up);
  recovered.recovered = true;
  log_.changed(recovered, false);
  EXPECT_EQ(take(), "warning camera gate: up\n");
}

TEST_F(CameraLogTest, TellsWhetherACameraIsRecorded) {
  log_.recorded({"gate", true, ""}, *gate_);
  log_.recorded({"gate", false, "refused"}, *gate_);
  EXPECT_EQ(take(), "info camera gate: recorded\nwarning camera gate: not recorded: refused\n");
}

TEST_F(CameraLogTest, LinesOfCamerasAreBoundedAndWhatIsLeftOutIsCounted) {
  for (std::size_t i = 0; i < CameraLog::kMostLines + 7; ++i)
    log_.changed(change(CameraState::down, "refused"), false);
  const std::string lines = take();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), static_cast<long>(CameraLog::kMostLines));
  log_.exhausted(true);
  log_.exhausted(false);
  EXPECT_EQ(take(),
            "error no file descriptor is left: cameras that are down wait until there is one (ulimit -n)\n"
            "warning there are file descriptors again: cameras that waited for them are opened\n")
      << "no bound on lines about each hides what concerns all";
  log_.tick();
  EXPECT_EQ(take(), "") << "the minute is not over";
  clock_.advance(CameraLog::kSpan);
  log_.tick();
  EXPECT_EQ(
      take(),
      "warning cameras: 7 more lines in the last minute are left out; /status tells the state of each\n");
}

TEST_F(CameraLogTest, WhatIsNotLoggedCostsNoLine) {
  logger_.set_level(spdlog::level::warn);
  for (std::size_t i = 0; i < 2 * CameraLog::kMostLines; ++i) log_.changed(change(CameraState::up), false);
  log_.changed(change(CameraState::down, "refused"), false);
  EXPECT_EQ(take(), "warning camera gate: down: refused\n");
}

}  // namespace
}  // namespace vigil::actors
