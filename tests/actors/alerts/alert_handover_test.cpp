// Desks of several nodes that have a camera one after the other, and what gateways keep of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_desk.h"
#include "tests/actors/events.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using Claim = SeriesClaims::Claim;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// All gateways of a fleet as one: what they commit has no gap, and nothing has two numbers.
class Gateways {
 public:
  /// What a node's publisher was given.
  void commit(FakePublisher& publisher) {
    for (OutboxEvent& event : std::exchange(publisher.messages, {})) {
      std::vector<OutboxEvent>& topic = topics[event.topic];
      if (event.sequence <= topic.size()) {
        EXPECT_EQ(event.body, topic[event.sequence - 1].body) << event.topic << " told anew";
        continue;
      }
      EXPECT_EQ(event.sequence, topic.size() + 1) << event.topic;
      const json body = json::parse(event.body);
      expect_valid(body);
      EXPECT_EQ(body.at("data").at("seq"), event.sequence);
      std::vector<std::string>& copies = copies_[body.at("id")];
      copies.push_back(event.topic);
      if (const auto name = event_name(event.body)) {
        const OutboxNote note = episode_note(copies, event.body);
        if (note.value) {
          notes[note.key] = *note.value;
        } else {
          notes.erase(note.key);
        }
      }
      topic.push_back(event);
    }
  }
  SeriesBooks claim(const std::string& camera, std::uint64_t fence, const std::string& node) {
    const std::string series = camera.empty() ? "process/" + node + '/' : camera;
    // Of whose tenures in a row the first had which fence.
    auto& [owner, since] = owners[series];
    SeriesBooks books{camera, fence, std::exchange(fences[series], fence), 0, {}, {}};
    if (owner != node) since = fence;
    if (!std::exchange(owner, node).empty()) books.since = since;
    for (const auto& [topic, events] : topics)
      if ((topic == series || series_of(topic) == series) && !events.empty())
        books.last.push_back(events.back());
    for (const auto& [key, value] : notes) books.notes.push_back({key, value});
    return books;
  }
  /// "phase number reason" of what was told on topics that begin so, or "state"; "*" for evidence alone.
  std::vector<std::string> told(const std::string& prefix) const {
    std::vector<std::string> result;
    for (const auto& [topic, events] : topics) {
      if (!topic.starts_with(prefix)) continue;
      for (const OutboxEvent& event : events) {
        const json data = json::parse(event.body).at("data");
        if (data.contains("state")) {
          result.push_back(data.at("state"));
          continue;
        }
        const auto name = event_name(event.body).value();
        const std::string reason = data.value("end_reason", "");
        result.push_back(data.at("phase").get<std::string>() + ' ' + std::to_string(name.number) +
                         (reason.empty() ? "" : ' ' + reason) + (data.contains("cause") ? "*" : ""));
      }
    }
    return result;
  }
  json last(const std::string& topic) const { return json::parse(topics.at(topic).back().body); }

  std::map<std::string, std::vector<OutboxEvent>> topics;
  std::map<std::string, std::string> notes;
  std::map<std::string, std::uint64_t> fences;
  std::map<std::string, std::pair<std::string, std::uint64_t>> owners;

 private:
  std::map<std::string, std::vector<std::string>> copies_;
};

const std::string kAlert = "alert/north/gate/person/";

