// What is asked for on the wire, in the terms of the outbox.
#include "services/topic_publisher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/outboxes.h"

namespace vigil::services {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using actors::testing::kStart;

/// Positions 1 to 6: three events of each topic in turn, a minute apart.
class OutboxReplayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 6; ++i) {
      const std::string topic = i % 2 == 0 ? "alert/a/" : "alert/b/";
      clock_.passed = i * 1min;
      outbox_->append({0, topic, i / 2 + 1, kStart + i * 1min, "body " + std::to_string(i + 1)});
    }
  }

  std::vector<std::string> shown(const cluster::ReplayQuery& query) {
    page_ = source_.replay(query);
    EXPECT_EQ(page_.outbox, outbox_->identity());
    EXPECT_EQ(page_.newest, 6U);
    std::vector<std::string> result;
    for (const cluster::TopicMessage& event : page_.events) {
      EXPECT_EQ(event.body, "body " + std::to_string(event.position));
      result.push_back(event.topic + std::to_string(event.sequence));
    }
    return result;
  }

  static cluster::ReplayQuery query(const std::string& topic) {
    cluster::ReplayQuery result;
    result.topics = {topic};
    return result;
  }

  actors::testing::OutboxClock clock_;
  config::RetentionClock ages_{clock_};
  std::unique_ptr<actors::Outbox> outbox_ = actors::make_memory_outbox(&ages_);
  OutboxReplay source_{*outbox_};
  cluster::ReplayPage page_;
};

TEST_F(OutboxReplayTest, GoesOnAfterAPosition) {
  cluster::ReplayQuery all = query("alert/");
  EXPECT_THAT(shown(all),
              ElementsAre("alert/a/1", "alert/b/1", "alert/a/2", "alert/b/2", "alert/a/3", "alert/b/3"));
  all.after = 4;
  EXPECT_THAT(shown(all), ElementsAre("alert/a/3", "alert/b/3"));
  EXPECT_EQ(page_.cursor, 6U);
  EXPECT_FALSE(page_.more);
  all.after = 0;
  all.limit = 2;
  EXPECT_THAT(shown(all), ElementsAre("alert/a/1", "alert/b/1"));
  EXPECT_EQ(page_.cursor, 2U);
  EXPECT_TRUE(page_.more);
}

TEST_F(OutboxReplayTest, TheLatestIsAPositionWithoutEvents) {
  cluster::ReplayQuery latest = query("");
  latest.after = std::nullopt;
  EXPECT_THAT(shown(latest), IsEmpty());
  EXPECT_EQ(page_.cursor, 6U);
  EXPECT_FALSE(page_.more);
}

TEST_F(OutboxReplayTest, BeginsAtATime) {
  cluster::ReplayQuery since = query("alert/");
  since.since_ms = std::chrono::duration_cast<std::chrono::milliseconds>(kStart.time_since_epoch()).count();
  *since.since_ms += 240'000;
  EXPECT_THAT(shown(since), ElementsAre("alert/a/3", "alert/b/3"));
  ++*since.since_ms;
  EXPECT_THAT(shown(since), ElementsAre("alert/b/3"));
}

TEST_F(OutboxReplayTest, BeginsWithASequenceNumber) {
  cluster::ReplayQuery from = query("alert/b/");
  from.from = 2;
  EXPECT_THAT(shown(from), ElementsAre("alert/b/2", "alert/b/3"));
  from.from = 0;
  EXPECT_THAT(shown(from), ElementsAre("alert/b/1", "alert/b/2", "alert/b/3"));
  from.from = 4;
  EXPECT_THAT(shown(from), IsEmpty()) << "it is still to come";
  EXPECT_EQ(page_.cursor, 6U);
  // What was forgotten cannot be begun with.
  for (std::uint64_t position = 1; position <= 3; ++position) outbox_->acknowledge(position);
  // After 5 minutes, these are the first two.
  outbox_->prune(210s);
  from.from = 1;
  EXPECT_THAT(shown(from), ElementsAre("alert/b/2", "alert/b/3"));
}

TEST_F(OutboxReplayTest, OnlyAWholeTopicHasNumbersToBeginWith) {
  cluster::ReplayQuery from = query("alert/north/gate/car/");
  from.from = 1;
  EXPECT_FALSE(source_.refuse(from));
  for (const char* beginning : {"", "alert/", "alert/north/gate/", "alert/north/gate/car"}) {
    from.topics = {beginning};
    const auto refusal = source_.refuse(from);
    ASSERT_TRUE(refusal) << beginning;
    EXPECT_EQ(refusal->reason,
              "from: expected a single whole topic, such as alert/<tenant>/<camera>/<rule>/");
  }
  EXPECT_FALSE(source_.refuse(query("alert/"))) << "without `from`";
}

// The metrics do not know the reasons: whoever tells them of connections does.
TEST(ConnectionMetrics, EachReasonIsThereBeforeItHappens) {
  actors::Metrics metrics;
  const ConnectionMetrics events("events", metrics);
  const ConnectionMetrics replay("replay", metrics);
  for (const cluster::Refusal reason : cluster::kRefusals)
    for (const char* listener : {"events", "replay"})
      EXPECT_THAT(metrics.text(),
                  ::testing::HasSubstr("vigil_connections_refused_total{listener=\"" + std::string(listener) +
                                       "\",reason=\"" + std::string(name_of(reason)) + "\"} 0\n"));
}

}  // namespace
}  // namespace vigil::services
