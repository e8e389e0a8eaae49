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
  EXPECT_EQ(dropped[0].ack, (actors::PatchAck{"gate", 2, 3, actors::PatchOutcome::dropped, "too_large", {}}));
  answer_ = Answer::taken;
  desk_.send(EndFrame{"gate", "gpu"});
  EXPECT_THAT(sent(), ElementsAre("gate"));
  EXPECT_THAT(desk_.take_dropped(), IsEmpty());
}

/// A patch with so many bytes of pixels, of that number.
PackedPatch patch_of(std::uint64_t sequence, const cluster::Bytes& pixels) {
  PackedPatch patch;
  patch.form.watch = {"gate", 1};
  patch.form.sequence = sequence;
  patch.form.frames = 2;
  patch.frames = {pixels};
  return patch;
}

TEST_F(LinkDeskTest, WhatWaitsIsBoundedWhateverWasGranted) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  const cluster::Bytes pixels(std::string(8 << 20, 'x'));
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_FALSE(desk_.send(patch_of(i, pixels)));
  EXPECT_LE(desk_.waiting_bytes(), LinkDesk::kMostBytes);
  EXPECT_EQ(desk_.waiting(), 15U);
  const auto dropped = desk_.take_dropped();
  ASSERT_THAT(dropped, SizeIs(85));
  EXPECT_EQ(dropped[0].ack,
            (actors::PatchAck{"gate", 0, 16, actors::PatchOutcome::dropped, "queue_full", {}}));
  EXPECT_EQ(dropped[0].frames, 2U);
  // What cannot be left out waits all the same.
  EXPECT_FALSE(desk_.send(EndFrame{"gate", "gpu"}));
  EXPECT_EQ(desk_.waiting(), 16U);
  answer_ = Answer::taken;
  desk_.resume();
  EXPECT_EQ(desk_.waiting(), 0U);
  EXPECT_EQ(desk_.waiting_bytes(), 0U);
  EXPECT_THAT(sent_, SizeIs(16));
  desk_.send(patch_of(101, pixels));
  EXPECT_THAT(sent_, SizeIs(17));
  EXPECT_THAT(desk_.take_dropped(), IsEmpty());
}

TEST_F(LinkDeskTest, OneThatIsLargerThanAllWaitsAlone) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  const cluster::Bytes pixels(std::string(LinkDesk::kMostBytes + 1, 'x'));
  desk_.send(patch_of(1, pixels));
  desk_.send(patch_of(2, cluster::Bytes(std::string("x"))));
  EXPECT_EQ(desk_.waiting(), 1U) << "the way says itself whether it is too large";
  EXPECT_THAT(desk_.take_dropped(), SizeIs(1));
}

TEST_F(LinkDeskTest, PagesOfTextsTakeNoRoomOfPatches) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  const cluster::Bytes page(std::string(64 << 20, 'x'));
  desk_.send(PackedPages{1, 0, {page, page, page}});
  desk_.send(patch_of(1, cluster::Bytes(std::string("x"))));
  desk_.send(patch_of(2, cluster::Bytes(std::string("x"))));
  EXPECT_THAT(desk_.take_dropped(), IsEmpty());
  EXPECT_EQ(desk_.waiting(), 3U);
  EXPECT_GT(desk_.waiting_bytes(), std::uint64_t{192} << 20);
}

TEST_F(LinkDeskTest, PatchesLeaveRoomForWhatCannotBeLeftOut) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  for (std::uint64_t i = 1; i <= LinkDesk::kMostFrames; ++i)
    desk_.send(patch_of(i, cluster::Bytes(std::string("x"))));
  EXPECT_EQ(desk_.waiting(), LinkDesk::kMostPatches);
  EXPECT_THAT(desk_.take_dropped(), SizeIs(LinkDesk::kMostFrames - LinkDesk::kMostPatches));
  EXPECT_FALSE(desk_.send(EndFrame{"gate", "gpu"}));
  EXPECT_TRUE(desk_.is_up());
}

TEST_F(LinkDeskTest, CreditThatIsThereIsUsedBeforeAnythingIsLeftOut) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  const cluster::Bytes pixels(std::string(LinkDesk::kMostBytes, 'x'));
  desk_.send(patch_of(1, pixels));
  // It is told a moment later.
  answer_ = Answer::taken;
  desk_.send(patch_of(2, pixels));
  EXPECT_THAT(desk_.take_dropped(), IsEmpty());
  EXPECT_THAT(sent_, SizeIs(2));
}

TEST_F(LinkDeskTest, OneThatTakesNothingCountsAsGone) {
  desk_.bulk_opened();
  desk_.attached();
  answer_ = Answer::no_credit;
  for (std::size_t i = 0; i < LinkDesk::kMostFrames; ++i) EXPECT_FALSE(desk_.send(EndFrame{"gate", "gpu"}));
  desk_.send(patch_of(1, cluster::Bytes(std::string("x"))));
  EXPECT_THAT(desk_.take_dropped(), SizeIs(1));
  EXPECT_TRUE(desk_.is_up());
  const auto change = desk_.send(EndFrame{"gate", "gpu"});
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->is_up);
  EXPECT_EQ(change->reason, "it takes nothing of what waits for it: 4096 frames");
  EXPECT_EQ(desk_.waiting(), 0U);
  EXPECT_EQ(desk_.waiting_bytes(), 0U);
  EXPECT_TRUE(desk_.wants_attach());
  // It may do better.
  answer_ = Answer::taken;
  EXPECT_TRUE(desk_.attached()->is_up);
  desk_.send(EndFrame{"anew", "gpu"});
  EXPECT_THAT(sent(), ElementsAre("anew"));
}

}  // namespace
}  // namespace vigil::fleet
