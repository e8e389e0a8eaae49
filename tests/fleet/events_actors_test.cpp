// The shells of what makes events and of what keeps them: what they tell to logs, metrics, pages and probes.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/running/retention_clock.h"
#include "fleet/events/gateway_actor.h"
#include "fleet/events/maker_actor.h"
#include "fleet/messages/shipped.h"
#include "tests/fleet/node_world.h"
#include "tests/temporary_folder.h"

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
                  return on_disk_ ? disk() : actors::make_memory_outbox();
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
            [](join_atom, const std::string&) {},
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
    talks.commits = {{"gate", 1, {{{{kTopic, sequence, fingerprint(body(sequence))}}, over_gap}}}};
    return ask<GatewayTalk>(talks).commits.at(0).verdict;
  }

  std::unique_ptr<actors::Outbox> disk() { return actors::open_rocksdb_outbox(folder_.path(), ages_); }
  /// From now on the gateway's outbox is on a disk; it has events of about a kilobyte.
  void fill_disk(std::uint64_t events) {
    on_disk_ = true;
    const auto outbox = disk();
    for (std::uint64_t i = 1; i <= events; ++i)
      outbox->append({0, kTopic, i, {}, body(i) + std::string(700, static_cast<char>('a' + i % 26))});
  }
  /// The largest file of this kind, as it is found, cannot be read at this part of its length.
  void damage(const std::string& extension, double part) {
    std::filesystem::path file;
    std::uintmax_t size = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().extension() == extension && entry.file_size() > size) {
        file = entry.path();
        size = entry.file_size();
      }
    ASSERT_FALSE(file.empty());
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(static_cast<std::streamoff>(static_cast<double>(std::filesystem::file_size(file)) * part));
    bytes.write("damage", 6);
  }

  /// By camera, as the node shows them.
  std::map<std::string, std::uint64_t> fences_of(const Node& node) {
    std::map<std::string, std::uint64_t> found;
    const json page = shown(node, {.cameras = true});
    for (const json& camera : page.at("list")) found[camera.at("camera")] = camera.at("fence");
    return found;
  }

  json fleet_of(const actors::StatusBoard& board) const {
    return json::parse(board.json(metrics_)).at("fleet");
  }

  actors::StatusBoard board_{clock_};
  ShippingPublisher publisher_;
  std::string disk_fault_;
  TemporaryFolder folder_;
  config::RetentionClock ages_{clock_};
  bool on_disk_ = false;
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