class AlertHandover : public ::testing::Test {
 protected:
  /// A process, until it is started again; its outbox is on its disk.
  struct Node {
    explicit Node(std::string called) : name(std::move(called)) {}
    std::string name;
    std::unique_ptr<Outbox> disk = make_memory_outbox();
    std::unique_ptr<WatchedOutbox> outbox = std::make_unique<WatchedOutbox>(*disk);
    FakePublisher publisher;
    std::optional<AlertDesk> desk;
  };
  void start(Node& node, bool evidence = false, std::size_t backlog = 100) {
    AlertDesk::Options options{.model = {"m"},
                               .retention = 24h,
                               .backlog = backlog,
                               .run = ++runs_,
                               .process = node.name,
                               .claims = true};
    if (evidence) options.evidence = AlertDesk::Options::ClipRoll{5s, 3s};
    node.publisher = {};
    node.desk.emplace(options, *node.outbox, node.publisher, metrics_, clock_);
    node.desk->tick();
  }
  /// Answers what a node claims, and commits what it tells.
  void settle(Node& node) {
    for (const Claim& claim : node.desk->take_claims())
      node.desk->take_over(
          gateways_.claim(claim.camera, claim.camera.empty() ? ++revision_ : claim.fence, node.name));
    gateways_.commit(node.publisher);
  }
  WatchPtr owned(std::uint64_t fence) const { return watched(*gate_, version_of(fence, 1)); }
  void show(Node& node, std::uint64_t fence, double end, float score) {
    node.desk->observe(window_of(owned(fence), end, std::vector<float>(gate_->rules.size(), score)));
  }
  /// Two windows that begin an episode.
  void begin(Node& node, std::uint64_t fence, double from = 0) {
    for (const int end : {2, 4}) show(node, fence, from + end, 0.9F);
    settle(node);
  }
  std::string dropped() const {
    const std::string text = metrics_.text();
    const std::string line = "vigil_messages_dropped_total{reason=\"fence\",socket=\"outbox\"} ";
    const std::size_t at = text.find(line);
    return at == text.npos ? "" : text.substr(at + line.size(), text.find('\n', at) - at - line.size());
  }

  ManualClock clock_;
  Metrics metrics_;
  Gateways gateways_;
  std::shared_ptr<OwnCamera> gate_ = camera("gate");
  std::uint64_t runs_ = 0;
  std::uint64_t revision_ = 100;
  Node one_{"one"};
  Node two_{"two"};
};

TEST_F(AlertHandover, NothingIsToldBeforeTheBooksAreThere) {
  start(one_);
  one_.desk->status(owned(7), CameraState::connecting, "");
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"", 0})) << "a camera that connects claims nothing";
  one_.desk->status(owned(7), CameraState::up, "");
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 7}));
  show(one_, 7, 2, 0.9F);
  show(one_, 7, 4, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty()) << "once";
  EXPECT_THAT(one_.desk->take_observed(), IsEmpty()) << "windows wait";
  EXPECT_THAT(one_.publisher.messages, IsEmpty());
  EXPECT_EQ(one_.disk->last_position(), 0U);

  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(2));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0"));
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up"));
  EXPECT_THAT(gateways_.told("process/"), IsEmpty()) << "that is another series";
  one_.desk->take_over(gateways_.claim("", 101, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online"));
  show(one_, 7, 6, 0.9F);
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1")) << "at once from then on";
}

TEST_F(AlertHandover, AnEpisodeGoesOnWithTheNextOwner) {
  gate_->rules[0].topics = {"night"};
  gate_->rules[0].cooldown = 1min;
  start(one_);
  begin(one_, 7);
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0")) << "it is not over";

  start(two_);
  show(two_, 8, 30, 0.95F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0")) << "within the cooldown of what the other told";
  show(two_, 8, 66, 0.6F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1"));
  EXPECT_THAT(gateways_.told("topic/night/"), ElementsAre("new 0", "update 1"));
  json data = gateways_.last(kAlert).at("data");
  EXPECT_EQ(data.at("episode"), episode);
  EXPECT_EQ(data.at("confirmations"), 4) << "of both";
  EXPECT_NEAR(data.at("score").get<double>(), 0.95, 1e-6);
  for (const int end : {68, 70, 72}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1", "end 2 over"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
  show(two_, 8, 200, 0.9F);
  show(two_, 8, 202, 0.9F);
  settle(two_);
  EXPECT_NE(gateways_.last(kAlert).at("data").at("episode"), episode);
  EXPECT_THAT(two_.disk->notes(), ::testing::Contains(::testing::Pair("tenure/gate", "8")));
}

TEST_F(AlertHandover, AnEpisodeOfARuleThatIsAnotherNowEnds) {
  config::RuleSettings dog = gate_->rules[0];
  dog.name = "dog";
  gate_->rules.push_back(dog);
  start(one_);
  begin(one_, 7);
  one_.desk->end("gate");
  gate_->rules[0].threshold = 0.4;
  gate_->rules.pop_back();
  start(two_);
  // No window of the new owner has to come for it.
  two_.desk->status(owned(8), CameraState::down, "no route");
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/north/gate/dog/"), ElementsAre("new 0", "end 1 rule_changed"));
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 rule_changed"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
  begin(two_, 8, 10);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 rule_changed", "new 0"));
}

TEST_F(AlertHandover, AResumedEpisodeEndsWithoutAWindowToo) {
  start(one_);
  begin(one_, 7);
  start(two_);
  two_.desk->status(owned(8), CameraState::down, "no route");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0")) << "resumed";
  two_.desk->removed("gate");
  EXPECT_THAT(two_.publisher.messages, IsEmpty());
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("end_time"), 1785578404.0) << "when it was seen last";
}

TEST_F(AlertHandover, OnlyACameraThatIsRemovedEndsItsEpisodes) {
  start(one_);
  begin(one_, 7);
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  // The configuration came later than the plan.
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
  one_.desk->removed("gate");
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), SizeIs(2)) << "once";
}

TEST_F(AlertHandover, ARemovedCameraIsDownForWhoeverWatchesItsState) {
  start(one_);
  one_.desk->status(owned(7), CameraState::up, "");
  one_.desk->end("gate");
  settle(one_);
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("up", "down"));
  start(two_);
  two_.desk->status(owned(8), CameraState::up, "");
  two_.desk->status(owned(8), CameraState::down, "no route");
  two_.desk->removed("gate");
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("up", "down", "up", "down")) << "and not twice";
}

