// What the shell around a camera does by itself.
#include "actors/camera/camera_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using CameraActorTest = PipelineTest;

TEST_F(CameraActorTest, ACameraWhoseServerNobodyVerifiesIsNamedInTheLog) {
  const auto open = camera("open", config::Pace::realtime, "rtsps://10.0.0.1/live");
  open->stream.tls.insecure = true;
  const auto verified = camera("verified", config::Pace::realtime, "rtsps://10.0.0.2/live");
  verified->stream.tls.ca_file = "/etc/vigil/ca.pem";
  start({open, verified}, /*once=*/false);
  EXPECT_THAT(log_.str(), HasSubstr("[warning] open: `tls: {insecure: true}`: nobody verifies who answers"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("verified: `tls")));
}

/// Stands behind a camera and writes down what comes of it: words with the version of the settings.
router_actor::behavior_type listener(router_actor::pointer self, std::vector<std::string>* heard) {
  const auto hear = [heard](const std::string& what, std::uint64_t version) {
    heard->push_back(what + ' ' + std::to_string(version));
  };
  return {
      [hear](join_atom, const WatchPtr& watch, std::uint32_t) { hear("join", watch->version); },
      [hear](const WatchPtr& watch) { hear("settings", watch->version); },
      [hear](const FramePatchPtr& patch) { hear("patch", patch->watch.version); },
      [heard](end_atom, const std::string&) { heard->emplace_back("end"); },
      [](grant_atom, const std::string&, std::uint32_t) {},
      [](const PatchAck&) {},
      [](const Route&) {},
      [](forget_atom, const std::string&) {},
      [self](stop_atom) { self->quit(); },
  };
}

class CameraShellTest : public ::testing::Test {
 protected:
  CameraShellTest() {
    sources_.add("/clips/gate.mp4", frames({1, 2, 3, 4, 5, 6, 7}));
    CameraOptions options{settings_, watched(*settings_, 1), {2, {}}, true};
    camera_ =
        system_.spawn(actors::camera, options,
                      CameraDeps{sources_.factory(), clock_, metrics_, logger_, std::make_shared<Pulse>()},
                      listener_, supervisor_actor());
    settle();
  }
  ~CameraShellTest() override {
    caf::anon_send(camera_, stop_atom_v);
    caf::anon_send(listener_, stop_atom_v);
    settle();
  }

  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    while (scheduler.try_run_once()) {
    }
  }

  template <class... Message>
  void tell(const Message&... message) {
    caf::anon_send(camera_, message...);
    settle();
  }

  std::shared_ptr<OwnCamera> settings_ = testing::camera("gate");
  ManualClock clock_;
  FakeSources sources_;
  Metrics metrics_;
  spdlog::logger logger_{"test"};
  std::vector<std::string> heard_;
  TestConfig config_;
  caf::actor_system system_{config_};
  router_actor listener_ = system_.spawn(listener, &heard_);
  camera_actor camera_;
};

TEST_F(CameraShellTest, SendsSettingsOnceAndAheadOfTheFirstPatchThatRefersToThem) {
  EXPECT_THAT(heard_, ElementsAre("join 1"));
  tell(grant_atom_v, std::uint32_t{1});
  tell(CameraPtr(settings_), watched(*settings_, 2));
  tell(CameraPtr(settings_), watched(*settings_, 3));
  EXPECT_THAT(heard_, ElementsAre("join 1", "patch 1")) << "nothing refers to the others yet";
  tell(grant_atom_v, std::uint32_t{9});
  EXPECT_THAT(heard_, ElementsAre("join 1", "patch 1", "settings 3", "patch 3", "patch 3", "patch 3", "end"));
}

TEST_F(CameraShellTest, TellsANewFenceAtOnceAndGoesOnWithItInThePatchThatIsBegun) {
  tell(grant_atom_v, std::uint32_t{1});
  EXPECT_THAT(heard_, ElementsAre("join 1", "patch 1"));
  const std::uint64_t next = version_of(7, 1);
  tell(CameraPtr(settings_), watched(*settings_, next));
  const std::string version = std::to_string(next);
  EXPECT_THAT(heard_, ElementsAre("join 1", "patch 1", "settings " + version))
      << "without credit for a patch";
  tell(grant_atom_v, std::uint32_t{1});
  EXPECT_THAT(heard_, ElementsAre("join 1", "patch 1", "settings " + version, "patch " + version));
}

}  // namespace
}  // namespace vigil::actors