TEST_F(EventsActorsTest, WhatDamageHasTakenFromAGatewaysOutboxIsToldAndCounted) {
  fill_disk(400);
  damage(".log", 0.5);
  start_gateway("g1");
  tell_gateway({{"g1", {"g1born", 1, false}}});
  EXPECT_EQ(count(log_.str(), "gateway: outbox " + folder_.path().string() + ": it ends at position"), 1U)
      << log_.str();
  EXPECT_THAT(log_.str(), HasSubstr("could not. It goes on under a new identity"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_replaced_total{reason=\"behind\"} 1"));
  EXPECT_THAT(log_.str(), HasSubstr("does not serve: waits for another gateway"));
  pass(11s);
  EXPECT_THAT(log_.str(), HasSubstr("gateway: serves"));
  EXPECT_EQ(count(log_.str(), "it serves without what could not be read of its outbox: no other"), 1U);
}

TEST_F(EventsActorsTest, DamageThatAGatewayMeetsWhileItServesIsMendedToldAndNotMetAgain) {
  // More than RocksDB keeps in memory of what it has read at the start.
  fill_disk(3000);
  // What is in the log goes into a table.
  disk();
  start_gateway("g1");
  board_.fleet({.fleet = "city", .node = "g1", .is_ready = true});
  tell_gateway({{"g1", {"g1born", 1, false}}});
  pass(11s);
  ASSERT_EQ(fleet_of(board_).at("gateway"), "");
  EXPECT_THAT(log_.str(), ::testing::Not(HasSubstr("could not")));
  damage(".sst", 0.03);
  tell_gateway({{"g1", {"g1born", 1, true}}, {"g2", {"g2born", 2, false}}});
  PeerQuestion page;
  page.kind = PeerQuestionKind::page;
  page.from = "g2";
  page.born = "g2born";
  page.to_born = "g1born";
  EXPECT_TRUE(ask<PeerAnswer>(page).lacks_outbox);
  EXPECT_THAT(log_.str(), HasSubstr("gateway: does not serve: outbox " + folder_.path().string()));
  EXPECT_EQ(count(log_.str(), ": a part of it cannot be read: "), 1U) << log_.str();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_replaced_total{reason=\"unreadable\"} 1"));
  tell_gateway({{"g1", {"g1born", 1, false}}});
  pass(20s);
  EXPECT_EQ(fleet_of(board_).at("gateway"), "") << log_.str();
  EXPECT_EQ(count(log_.str(), "it serves without what could not be read of its outbox"), 1U);
  tell_gateway({{"g1", {"g1born", 1, true}}, {"g2", {"g2born", 2, false}}});
  const PeerAnswer answer = ask<PeerAnswer>(page);
  EXPECT_FALSE(answer.refused);
  EXPECT_GT(answer.events.size(), 200U) << "what could be read";
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

TEST_F(EventsActorsTest, WhoKeepsEventsOfCamerasThatMovedIsKnownToTheOthersUntilItHasNoneOrIsGone) {
  GatewayNews news;
  const maker_actor listener = system_.spawn(listening_maker, &news);
  start_maker("c1");
  start("c1", {NodeRole::camera}, {}, {}, maker_);
  Node& other = start("c2", {NodeRole::camera}, {}, {}, listener);
  pass(3s);
  EXPECT_THAT(news.keepers, ::testing::IsEmpty());
  // What a run before this one left of a camera that is elsewhere by now.
  caf::anon_send(maker_, actors::claim_atom_v, std::string("gate"), std::uint64_t{1});
  pass(1s);
  EXPECT_THAT(news.keepers, ::testing::ElementsAre("c1"));
  EXPECT_THAT(log_.str(), HasSubstr("there are some here of cameras that are others' by now"));
  // The camera is this node's after all.
  caf::anon_send(maker_, actors::join_atom_v, std::string("gate"));
  pass(2s);
  EXPECT_THAT(news.keepers, ::testing::IsEmpty());
  EXPECT_THAT(news.gone_keepers, ::testing::IsEmpty());
  EXPECT_THAT(log_.str(), HasSubstr("there are none any more"));
  caf::anon_send(other.actor, keeps_atom_v, true);
  pass(1s);
  EXPECT_THAT(news.keepers, ::testing::IsEmpty()) << "its own do not concern it";
  caf::anon_send(other.actor, actors::stop_atom_v);
  pass(2s);
  EXPECT_EQ(count(log_.str(), "events: node c2 is gone with events of cameras that are others' by now"), 1U);
  caf::anon_send(listener, actors::stop_atom_v);
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
  const auto fences = [&] { return fences_of(node); };
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

/// The registry came back from a backup, and gave a fence once more that another owner has had.
TEST_F(EventsActorsTest, ACameraWhoseFenceAnotherOwnerHasAsWellGetsAHigherOneAndItsEventsGoOn) {
  wish({"gate", "yard", "door"});
  start_gateway("c1");
  start_maker("c1");
  GatewayNews news;
  const maker_actor listener = system_.spawn(listening_maker, &news);
  Node& node = start("c1", {NodeRole::camera, NodeRole::gateway}, {}, gateway_, maker_);
  start("gpu", testing::kComputes, {}, {}, listener);
  pass(8s);
  const auto fences = [&] { return fences_of(node); };
  const std::map<std::string, std::uint64_t> before = fences();
  ASSERT_EQ(before.size(), 3U);
  ASSERT_TRUE(news.view.contains("c1") && news.view.at("c1").serves) << log_.str();
  MakerTalk former = talk("c1", news.view.at("c1").born);
  former.maker = "former";
  former.claims = {{"gate", before.at("gate")}};
  ASSERT_EQ(ask<GatewayTalk>(former).claims.size(), 1U);

  caf::anon_send(maker_, actors::claim_atom_v, std::string("gate"), before.at("gate"));
  pass(3s);
  const std::map<std::string, std::uint64_t> after = fences();
  for (const auto& [camera, fence] : before) {
    if (camera == "gate") {
      EXPECT_GT(after.at(camera), before.at("gate")) << log_.str();
    } else {
      EXPECT_EQ(after.at(camera), fence) << camera << " was refused nowhere";
    }
  }
  caf::anon_send(maker_, actors::claim_atom_v, std::string("gate"), after.at("gate"));
  pass(1s);
  ASSERT_TRUE(publisher_.publish({1, kTopic, 1, {}, body(1)}));
  publisher_.serve();
  pass(1s);
  EXPECT_EQ(publisher_.published(), 1U) << log_.str();
  pass(5s);
  EXPECT_EQ(fences(), after) << "once is enough";
  caf::anon_send(listener, actors::stop_atom_v);
}

}  // namespace
}  // namespace vigil::fleet
