// A pipeline whose cameras are others' before and after: what its alerts say of their ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/alerts/books.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class ClaimsPipeline : public PipelineTest {
 protected:
  ClaimsPipeline() {
    claims_ = system_.spawn([this](claims_actor::pointer self) -> claims_actor::behavior_type {
      return {[this, self](claim_atom, const std::string& camera, std::uint64_t fence) {
        claimed_.push_back(camera + ' ' + std::to_string(fence));
        self->send(caf::actor_cast<alerts_actor>(self->current_sender()),
                   std::make_shared<const SeriesBooks>(SeriesBooks{camera, fence, 0, 0, {}, {}}));
      }};
    });
  }
  void TearDown() override {
    PipelineTest::TearDown();
    caf::anon_send_exit(claims_, caf::exit_reason::user_shutdown);
    settle();
    claims_ = nullptr;
  }
  CameraPtr owned(const std::string& name, std::uint64_t fence, int stride = 0) {
    auto own = camera(name, config::Pace::realtime, name);
    own->tenure.fence = fence;
    if (stride > 0) own->stream.window.stride = std::chrono::seconds(stride);
    return own;
  }
  void reload(const CameraList& list) {
    caf::anon_send(supervisor_, reload_atom_v, list);
    pass(2s);
  }

  std::vector<std::string> claimed_;
};

TEST_F(ClaimsPipeline, ACameraThatMovesLeavesAllOpenAndOneThatIsRemovedEnds) {
  const std::vector<int> always(200, 90);
  for (const char* name : {"gate", "yard"}) sources_.add(name, frames(always));
  start({owned("gate", 7), owned("yard", 8)}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(claimed_, ::testing::UnorderedElementsAre("gate 7", "yard 8"));
  EXPECT_THAT(told("alert/"), ::testing::AllOf(Contains("gate/person new"), Contains("yard/person new")));
  reload({{}, {"yard"}});
  EXPECT_EQ(told("alert/north/yard/").back(), "yard/person end");
  EXPECT_EQ(told("status/north/yard/").back(), "yard down");
  EXPECT_THAT(told("alert/north/gate/"), Not(Contains("gate/person end")));
  EXPECT_THAT(told("status/north/gate/"), ElementsAre("gate connecting", "gate up"))
      << "a handover says nothing";
  EXPECT_THAT(metrics_.text(), Not(::testing::HasSubstr("camera=\"gate\"")))
      << "it is gone from here all the same";
}

TEST_F(ClaimsPipeline, AFileThatIsAtItsEndEndsItsEpisodes) {
  sources_.add("gate", frames(std::vector<int>(14, 90)));
  auto file = std::make_shared<OwnCamera>(*owned("gate", 7));
  file->stream.loop = false;
  start({file}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(told("alert/"), Contains("gate/person new"));
  pass(20s);
  EXPECT_EQ(told("alert/").back(), "gate/person end");
}

TEST_F(ClaimsPipeline, ACameraThatIsStartedAnewHereSaysSo) {
  sources_.add("gate", frames(std::vector<int>(200, 90)));
  start({owned("gate", 7)}, /*once=*/false);
  pass(6s);
  sources_.add("gate", frames(std::vector<int>(200, 90)));
  reload({{owned("gate", 7, 3)}, {}});
  EXPECT_THAT(told("status/"),
              ElementsAre("gate connecting", "gate up", "gate down", "gate connecting", "gate up"));
}

}  // namespace
}  // namespace vigil::actors