TEST_F(AlertHandover, ARemovedCameraEndsWhatItsFormerOwnerHadBegun) {
  start(one_);
  begin(one_, 7);
  start(two_);
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->removed("gate");
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
}

TEST_F(AlertHandover, AHandoverSaysNothingOfStates) {
  start(one_);
  one_.desk->status(owned(7), CameraState::connecting, "");
  one_.desk->status(owned(7), CameraState::up, "");
  settle(one_);
  start(two_);
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->status(owned(8), CameraState::up, "");
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up"));
  two_.desk->status(owned(8), CameraState::down, "no route");
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->status(owned(8), CameraState::up, "");
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up", "down", "connecting", "up"))
      << "and from then on all";
  start(one_);
  one_.desk->status(owned(9), CameraState::connecting, "");
  one_.desk->status(owned(9), CameraState::down, "no route");
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up", "down", "connecting", "up", "down"));
}

TEST_F(AlertHandover, EvidenceOfTheFormerOwnerHasFailed) {
  gate_->rules[0].cooldown = 1h;
  start(one_, true);
  begin(one_, 7);
  EXPECT_THAT(one_.desk->take_evidence_requests(), SizeIs(1));
  start(two_, true);
  show(two_, 8, 6, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1*"));
  json evidence = gateways_.last(kAlert).at("data").at("evidence");
  EXPECT_EQ(evidence.at("clip_state"), "failed");
  EXPECT_EQ(evidence.at("reason"), "its camera moved to another node before it was made");
  for (const int end : {8, 10, 12}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1*", "end 2 over"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("evidence").at("clip_state"), "failed");
  EXPECT_THAT(two_.desk->take_evidence_requests(), IsEmpty());

  // One that is over, and waits for its clip only.
  begin(two_, 8, 4000);
  for (const int end : {4006, 4008, 4010}) show(two_, 8, end, 0.1F);
  settle(two_);
  start(one_, true);
  show(one_, 9, 4012, 0.1F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert),
              ElementsAre("new 0", "update 1*", "end 2 over", "new 0", "end 1 over", "end 2 over*"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
}

TEST_F(AlertHandover, WhatTheFormerOwnerStillHearsItTellsNoMore) {
  start(one_, true);
  begin(one_, 7);
  const auto requests = one_.desk->take_evidence_requests();
  ASSERT_THAT(requests, SizeIs(1));
  one_.desk->lost("gate", 7);
  EXPECT_FALSE(one_.desk->awaits_evidence("gate")) << "its end waits for nothing";
  Evidence ready;
  ready.state = EvidenceState::ready;
  one_.desk->evidence({requests[0].episode, ready});
  show(one_, 7, 6, 0.9F);
  one_.desk->status(owned(7), CameraState::down, "");
  one_.desk->end("gate");
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  EXPECT_THAT(gateways_.told("status/"), IsEmpty());
  EXPECT_EQ(one_.desk->backlog(), 0U);
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(3)) << "nobody waits for them";
}

TEST_F(AlertHandover, WhatIsLostIsCountedAndHoldsUpNobody) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  one_.publisher.refuses = true;
  show(one_, 7, 8, 0.9F);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 2U);
  one_.outbox->fails = true;
  show(one_, 7, 10, 0.9F);
  one_.outbox->fails = false;
  EXPECT_EQ(one_.desk->backlog(), 1U);
  one_.desk->lost("gate", 7);
  clock_.advance(1s);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "2")
      << "what waited, and what the publisher has not taken: the rest is its own to count";
  EXPECT_EQ(one_.desk->backlog(), 0U);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  one_.publisher.refuses = false;
  one_.publisher.handed_over = 100;
  one_.desk->tick();
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  one_.desk->lost("gate", 6);
  one_.desk->lost("nobody", 6);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "2");
}

