#include "fleet/link/link_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using Answer = cluster::BulkSent::Answer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LinkDeskTest : public ::testing::Test {
 protected:
  /// Names of the cameras whose end was sent.
  std::vector<std::string> sent() const {
    std::vector<std::string> cameras;
    for (const cluster::BulkMessage& message : sent_)
      cameras.push_back(std::get<EndFrame>(*read(message)).camera);
    return cameras;
  }

  Answer answer_ = Answer::taken;
  std::vector<cluster::BulkMessage> sent_;
  LinkDesk desk_{[this](const cluster::BulkMessage& message) {
    if (answer_ == Answer::taken) sent_.push_back(message);
    return cluster::BulkSent{answer_, sent_.size()};
  }};
};

TEST_F(LinkDeskTest, IsUpWhileBothWaysAre) {
  EXPECT_FALSE(desk_.wants_attach()) << "there would be no way for its pixels";
  EXPECT_FALSE(desk_.bulk_opened());
  EXPECT_TRUE(desk_.wants_attach());
  const auto up = desk_.attached();
  ASSERT_TRUE(up);
  EXPECT_TRUE(up->is_up);
  EXPECT_FALSE(desk_.attached()) << "no news";
  const auto down = desk_.bulk_ended("silence");
  ASSERT_TRUE(down);
  EXPECT_FALSE(down->is_up);
  EXPECT_EQ(down->reason, "silence");
  EXPECT_FALSE(desk_.bulk_opened()) << "the dock has to be asked again";
  EXPECT_TRUE(desk_.wants_attach());
  EXPECT_TRUE(desk_.attached()->is_up);
  EXPECT_FALSE(desk_.detached("gone")->is_up);
}

TEST_F(LinkDeskTest, SendsInOrderAndLosesWhatTheWayLost) {
  desk_.send(EndFrame{"early", "gpu"});
  desk_.bulk_opened();
  desk_.attached();
  desk_.send(EndFrame{"a", "gpu"});
  answer_ = Answer::no_credit;
  desk_.send(EndFrame{"b", "gpu"});
  desk_.send(EndFrame{"c", "gpu"});
  EXPECT_EQ(desk_.waiting(), 2U);
  answer_ = Answer::taken;
  desk_.send(EndFrame{"d", "gpu"});
  EXPECT_THAT(sent(), ElementsAre("a", "b", "c", "d"));
  answer_ = Answer::no_credit;
  desk_.send(EndFrame{"e", "gpu"});
  desk_.bulk_ended("silence");
  answer_ = Answer::taken;
  desk_.bulk_opened();
  desk_.attached();
  desk_.resume();
  EXPECT_THAT(sent(), SizeIs(4));
}

TEST_F(LinkDeskTest, SaysWhatIsTooLargeAndGoesOn) {
  desk_.bulk_opened();
  desk_.attached();
  PackedPatch patch;
  patch.form.watch = {"gate", 1};
  patch.form.generation = 2;
  patch.form.sequence = 3;
  answer_ = Answer::too_large;
  desk_.send(patch);
  const auto dropped = desk_.take_dropped();
  ASSERT_THAT(dropped, SizeIs(1));
  EXPECT_EQ(dropped[0], (actors::PatchAck{"gate", 2, 3, actors::PatchOutcome::dropped, "too_large", {}}));
  answer_ = Answer::taken;
  desk_.send(EndFrame{"gate", "gpu"});
  EXPECT_THAT(sent(), ElementsAre("gate"));
  EXPECT_THAT(desk_.take_dropped(), IsEmpty());
}

}  // namespace
}  // namespace vigil::fleet
