// The shells of what makes events and of what keeps them: what they tell to logs, metrics, pages and probes.
#include <algorithm>

#include "fleet/events/gateway_actor.h"
#include "fleet/events/maker_actor.h"
#include "tests/fleet/node_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::FakePublisher;
using cluster::NodeRole;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using testing::NodeTest;

constexpr const char* kTopic = "alert/t/gate/r/";

std::string body(std::uint64_t sequence) {
  return R"({"type":"dev.vigil.alert.v1","id":"E-)" + std::to_string(sequence) +
         R"(","time":"2026-01-01T00:00:00Z","data":{"episode":"E","phase":"update"}})";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class EventsActorsTest : public NodeTest {
 protected:
  ~EventsActorsTest() override {
    caf::anon_send(maker_, actors::stop_atom_v);
    caf::anon_send(gateway_, actors::stop_atom_v);
    settle();
  }

  void start_gateway(const std::string& name, bool is_alone = true) {
    gateway_ = system_.spawn(
        gateway,
        GatewayDeps{
            .node = name,
            .open =
                [this](bool /*anew*/) {
                  ++opened_;
                  if (!disk_fault_.empty()) throw actors::OutboxError(disk_fault_);
                  return actors::make_memory_outbox();
                },
            .topics = [](const actors::Outbox&) { return std::make_unique<FakePublisher>(); },
            .token = [this](const std::string&) { return "token" + std::to_string(1000 + ++tokens_); },
            .retention = 1h,
            .clock = clock_,
            .metrics = metrics_,
            .board = board_,
            .logger = logger_,
            .is_alone = is_alone});
  }
  void start_maker(const std::string& name) {
    maker_ = system_.spawn(maker, MakerDeps{.node = name,
                                            .session = "s",
                                            .publisher = publisher_,
                                            .clock = clock_,
                                            .metrics = metrics_,
                                            .board = board_,
                                            .logger = logger_});
  }
  static maker_actor::behavior_type listening_maker(maker_actor::pointer self, GatewayNews* heard) {
    return {[](actors::claim_atom, const std::string&, std::uint64_t) {},
            [heard](const GatewayNewsPtr& news) { *heard = *news; },
            [](moved_atom, const std::string&) {},
            [](actors::work_atom) {},
            [](tick_atom) {},
            [self](stop_atom) { self->quit(); }};
  }
  void tell_gateway(const GatewayView& view) {
    GatewayNews news;
    news.view = view;
    caf::anon_send(gateway_, std::make_shared<const GatewayNews>(std::move(news)));
    pass(1s);
  }
  /// Answers of the gateway, as a maker or another gateway has them.
  template <class Answer, class Question>
  Answer ask(const Question& question) {
    caf::scoped_actor self{system_};
    auto asked = self->request(gateway_, caf::infinite, question);
    settle();
    Answer told;
    asked.receive([&](const Answer& answer) { told = answer; },
                  [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return told;
  }
  /// Of a maker that knows this gateway.
  MakerTalk talk(const std::string& name = "g1", const std::string& born = "g1born") {
    MakerTalk talk;
    talk.maker = "m";
    talk.session = "s";
    talk.born = born;
    talk.token = ask<GatewayTalk>(talk).token;
    talk.all = {{name, born, talk.token}};
    return talk;
  }
  SeriesVerdict tell_event(std::uint64_t sequence, bool over_gap) {
    MakerTalk talks = talk();
    talks.offers = {{"gate", 1, {{kTopic, sequence, 0, body(sequence), sequence}}}};
    talks.commits = {{"gate", 1, {{{{kTopic, sequence, 0}}, over_gap}}}};
    return ask<GatewayTalk>(talks).commits.at(0).verdict;
  }

  json fleet_of(const actors::StatusBoard& board) const {
    return json::parse(board.json(metrics_)).at("fleet");
  }

  actors::StatusBoard board_{clock_};
  ShippingPublisher publisher_;
  std::string disk_fault_;
  int opened_ = 0;
  int tokens_ = 0;
  gateway_actor gateway_;
  maker_actor maker_;
};

TEST_F(EventsActorsTest, AnOutboxThatCannotBeHadAtTheStartIsTriedUntilItCan) {
  disk_fault_ = "/events: no space left on device";
  start_gateway("g1");
  board_.phase(actors::RunPhase::running);
  board_.fleet({.fleet = "city", .node = "g1", .is_ready = true});
  tell_gateway({{"g1", {"g1born", 2, false}}, {"g2", {"g2born", 1, false}}});
  pass(30s);
  board_.beat();
  EXPECT_FALSE(board_.ready()) << "nothing else is done here";
  EXPECT_EQ(fleet_of(board_).at("gateway"), disk_fault_);
  EXPECT_EQ(count(log_.str(), "gateway: does not serve: " + disk_fault_), 1U) << log_.str();
  EXPECT_THAT(opened_, AllOf(Gt(4), Lt(10)));
  MakerTalk asks;
  asks.number = 7;
  EXPECT_EQ(ask<GatewayTalk>(asks).verdict, TalkVerdict::away);
  PeerQuestion question;
  question.from = "g2";
  question.born = "g2born";
  question.to_born = "g1born";
  EXPECT_TRUE(ask<PeerAnswer>(question).lacks_outbox) << "so that it is not waited for";
  disk_fault_.clear();
  tell_gateway({{"g1", {"g1born", 2, false}}});
  pass(6s);
  board_.beat();
  EXPECT_TRUE(board_.ready());
  EXPECT_EQ(fleet_of(board_).at("gateway"), "");
  EXPECT_THAT(log_.str(), HasSubstr("gateway: serves"));
  EXPECT_EQ(talk().token.substr(0, 5), "token");
}

TEST_F(EventsActorsTest, AProcessThatDoesOtherThingsIsReadyWithoutTheOutboxOfItsGateway) {
  disk_fault_ = "/events: no space left on device";
  start_gateway("g1", /*is_alone=*/false);
  board_.phase(actors::RunPhase::running);
  board_.fleet({.fleet = "city", .node = "g1", .is_ready = true});
  pass(1s);
  EXPECT_TRUE(board_.ready());
  EXPECT_EQ(fleet_of(board_).at("gateway"), disk_fault_);
}

TEST_F(EventsActorsTest, ACommitOverAGapIsCountedAndToldOnceAMinuteOfEachSeries) {
  start_gateway("g1");
  tell_gateway({{"g1", {"g1born", 1, false}}});
  MakerTalk claims = talk();
  claims.claims = {{"gate", 1}};
  ASSERT_EQ(ask<GatewayTalk>(claims).claims.size(), 1U);
  ASSERT_EQ(tell_event(1, false), SeriesVerdict::done);
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_gateway_gaps_total 0\n"));
  ASSERT_EQ(tell_event(5, true), SeriesVerdict::done);
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_gateway_gaps_total 1\n"));
  EXPECT_THAT(log_.str(),
              HasSubstr("gateway: alert/t/gate/r/ goes on with 5 behind 1: what was between nobody"));
  ASSERT_EQ(tell_event(9, true), SeriesVerdict::done);
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_gateway_gaps_total 2\n"));
  EXPECT_EQ(count(log_.str(), "goes on with"), 1U);
  pass(61s);
  ASSERT_EQ(tell_event(20, true), SeriesVerdict::done);
  EXPECT_EQ(count(log_.str(), "goes on with"), 2U);
}

TEST_F(EventsActorsTest, ThatEventsWaitForAGatewayIsToldWithWhyThatHasNoEnd) {
  board_.fleet({.fleet = "city", .node = "m", .is_ready = true});
  start_maker("m");
  GatewayNews news;
  news.view = {{"g1", {"g1born", 1, true}}};
  news.own_revision = 5;
  const auto tell = [&] { caf::anon_send(maker_, std::make_shared<const GatewayNews>(news)); };
  tell();
  pass(20s);
  EXPECT_EQ(fleet_of(board_).at("events"), "") << "there are none";
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_events_held 0\n"));
  caf::anon_send(maker_, actors::claim_atom_v, std::string("gate"), std::uint64_t{1});
  pass(20s);
  EXPECT_EQ(fleet_of(board_).at("events"), "gateway g1 does not answer");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_events_held 1\n"));
  news.registry_answers = false;
  tell();
  pass(1s);
  EXPECT_EQ(fleet_of(board_).at("events"),
            "gateway g1 does not answer, and etcd is not there to say whether it is gone");
  EXPECT_THAT(log_.str(), HasSubstr("events: they wait: gateway g1 does not answer, and etcd is not there"));
  news.registry_answers = true;
  news.view.clear();
  tell();
  pass(1s);
  EXPECT_EQ(fleet_of(board_).at("events"), "");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_events_held 0\n"));
  EXPECT_THAT(log_.str(), HasSubstr("events: they wait no more"));
}

/// The registry came back from a backup, and its plans have gone on since, above what one camera's former
/// owner had: no fence of the plan looks too low, but that camera's.
TEST_F(EventsActorsTest, ACameraWhoseFenceIsRefusedGetsAHigherOneAndItsEventsGoOn) {
  wish({"gate", "yard", "door", "ramp"});
  start_gateway("c1");
  start_maker("c1");
  GatewayNews news;
  const maker_actor listener = system_.spawn(listening_maker, &news);
  Node& node = start("c1", {NodeRole::camera, NodeRole::gateway}, {}, gateway_, maker_);
  start("gpu", testing::kComputes, {}, {}, listener);
  pass(8s);
  const auto fences = [&] {
    std::map<std::string, std::uint64_t> found;
    const json page = shown(node, {.cameras = true});
    for (const json& camera : page.at("list")) found[camera.at("camera")] = camera.at("fence");
    return found;
  };
  const auto by_fence = [](const auto& one, const auto& other) { return one.second < other.second; };
  const std::map<std::string, std::uint64_t> before = fences();
  ASSERT_EQ(before.size(), 4U);
  const auto lowest = std::min_element(before.begin(), before.end(), by_fence);
  const std::uint64_t highest = std::max_element(before.begin(), before.end(), by_fence)->second;
  ASSERT_TRUE(news.view.contains("c1") && news.view.at("c1").serves) << log_.str();
  MakerTalk former = talk("c1", news.view.at("c1").born);
  former.maker = "former";
  former.claims = {{lowest->first, lowest->second + 1}};
  ASSERT_EQ(ask<GatewayTalk>(former).claims.size(), 1U);

  caf::anon_send(maker_, actors::claim_atom_v, lowest->first, lowest->second);
  pass(3s);
  EXPECT_THAT(log_.str(), HasSubstr("events: another node has camera " + lowest->first + " with fence"));
  const std::map<std::string, std::uint64_t> after = fences();
  EXPECT_GT(after.at(lowest->first), highest);
  for (const auto& [camera, fence] : before)
    if (fence > lowest->second + 1) {
      EXPECT_EQ(after.at(camera), fence) << camera << " was refused nowhere";
    }

  caf::anon_send(maker_, actors::claim_atom_v, lowest->first, after.at(lowest->first));
  pass(1s);
  const std::string topic = "alert/t/" + lowest->first + "/r/";
  ASSERT_TRUE(publisher_.publish({1, topic, 1, {}, body(1)}));
  publisher_.serve();
  pass(1s);
  EXPECT_EQ(publisher_.published(), 1U) << log_.str();
  pass(5s);
  EXPECT_EQ(fences(), after) << "once is enough";
  caf::anon_send(listener, actors::stop_atom_v);
}

}  // namespace
}  // namespace vigil::fleet