TEST_F(AlertHandover, WhatIsGivenUpIsToldOnceWithItsCameras) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  one_.publisher.refuses = true;
  show(one_, 7, 6, 0.9F);
  one_.desk->lost("gate", 7);
  one_.desk->tick();
  const AlertDesk::GivenUp lost = one_.desk->take_given_up();
  EXPECT_EQ(lost.events, 1U);
  EXPECT_THAT(lost.cameras, ElementsAre("gate"));
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  // What has no number yet is counted, too.
  start(two_);
  two_.desk->status(owned(8), CameraState::up, "");
  for (const int end : {2, 4}) show(two_, 8, end, 0.9F);
  two_.desk->lost("gate", 8);
  EXPECT_EQ(two_.desk->take_given_up().events, 3U);
}

TEST_F(AlertHandover, WhatIsHeldAtTheEndIsToldToBeLost) {
  start(one_);
  settle(one_);
  for (const int end : {2, 4}) show(one_, 7, end, 0.9F);
  one_.desk->finish();
  EXPECT_EQ(one_.desk->lost().events, 2U);
  EXPECT_THAT(one_.desk->lost().reason, HasSubstr("nobody said where their series go on"));
}

TEST_F(AlertHandover, WhatAProcessLeftIsToldByTheNextOneThoughTheCameraIsElsewhere) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  // No gateway serves: it is in the outbox, and the process is killed.
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  one_.publisher.holds_back = false;
  start(one_);
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"", 0}, Claim{"gate", 7}));
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  // The next owner goes on with its episode.
  start(two_);
  show(two_, 8, 8, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4);
}

TEST_F(AlertHandover, ACameraThatIsHereAgainGoesOnWithWhatTheProcessBeforeLeft) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  one_.publisher.holds_back = false;
  start(one_);
  settle(one_);
  // By the plan it never was elsewhere: the fence is the same.
  show(one_, 7, 8, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 7})) << "its episode is to go on";
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("episode"), episode);
}

TEST_F(AlertHandover, AfterADoubtfulAppendWhatIsLostIsCountedOnce) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.publisher.refuses = true;
  one_.outbox->fails_afterwards = true;
  show(one_, 7, 6, 0.9F);
  one_.outbox->fails_afterwards = false;
  one_.desk->lost("gate", 7);
  clock_.advance(1s);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "1");
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
}

