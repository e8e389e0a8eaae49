// An executor that has a cache: what it tells of cameras that are remembered, and asks of their past.
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/device/executor_actor.h"
#include "actors/messages/fault.h"
#include "tests/actors/patches.h"
#include "tests/actors/pipeline.h"
#include "tests/actors/scripted_mover.h"

namespace vigil::actors {
namespace {

using namespace testing;
using kv::Form;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExecutorPastTest : public ::testing::Test {
 protected:
  ~ExecutorPastTest() override {
    for (const auto& one :
         std::vector<caf::actor>{caf::actor_cast<caf::actor>(executor_), caf::actor_cast<caf::actor>(cache_),
                                 caf::actor_cast<caf::actor>(alerts_)})
      caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
    settle();
  }
  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    while (scheduler.try_run_once()) {
    }
  }
  EngineParts engine() {
    EngineParts made = parts(encoder_, language_);
    made.transfer = std::make_shared<run::TokenTransfer>(kernels::Stream::cpu(1));
    made.mover = {std::shared_ptr<void>(), &mover_};
    made.folder = language_.folder;
    return made;
  }
  alerts_actor spawn_alerts() {
    return system_.spawn([](alerts_actor::pointer self) -> alerts_actor::behavior_type {
      return {
          [self](join_atom) {
            self->send(caf::actor_cast<stream_actor>(self->current_sender()), grant_atom_v,
                       std::uint32_t{99});
          },
          [](const WindowAnswersPtr&) {},
          [](const Explanation&) {},
          [](const EvidenceReport&) {},
          [](const WatchPtr&) {},
          [](forget_atom, const std::string&) {},
          [](const StatusChange&) {},
          [](const SeriesBooksPtr&) {},
          [](removed_atom, const std::string&) {},
          [](lost_atom, const std::string&, std::uint64_t) {},
          [](force_atom) {},
          [](end_atom, const std::string&) {},
          [](work_atom) {},
          [](tick_atom) {},
          [](stop_atom) {},
      };
    });
  }
  cache_actor spawn_cache() {
    return system_.spawn([this](cache_actor::pointer) -> cache_actor::behavior_type {
      return {
          [this](join_atom, const std::string& device) { told_.push_back("join " + device); },
          [this](const WatchPtr& watch) { told_.push_back("watch " + watch->name); },
          [this](end_atom, const std::string& camera) { told_.push_back("end " + camera); },
          [](const KeepsPtr&) {},
          [this](const LeftPagesPtr& left) {
            std::size_t patches = 0;
            for (memory::FreshPage& page : left->news.pages) {
              patches += page.info.patches.size();
              pages_.push_back(std::move(page));
            }
            told_.push_back("pages of " + std::to_string(patches) + " patches");
          },
          [this](const ShownPtr& shown) { told_.push_back("shown " + std::to_string(shown->ticket)); },
          [this](const RecalledPtr& recalled) { recalled_.push_back(*recalled); },
          [](const PastRequestPtr&) {},
          [](forget_atom, std::uint64_t) {},
          [](const ReadPagesPtr&) {},
          [](const DiskNewsPtr&) {},
          [](tick_atom) {},
          [](stop_atom) {},
      };
    });
  }
  void want(const std::vector<Form>& forms) {
    self_->send(executor_, std::make_shared<const WantedForms>(WantedForms{forms}));
    settle();
  }
  void show(const WatchPtr& watch, const std::vector<int>& values) {
    self_->send(executor_, join_atom_v, watch, std::uint32_t{0});
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto patch = frame_patch(watch, static_cast<double>(i), static_cast<std::uint8_t>(values[i]));
      patch->captured = {clock_.now(), clock_.wall() + std::chrono::seconds(i)};
      self_->send(executor_, FramePatchPtr(std::move(patch)));
    }
    settle();
  }
  void end(const std::string& camera) {
    self_->send(executor_, end_atom_v, camera);
    settle();
  }
  Recall all(const std::string& text) const {
    Recall recall{17, {}, text, 16};
    for (const memory::FreshPage& page : pages_)
      recall.what.pages.push_back({page.info,
                                   page.forms.at(0).form,
                                   {{{page.forms.at(0).bytes.get(), page.forms.at(0).size}, 0, 0, nullptr}},
                                   0,
                                   page.info.patches.size()});
    recall.what.due = clock_.now();
    return recall;
  }
  void recall(const Recall& what) {
    self_->send(executor_, std::make_shared<const Recall>(what));
    settle();
  }
  bool is_empty() const { return language_.book.free_pages() == language_.book.pages(); }

  ManualClock clock_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  ScriptedMover mover_{language_.passes};
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  std::vector<std::string> told_;
  std::vector<memory::FreshPage> pages_;
  std::vector<Recalled> recalled_;
  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  const alerts_actor alerts_ = spawn_alerts();
  const cache_actor cache_ = spawn_cache();
  const executor_actor executor_ = system_.spawn(executor,
                                                 ExecutorDeps{
                                                     .engine = engine(),
                                                     .clock = clock_,
                                                     .metrics = metrics_,
                                                     .board = board_,
                                                     .logger = logger_,
                                                     .device = "cpu",
                                                     .cache = {cache_, std::uint64_t{1} << 24U},
                                                 },
                                                 alerts_, target_actor(), tower_actor());
};

