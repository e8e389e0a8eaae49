#include "actors/camera/audit_clock.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/camera/cameras.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

/// The ends of the windows that patches of a second belong to, up to then.
std::vector<double> ends(AuditClock clock, int until) {
  std::set<double> ends;
  for (int at = 0; at < until; ++at)
    if (const auto end = clock.window_at(at, 0)) ends.insert(*end);
  return {ends.begin(), ends.end()};
}

TEST(AuditClockTest, OneWindowInSoManyIsAuditedAndIsChosenBeforeItBegins) {
  EXPECT_THAT(ends({40, 8, 10, 0}, 400), ElementsAre(80, 160, 240, 320, 400));
  EXPECT_THAT(ends({40, 8, 10, 0.5}, 400), ElementsAre(40, 120, 200, 280, 360)) << "the first of all is one";
  AuditClock clock(40, 8, 10, 0);
  EXPECT_EQ(clock.window_at(0, 1), std::nullopt);
  EXPECT_EQ(clock.window_at(38, 1), std::nullopt);
  EXPECT_EQ(clock.window_at(39, 1), 80) << "it may turn out to be the first one of the window";
  EXPECT_EQ(clock.window_at(79.9, 1), 80);
  EXPECT_EQ(clock.window_at(80, 1), std::nullopt);
  // A camera that joins in the middle of one waits for the next.
  EXPECT_EQ(AuditClock(40, 8, 10, 0).window_at(41, 1), std::nullopt);
}

TEST(AuditClockTest, NeverTwoThatOverlap) {
  EXPECT_THAT(ends({40, 8, 1, 0}, 200), ElementsAre(40, 80, 120, 160, 200));
  EXPECT_THAT(ends({40, 8, 2, 0}, 240), ElementsAre(48, 96, 144, 192, 240)) << "the next one that begins";
  EXPECT_THAT(ends({4, 8, 1, 0}, 32), ElementsAre(8, 16, 24, 32)) << "windows with gaps between them";
}

TEST(AuditClockTest, NoneWhereThereIsNothingToAudit) {
  EXPECT_EQ(AuditClock().window_at(0, 1), std::nullopt);
  EXPECT_EQ(AuditClock(40, 8, 0, 0).window_at(0, 1), std::nullopt);
  auto settings = camera();
  settings->stream.pruning.audit = 1;
  settings->stream.pruning.policy = config::Pruning::none;
  settings->stream.pruning.refresh = config::Refresh::all;
  EXPECT_EQ(audits_of(*settings).window_at(0, 1), std::nullopt) << "all of every window is computed";
  settings->stream.pruning.refresh = config::Refresh::none;
  EXPECT_EQ(audits_of(*settings).window_at(0, 1), 4);
  settings->stream.pruning = {.policy = config::Pruning::scene, .audit = 1};
  EXPECT_EQ(audits_of(*settings).window_at(0, 1), 4);
  settings->stream.window.memory = 10min;
  EXPECT_EQ(audits_of(*settings).window_at(0, 1), std::nullopt) << "its rules see what no window shows";
}

TEST(AuditClockTest, AFleetsAreSpread) {
  auto settings = camera();
  settings->stream.pruning = {.policy = config::Pruning::scene, .audit = 50};
  std::map<double, int> at;
  for (int i = 0; i < 500; ++i) {
    settings->name = "camera-" + std::to_string(i);
    at[ends(audits_of(*settings), 102).front()] += 1;
  }
  EXPECT_GT(at.size(), 45U);
  for (const auto& [end, cameras] : at) EXPECT_LT(cameras, 30) << end;
}

TEST_F(CameraTest, WhatItSendsOfAnAuditedWindowSaysSo) {
  sources_.add(url_, frames(std::vector<int>(28, 1)));
  auto settings = camera();
  settings->stream.pruning = {.policy = config::Pruning::scene, .audit = 1};
  Camera gate = make(settings);
  gate.grant(8);
  run(gate);
  std::vector<std::optional<double>> audits;
  audits.reserve(patches_.size());
  for (const FramePatchPtr& patch : patches_) audits.push_back(patch->audit);
  EXPECT_THAT(audits, ElementsAre(4, 4, 4, 4, 8, 8, 8, 8));
  patches_.clear();
  settings_ = std::make_shared<OwnCamera>(*settings);
  settings_->stream.pruning.audit = 0;
  gate.alter(settings_, watched(*settings_, 2));
  gate.grant(6);
  run(gate);
  ASSERT_EQ(patches_.size(), 6U);
  for (const FramePatchPtr& patch : patches_) EXPECT_EQ(patch->audit, std::nullopt) << "none any more";
}

TEST_F(CameraTest, AWindowThatGetsAMemoryIsAuditedNoMoreAndThenAgain) {
  sources_.add(url_, frames(std::vector<int>(36, 1)));
  auto settings = camera();
  settings->stream.pruning = {.policy = config::Pruning::scene, .audit = 1};
  Camera gate = make(settings);
  const auto audits = [&](base::Duration memory, std::uint64_t version) {
    patches_.clear();
    settings_ = std::make_shared<OwnCamera>(*settings);
    settings_->stream.window.memory = memory;
    gate.alter(settings_, watched(*settings_, version));
    gate.grant(6);
    run(gate);
    return std::count_if(patches_.begin(), patches_.end(),
                         [](const auto& each) { return each->audit.has_value(); });
  };
  EXPECT_GT(audits(0s, 1), 0);
  EXPECT_EQ(audits(10min, 2), 0);
  EXPECT_GT(audits(0s, 3), 0);
}

TEST_F(CameraTest, AuditsMakeItPruneLessAndMoreAgain) {
  sources_.add(url_, frames(std::vector<int>(20, 1)));
  Camera gate = make(pruned());
  const auto hear = [&](int less) {
    PatchAck ack = ack_of(*patches_.back(), PatchOutcome::encoded);
    ack.advice.less = less;
    gate.acknowledge(ack);
    run(gate, patches_.size() + 1);
  };
  gate.grant(1);
  run(gate);
  for (const int less : {0, 0, 1, 1, 0, 0}) hear(less);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 0, 2, 2, 2, 0)) << "whole, and then as a camera that begins";
}

}  // namespace
}  // namespace vigil::actors