TEST_F(AlertHandover, TheNextTenureOfTheSameProcessGoesOnWithWhatItHas) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  // In the outbox, and not committed; then the fence grows.
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  show(one_, 8, 8, 0.9F);
  EXPECT_THAT(one_.publisher.messages, SizeIs(1));
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"gate", 8}));
  // Its events were under way, and have come meanwhile or not.
  SeriesBooks books = gateways_.claim("gate", 8, "one");
  EXPECT_EQ(books.previous, 7U);
  one_.desk->take_over(books);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(dropped(), "");
}

TEST_F(AlertHandover, WhereSomebodyElseWasBetweenItsOwnIsForgotten) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  // One that is not committed, and one that could not be written.
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  one_.outbox->fails = true;
  show(one_, 7, 8, 0.9F);
  one_.outbox->fails = false;
  one_.publisher.messages.clear();
  start(two_);
  show(two_, 8, 10, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  // Back again, without a word of the loss.
  show(one_, 9, 12, 0.9F);
  clock_.advance(1s);
  one_.desk->tick();
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("episode"), episode);
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4) << "as the other left it";
  EXPECT_EQ(dropped(), "2");
}

TEST_F(AlertHandover, AnEpisodeThatTheOtherEndedIsOver) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  start(two_);
  for (const int end : {6, 8, 10}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over"));
  show(one_, 9, 12, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), SizeIs(2)) << "one window confirms nothing";
  show(one_, 9, 14, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over", "new 0"));
}

TEST_F(AlertHandover, ARestartedProcessGoesOnWithItsOwn) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  // Written, and committed nowhere. Killed.
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  start(one_);
  EXPECT_THAT(one_.publisher.messages, IsEmpty()) << "it is not known yet what it is worth";
  one_.desk->status(owned(8), CameraState::connecting, "");
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"", 0}, Claim{"gate", 8})) << "there is something to tell";
  one_.desk->take_over(gateways_.claim("gate", 8, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  show(one_, 8, 8, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2")) << "the episode as well";
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  one_.desk->take_over(gateways_.claim("", 200, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online", "offline", "online"))
      << "what it could not say before";
}

TEST_F(AlertHandover, ARestartedProcessForgetsWhatOthersWentOnFrom) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  show(one_, 7, 6, 0.9F);
  one_.publisher.messages.clear();
  start(two_);
  for (const int end : {8, 10, 12}) show(two_, 8, end, 0.1F);
  settle(two_);
  start(one_);
  one_.publisher.messages.clear();
  show(one_, 9, 14, 0.9F);
  show(one_, 9, 16, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over", "new 0"));
}

TEST_F(AlertHandover, WhatNobodyAsksForGoesAtLastAndHoldsUpNobody) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  start(one_);
  // The camera is another node's now, and nobody answers for it.
  for (const Claim& claim : one_.desk->take_claims())
    if (claim.camera.empty()) one_.desk->take_over(gateways_.claim("", ++revision_, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online", "offline", "online"));
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  clock_.advance(25h);
  one_.desk->tick();
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  EXPECT_EQ(dropped(), "1");
  const AlertDesk::GivenUp lost = one_.desk->take_given_up();
  EXPECT_EQ(lost.events, 1U);
  EXPECT_THAT(lost.cameras, ElementsAre("gate"));
}

TEST_F(AlertHandover, WhatIsNoAnswerToAClaimIsIgnored) {
  start(one_);
  begin(one_, 7);
  start(two_);
  show(two_, 8, 6, 0.9F);
  SeriesBooks right = gateways_.claim("gate", 8, "two");
  SeriesBooks other = right;
  other.camera = "yard";
  SeriesBooks older = right;
  older.fence = 6;
  SeriesBooks newer = right;
  newer.fence = 9;
  for (const SeriesBooks& books : {other, older, newer}) two_.desk->take_over(books);
  EXPECT_THAT(two_.publisher.messages, IsEmpty());
  SeriesBooks twice = right;
  twice.last.clear();
  two_.desk->take_over(right);
  two_.desk->take_over(twice);
  two_.desk->take_over(older);
  show(two_, 8, 8, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
}

TEST_F(AlertHandover, BooksThatComeWhileTheOutboxFailsCountWhenItWorks) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  start(two_);
  settle(two_);
  show(two_, 8, 6, 0.9F);
  two_.outbox->fails = true;
  settle(two_);
  EXPECT_TRUE(two_.desk->takes_over());
  EXPECT_THAT(two_.desk->failure(), HasSubstr("broken"));
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  // It kept it, and could not say so.
  two_.outbox->fails = false;
  two_.outbox->fails_afterwards = true;
  clock_.advance(1s);
  two_.desk->tick();
  EXPECT_TRUE(two_.desk->takes_over());
  two_.outbox->fails_afterwards = false;
  clock_.advance(1s);
  two_.desk->tick();
  EXPECT_FALSE(two_.desk->takes_over());
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
}

TEST_F(AlertHandover, BooksThatComeInDoubtFindWhatTheAppendHasKept) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.outbox->fails_afterwards = true;
  show(one_, 7, 6, 0.9F);
  one_.outbox->fails_afterwards = false;
  show(one_, 8, 8, 0.9F);
  settle(one_);
  clock_.advance(1s);
  one_.desk->tick();
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
}

TEST_F(AlertHandover, AnotherOutboxIsClaimedForAnew) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  const auto other = make_memory_outbox();
  one_.outbox->replace(*other);
  show(one_, 7, 6, 0.9F);
  EXPECT_EQ(other->last_position(), 0U) << "its numbers begin anew";
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"", 101}, Claim{"gate", 7}));
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_THAT(other->notes(), ::testing::Contains(::testing::Key(HasSubstr("episode/"))));
}