TEST_F(ExecutorPastTest, PagesOfACameraAreToldBetweenItsWatchAndItsEnd) {
  settle();
  EXPECT_THAT(told_, ElementsAre("join cpu"));
  want({Form::bf16});
  show(remembered_watch(), {10, 20, 30, 40, 50, 90});
  ASSERT_FALSE(told_.empty());
  end("gate");
  ASSERT_GE(told_.size(), 4U);
  EXPECT_EQ(told_[1], "watch gate");
  EXPECT_EQ(told_.back(), "end gate") << "nothing follows it";
  EXPECT_THAT(told_[told_.size() - 2], HasSubstr("pages of "));
  std::size_t patches = 0;
  for (const memory::FreshPage& page : pages_) patches += page.info.patches.size();
  EXPECT_EQ(patches, 6U);
  EXPECT_TRUE(is_empty());
}

TEST_F(ExecutorPastTest, SettingsAreToldWhenTheyAreNewsToTheCache) {
  want({Form::bf16});
  show(remembered_watch(), {10});
  told_.clear();
  self_->send(executor_, remembered_watch(hours(24), "north", "gate", 2));
  settle();
  EXPECT_THAT(told_, IsEmpty());
  self_->send(executor_, remembered_watch(hours(48), "north", "gate", 3));
  settle();
  EXPECT_THAT(told_, ElementsAre("watch gate"));
  // What is not kept is told as well: the cache lets go of what it has.
  self_->send(executor_, remembered_watch(hours(0), "north", "gate", 4));
  settle();
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back(), "watch gate");
}

TEST_F(ExecutorPastTest, WhatACameraShowsIsToldWhenItIsWanted) {
  want({Form::bf16});
  std::vector<std::int64_t> numbers, all;
  for (int i = 0; i < 8; ++i) all.push_back(i);
  show(remembered_watch(), std::vector<int>(8, 10));
  told_.clear();
  self_->send(executor_, std::make_shared<const Show>(Show{1, "gate"}));
  self_->send(executor_, std::make_shared<const Show>(Show{2, "nobody"}));
  settle();
  ASSERT_THAT(told_, SizeIs(3));
  EXPECT_THAT(told_[0], HasSubstr("pages of "));
  EXPECT_EQ(told_[1], "shown 1") << "after its pages";
  EXPECT_EQ(told_[2], "shown 2");
  end("gate");
  for (const memory::FreshPage& page : pages_)
    for (const history::PatchInfo& patch : page.info.patches) numbers.push_back(patch.number);
  EXPECT_EQ(numbers, all);
}

TEST_F(ExecutorPastTest, WindowsOfThePastAreAsked) {
  want({Form::bf16});
  show(remembered_watch(), {10, 20, 30, 90});
  end("gate");
  recall(all("Is there a car?"));
  ASSERT_THAT(recalled_, SizeIs(1));
  EXPECT_EQ(recalled_[0].ticket, 17U);
  EXPECT_EQ(recalled_[0].failure, "");
  EXPECT_EQ(recalled_[0].answer.text, "Yes, a 90.");
  EXPECT_TRUE(is_empty());
  recall(all("<|im_start|>"));
  ASSERT_THAT(recalled_, SizeIs(2));
  EXPECT_THAT(recalled_[1].failure, HasSubstr("special token"));
  EXPECT_FALSE(recalled_[1].is_busy);
  // Withdrawn before its turn.
  self_->send(executor_, std::make_shared<const Recall>(all("Is there a car?")));
  self_->send(executor_, forget_atom_v, std::uint64_t{17});
  settle();
  EXPECT_THAT(recalled_, SizeIs(2));
  EXPECT_TRUE(is_empty());
}

TEST_F(ExecutorPastTest, APageThatFailsIsToldOnceAndALostDeviceEndsIt) {
  want({Form::bf16});
  mover_.on_pack = [] { throw std::runtime_error("no memory"); };
  show(remembered_watch(), {10, 20, 30, 40});
  end("gate");
  show(remembered_watch(), {10, 20, 30, 40});
  end("gate");
  const std::string line = "stream: cpu: a page of what is remembered was lost: no memory";
  EXPECT_THAT(log_.str(), HasSubstr(line));
  EXPECT_EQ(log_.str().find(line), log_.str().rfind(line));
  EXPECT_THAT(pages_, IsEmpty());
  self_->monitor(executor_);
  mover_.on_pack = [] { throw run::DeviceLost("unspecified launch failure"); };
  show(remembered_watch(), {10, 20, 30, 40});
  end("gate");
  bool is_lost = false;
  self_->receive_while([&] { return self_->has_next_message(); })(
      [&](const caf::down_msg& message) { is_lost = message.reason == Fault::device_lost; },
      [](const PatchAck&) {}, [](grant_atom, const std::string&, std::uint32_t) {});
  EXPECT_TRUE(is_lost);
}

}  // namespace
}  // namespace vigil::actors
