// What a camera hears of the devices that its patches go to.
#include "actors/router/router_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class RouterShellTest : public PipelineTest {
 protected:
  RouterShellTest() {
    camera_ = system_.spawn([this](camera_actor::pointer self) -> camera_actor::behavior_type {
      return {[](grant_atom, std::uint32_t) {},         [](const PatchAck&) {},
              [this](anew_atom) { ++anew_; },           [](step_atom) {},
              [](const CameraPtr&, const WatchPtr&) {}, [self](stop_atom) { self->quit(); }};
    });
    caf::send_as(camera_, router_, join_atom_v, watched(*camera("gate", config::Pace::realtime)),
                 std::uint32_t{1});
    settle();
  }
  void TearDown() override {
    for (const vision_actor& device : {one_, two_}) caf::anon_send_exit(device, caf::exit_reason::kill);
    caf::anon_send(camera_, stop_atom_v);
    caf::anon_send(router_, stop_atom_v);
    settle();
  }
  vision_actor device(const std::string& name) {
    return system_.spawn([this, name](vision_actor::pointer) -> vision_actor::behavior_type {
      return {[this, name](join_atom, const WatchPtr&, std::uint32_t) { joined_.push_back(name); },
              [](const WatchPtr&) {}, [](const FramePatchPtr&) {}, [](end_atom, const std::string&) {}};
    });
  }
  void route(const Route& route) {
    caf::anon_send(router_, route);
    settle();
  }

  std::vector<std::string> joined_;
  int anew_ = 0;
  const vision_actor one_ = device("one"), two_ = device("two");
  const router_actor router_ = system_.spawn(router, RouterDeps{metrics_, logger_});
  camera_actor camera_;
};

TEST_F(RouterShellTest, ACameraHearsThatAnotherDeviceHasSeenNothingOfIt) {
  route({"gate", "one", one_});
  EXPECT_THAT(joined_, ElementsAre("one"));
  EXPECT_EQ(anew_, 0) << "its first picture is whole by itself";
  route({"gate", "one", one_});
  EXPECT_EQ(anew_, 0);
  route({"gate", "two", two_});
  EXPECT_THAT(joined_, ElementsAre("one", "two"));
  EXPECT_EQ(anew_, 1);
}

TEST_F(RouterShellTest, ADeviceThatHasFilledBesideTheOtherIsNoOther) {
  route({"gate", "one", one_});
  route({"gate", "two", two_, "one", one_});
  EXPECT_THAT(joined_, ElementsAre("one", "two"));
  EXPECT_EQ(anew_, 0) << "what that one lacks it says itself";
  route({"gate", "two", two_});
  EXPECT_EQ(anew_, 0) << "it has most of it";
}

}  // namespace
}  // namespace vigil::actors