TEST_F(AlertHandover, WhatWaitsForBooksIsBounded) {
  start(one_, false, 3);
  for (int i = 1; i <= 5; ++i) show(one_, 7, 2 * i, 0.9F);
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(2)) << "the oldest are lost, and nobody waits for them";
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_messages_dropped_total{reason=\"backlog_full\",socket=\"outbox\"} 2\n"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 3);
}

TEST_F(AlertHandover, AWindowThatWaitedTooLongIsNotExplained) {
  gate_->rules[0].explain = true;
  start(one_);
  const auto explainable = [&](double end) {
    auto window = std::make_shared<WindowAnswers>(*window_of(owned(7), end, {0.9F}));
    window->id = stream::WindowId{"gate", 1, static_cast<std::uint64_t>(end)};
    return window;
  };
  one_.desk->observe(explainable(2));
  one_.desk->observe(explainable(4));
  clock_.advance(kExplanationPatience);
  one_.desk->observe(explainable(6));
  settle(one_);
  const auto requests = one_.desk->take_requests();
  ASSERT_THAT(requests, SizeIs(1)) << "its device keeps the last one alone";
  EXPECT_EQ(requests[0].explain.window.number, 6U);
}

TEST_F(AlertHandover, WithoutClaimsNothingOfItCounts) {
  one_.desk.emplace(AlertDesk::Options{.model = {"m"}, .run = 1}, *one_.outbox, one_.publisher, metrics_,
                    clock_);
  for (const int end : {2, 4}) show(one_, 7, end, 0.9F);
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  one_.desk->lost("gate", 7);
  one_.desk->removed("gate");
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty());
  EXPECT_FALSE(one_.desk->takes_over());
  one_.desk->end("gate");
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
}

TEST_F(AlertHandover, WhoNeverWasAnybodyLosesNothing) {
  Node refused{"refused"};
  start(refused);
  refused.desk->finish();
  EXPECT_EQ(refused.desk->lost().events, 0U) << "nobody had heard of it";
  EXPECT_EQ(refused.desk->lost().reason, "");
}

}  // namespace
}  // namespace vigil::actors
