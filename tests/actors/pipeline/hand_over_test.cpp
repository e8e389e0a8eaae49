// The desk and a publisher that takes events and hands them over later: what is acknowledged, and when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/alerts/alert_desk.h"
#include "tests/actors/events.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// One that can be replaced while it is open.
class ReplacedOutbox final : public Outbox {
 public:
  void replace() {
    inner_ = make_memory_outbox();
    identity_ += '\'';
  }
  void refresh() override { inner_->refresh(); }
  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    return inner_->append(events, notes);
  }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override { inner_->acknowledge(positions); }
  std::size_t prune(base::Duration older_than) override { return inner_->prune(older_than); }
  const std::string& identity() const override { return identity_; }
  std::uint64_t last_position() const override { return inner_->last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner_->position_of(topic, sequence);
  }
  Replay replay(const ReplayQuery& query) const override { return inner_->replay(query); }
  std::vector<OutboxEvent> last_events(std::size_t each) const override { return inner_->last_events(each); }

 private:
  std::unique_ptr<Outbox> inner_ = make_memory_outbox();
  std::string identity_ = "A";
};

class HandOverTest : public ::testing::Test {
 protected:
  AlertDesk desk() { return AlertDesk({.model = {"m"}, .run = 1}, outbox_, publisher_, metrics_, clock_); }

  std::vector<std::uint64_t> unacknowledged() const {
    std::vector<std::uint64_t> positions;
    for (const OutboxEvent& event : outbox_.unacknowledged(1000)) positions.push_back(event.position);
    return positions;
  }
  std::vector<std::uint64_t> published() const {
    std::vector<std::uint64_t> positions;
    for (const OutboxEvent& event : publisher_.messages) positions.push_back(event.position);
    return positions;
  }

  ManualClock clock_;
  Metrics metrics_;
  FakePublisher publisher_;
  ReplacedOutbox outbox_;
  WatchPtr gate_ = watch("gate");
};

TEST_F(HandOverTest, AnEventIsAcknowledgedWhenItWasHandedOverAndIsOfferedOnce) {
  AlertDesk alerts = desk();
  publisher_.holds_back = true;
  for (int i = 0; i < 3; ++i) alerts.status(gate_, CameraState::up, "");
  for (int i = 0; i < 3; ++i) alerts.tick();
  EXPECT_THAT(published(), ElementsAre(1, 2, 3)) << "once each";
  EXPECT_THAT(unacknowledged(), ElementsAre(1, 2, 3));
  EXPECT_THAT(metrics_.text(), ::testing::HasSubstr("vigil_outbox_pending 3\n"));
  publisher_.handed_over = 2;
  alerts.tick();
  EXPECT_THAT(unacknowledged(), ElementsAre(3));
  alerts.status(gate_, CameraState::down, "");
  EXPECT_THAT(published(), ElementsAre(1, 2, 3, 4)) << "what is under way holds up nothing";
  publisher_.handed_over = 4;
  alerts.tick();
  EXPECT_THAT(unacknowledged(), IsEmpty());
  EXPECT_THAT(metrics_.text(), ::testing::HasSubstr("vigil_outbox_pending 0\n"));
}

TEST_F(HandOverTest, WhatWasTakenAndNotHandedOverIsPublishedByTheNextProcess) {
  publisher_.holds_back = true;
  {
    AlertDesk killed = desk();
    killed.status(gate_, CameraState::up, "");
    killed.status(gate_, CameraState::down, "");
    publisher_.handed_over = 1;
    killed.tick();
  }
  FakePublisher next;
  AlertDesk alerts({.model = {"m"}, .run = 2}, outbox_, next, metrics_, clock_);
  alerts.tick();
  ASSERT_EQ(next.messages.size(), 1U);
  EXPECT_EQ(next.messages[0].position, 2U);
  EXPECT_EQ(next.messages[0].body, publisher_.messages[1].body) << "unchanged";
  alerts.tick();
  EXPECT_THAT(unacknowledged(), IsEmpty());
}

TEST_F(HandOverTest, TheEndWaitsUntilAllIsHandedOverAndAcknowledged) {
  AlertDesk alerts = desk();
  publisher_.holds_back = true;
  for (int i = 0; i < 300; ++i) alerts.status(gate_, CameraState::up, "");
  EXPECT_EQ(unacknowledged().size(), 300U);
  alerts.finish();
  EXPECT_THAT(unacknowledged(), IsEmpty());
  EXPECT_EQ(published().size(), 300U);
}

TEST_F(HandOverTest, TheEndDoesNotWaitForAPublisherThatTakesNothing) {
  AlertDesk alerts = desk();
  publisher_.refuses = true;
  alerts.status(gate_, CameraState::up, "");
  alerts.finish();
  EXPECT_THAT(unacknowledged(), ElementsAre(1));
}

TEST_F(HandOverTest, InAnotherOutboxPositionsBeginAnew) {
  AlertDesk alerts = desk();
  for (int i = 0; i < 5; ++i) alerts.status(gate_, CameraState::up, "");
  outbox_.replace();
  publisher_.messages.clear();
  publisher_.holds_back = true;
  alerts.status(gate_, CameraState::down, "");
  EXPECT_THAT(published(), ElementsAre(1)) << "it is not taken for one of the old outbox";
  alerts.tick();
  EXPECT_THAT(unacknowledged(), ElementsAre(1)) << "nor acknowledged for its position";
}

}  // namespace
}  // namespace vigil::actors
