// What a process before this one has left in an outbox, by series.
#include "actors/alerts/left_events.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr base::Clock::WallTime kStart{base::Clock::WallTime::duration(0)};

class LeftEventsTest : public ::testing::Test {
 protected:
  std::uint64_t append(const std::string& camera, std::chrono::seconds at = 0s) {
    const std::string topic = "alert/t/" + camera + "/person/";
    const std::uint64_t sequence = outbox_->last_sequence(topic) + 1;
    return outbox_->append({0, topic, sequence, kStart + at, camera + ' ' + std::to_string(sequence)});
  }
  static std::vector<std::string> bodies(const std::vector<OutboxEvent>& events) {
    std::vector<std::string> all;
    for (const OutboxEvent& event : events) all.push_back(event.body);
    return all;
  }

  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
};

TEST_F(LeftEventsTest, AreKnownBySeriesAndReadOneSeriesAtATime) {
  for (const char* camera : {"gate", "yard", "gate", "hall", "gate"}) append(camera);
  outbox_->acknowledge(3);
  const LeftEvents left(*outbox_);
  EXPECT_EQ(left.end(), 5U);
  EXPECT_THAT(left.series(), ElementsAre("gate", "hall", "yard"));
  EXPECT_THAT(bodies(left.read("gate", *outbox_)), ElementsAre("gate 1", "gate 3"));
  EXPECT_THAT(bodies(left.read("hall", *outbox_)), ElementsAre("hall 1"));
  EXPECT_THAT(left.read("zoo", *outbox_), IsEmpty());
}

TEST_F(LeftEventsTest, WhatIsAppendedLaterIsNone) {
  append("gate");
  const LeftEvents left(*outbox_);
  append("gate");
  append("yard");
  EXPECT_EQ(left.end(), 1U);
  EXPECT_FALSE(left.contains("yard"));
  EXPECT_THAT(bodies(left.read("gate", *outbox_)), ElementsAre("gate 1"));
}

TEST_F(LeftEventsTest, AnOutboxOfWhichAllIsAcknowledgedHasNone) {
  append("gate");
  outbox_->acknowledge(1);
  const LeftEvents left(*outbox_);
  EXPECT_EQ(left.end(), 0U);
  EXPECT_THAT(left.series(), IsEmpty());
}

TEST_F(LeftEventsTest, MoreThanIsReadAtOnce) {
  for (int i = 0; i < 10'000; ++i) append(i % 2 == 0 ? "gate" : "yard");
  const LeftEvents left(*outbox_);
  EXPECT_EQ(left.end(), 10'000U);
  EXPECT_THAT(left.read("gate", *outbox_), SizeIs(5000));
  EXPECT_EQ(left.read("yard", *outbox_).back().position, 10'000U);
}

TEST_F(LeftEventsTest, WhatIsTakenIsKnownNoMore) {
  append("gate");
  append("yard");
  append("gate");
  LeftEvents left(*outbox_);
  EXPECT_THAT(left.take("gate"), ElementsAre(1U, 3U));
  EXPECT_FALSE(left.contains("gate"));
  EXPECT_THAT(left.take("gate"), IsEmpty());
  EXPECT_TRUE(left.contains("yard"));
  EXPECT_EQ(left.end(), 3U) << "up to there nobody publishes";
}

TEST_F(LeftEventsTest, OldOnesAreTakenWhateverTheirSeries) {
  append("gate", 1s);
  append("yard", 2s);
  append("gate", 9s);
  outbox_->append({0, "what/is/this", 1, kStart + 1s, "of another program"});
  LeftEvents left(*outbox_);
  EXPECT_THAT(left.take_before(kStart + 1s).positions, IsEmpty());
  const LeftEvents::Old old = left.take_before(kStart + 5s);
  EXPECT_THAT(old.positions, ElementsAre(1U, 2U, 4U)) << "also on a topic that is none of a series";
  EXPECT_THAT(old.by_series, ElementsAre(std::pair("gate", 1U), std::pair("yard", 1U)));
  EXPECT_FALSE(left.contains("yard"));
  EXPECT_THAT(bodies(left.read("gate", *outbox_)), ElementsAre("gate 2"));
}

}  // namespace
}  // namespace vigil::actors
