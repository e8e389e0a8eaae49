// Cameras of one node, the vision tower of another and the language model of a third, with all that lies
// between, under the deterministic scheduler.
#include <gmock/gmock.h>

#include "engine/run/token_transfer.h"
#include "tests/fleet/half_nodes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::frames;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::HalfNode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class StagesLinkTest : public testing::HalvesTest {
 protected:
  /// The camera's node goes on at v1 and s1; cam2 is linked by hand, by way of v2. What it hears is in
  /// `heard`.
  link_actor link_another_owner(std::vector<std::string>& heard) {
    start_gate();
    start_vision(v2_);
    make_way(v2_, s1_);
    const link_actor other = testing::link_by_hand(system_, heard);
    for (const HalfNode* node : {&s1_, &v2_})
      caf::send_as(caf::actor_cast<caf::actor>(other), node->dock, attach_atom_v, std::string("cam2"),
                   std::string("v2"), std::string("s1"));
    pass(200ms);
    return other;
  }

  /// It is to be encoded by v2, and is by v1 until then.
  static actors::CameraPtr changes_tower() {
    auto gate = std::make_shared<actors::OwnCamera>(*owned("gate", 5, "v2>s1"));
    gate->tenure.former = "v1>s1";
    gate->tenure.has_same_stream = true;
    return gate;
  }
  bool told_down() { return told_of("gate down"); }

  /// The stream's device is made again with the language model of s2, if its own fails.
  void start_with_another_engine() {
    for (int i = 0; i < 2; ++i) sources_.add("/clips/gate.mp4", frames(std::vector<int>(4000, 90)));
    start_vision(v1_);
    start_dock(s1_, language(s1_), [this] { return language(s2_); });
    make_way(v1_, s1_);
    start_node({owned("gate", 5, "v1>s1")});
    start_link(v1_, s1_);
    pass(5s);
  }
};

TEST_F(StagesLinkTest, AlertsComeOfACameraThatTwoNodesCompute) {
  start_gate();
  EXPECT_TRUE(goes_on(s1_));
  EXPECT_GT(v1_.encoder.frames, 10U);
  EXPECT_EQ(v1_.language.desk.is_open("gate"), false);
  EXPECT_EQ(s1_.encoder.frames, 0U);
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  EXPECT_THAT(v1_.metrics.text(), Not(HasSubstr("reason=\"stream_lost\"")));
}

TEST_F(StagesLinkTest, TextsAreExplainedByTheNodeThatHasTheWindow) {
  auto settings = std::make_shared<actors::OwnCamera>(*owned("gate", 5, "v1>s1"));
  settings->rules[0].explain = true;
  start_gate(settings);
  const auto event = std::find_if(publisher_.messages.begin(), publisher_.messages.end(),
                                  [](const auto& each) { return each.topic.starts_with("alert/"); });
  EXPECT_FALSE(nlohmann::json::parse(event->body)["data"]["description"].get<std::string>().empty());
}

TEST_F(StagesLinkTest, ACameraThatEndsHasEndedAtAllOfThem) {
  start_gate();
  plan({});
  pass(3s);
  EXPECT_EQ(board_.cameras().size(), 0U);
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
  EXPECT_EQ(s1_.language.book.free_pages(), s1_.language.book.pages());
  EXPECT_THAT(v1_.encoder.forgotten, ElementsAre("gate"));
  // And may begin again.
  plan({owned("gate", 7, "v1>s1")});
  EXPECT_TRUE(goes_on(s1_));
}

TEST_F(StagesLinkTest, ChangedRulesGoAllTheWay) {
  start_gate();
  auto changed = std::make_shared<actors::OwnCamera>(*owned("gate", 5, "v1>s1"));
  changed->rules[0].name = "somebody";
  plan({changed});
  pass(6s);
  EXPECT_TRUE(told_of("gate/somebody new"));
  EXPECT_GT(patches(s1_), 8) << "in the same stream";
}

TEST_F(StagesLinkTest, WhatWindowsRememberIsSaidWhereTheStreamIs) {
  const auto remembering = [](base::Duration memory) {
    auto gate = std::make_shared<actors::OwnCamera>(*owned("gate", 5, "v1>s1"));
    gate->stream.pruning.refresh = config::Refresh::none;
    gate->stream.window.memory = memory;
    return gate;
  };
  start_gate(remembering(0s));
  for (const base::Duration memory : {10min, 5min, 0min}) {
    const std::int64_t before = patches(s1_);
    plan({remembering(memory)});
    pass(6s);
    EXPECT_EQ(s1_.language.desk.memory("gate"), memory);
    EXPECT_GT(patches(s1_), before) << "in the same stream";
  }
}

TEST_F(StagesLinkTest, AWayThatIsCutBetweenTheTwoIsMadeAnewAndTheStreamGoesOn) {
  start_gate();
  const std::int64_t before = patches(s1_);
  cut("v1", "s1");
  pass(7s);
  EXPECT_THAT(log_.str(),
              HasSubstr("link: v1>s1 cannot be reached: the way for visual tokens ended: silence"));
  EXPECT_EQ(told("status/").back(), "gate down");
  const double answers = answered(s1_);
  pass(3s);
  EXPECT_LE(answered(s1_), answers + 1);
  mend();
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_TRUE(goes_on(s1_));
  EXPECT_GT(patches(s1_), before) << "the stream stayed";
  EXPECT_FALSE(told_of("gate/person end"));
}

TEST_F(StagesLinkTest, ACutForLongerThanThePatienceEndsTheStreamAndNotTheEpisode) {
  start_gate();
  cut("v1", "s1");
  pass(25s);
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
  EXPECT_EQ(s1_.language.book.free_pages(), s1_.language.book.pages());
  mend();
  pass(6s);
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_FALSE(told_of("gate/person end"));
}

TEST_F(StagesLinkTest, ACutBetweenTheCameraAndItsTowerIsMadeAnewAsWell) {
  start_gate();
  const std::int64_t before = patches(s1_);
  cut("cam", "v1");
  pass(7s);
  EXPECT_EQ(told("status/").back(), "gate down");
  mend();
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_TRUE(goes_on(s1_));
  EXPECT_GT(patches(s1_), before);
}

TEST_F(StagesLinkTest, ATowerThatIsGoneIsReplacedAndTheStreamStaysWhereItIs) {
  start_gate();
  const std::int64_t before = patches(s1_);
  start_vision(v2_);
  make_way(v2_, s1_);
  caf::anon_send(v1_.dock, actors::stop_atom_v);
  pass(1s);
  EXPECT_EQ(told("status/").back(), "gate down");
  plan({owned("gate", 5, "v2>s1")});
  start_link(v2_, s1_);
  pass(2s);
  EXPECT_EQ(told("status/").back(), "gate up") << log_.str();
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(v2_.encoder.frames, 4U);
  EXPECT_GT(patches(s1_), before);
  EXPECT_FALSE(told_of("gate/person end"));
  pass(20s);
  EXPECT_TRUE(goes_on(s1_)) << "what is left of the first way ends nothing";
}

TEST_F(StagesLinkTest, ATowerGoesOnUntilTheNextOneEncodesAndTheStreamHearsOfNothing) {
  start_gate();
  const std::int64_t before = patches(s1_);
  publisher_.messages.clear();
  start_vision(v2_);
  make_way(v2_, s1_);
  plan({changes_tower()});
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_EQ(v2_.encoder.frames, 0U) << "there is no way to it yet";
  start_link(v2_, s1_);
  pass(2s);
  EXPECT_GT(v2_.encoder.frames, 0U);
  const auto encoded = v1_.encoder.frames;
  EXPECT_TRUE(goes_on(s1_));
  EXPECT_EQ(v1_.encoder.frames, encoded) << "one encodes for one stream";
  // As the node does when the plan has no former any more.
  caf::anon_send(links_.at("v1>s1"), moved_atom_v, std::string("gate"), true);
  plan({owned("gate", 5, "v2>s1")});
  EXPECT_TRUE(goes_on(s1_)) << "an end of the former's ends nothing";
  EXPECT_THAT(v1_.encoder.forgotten, ElementsAre("gate"));
  EXPECT_GE(patches(s1_), before + 10) << "it never began anew";
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0) << log_.str();
  EXPECT_THAT(v2_.metrics.text(), Not(HasSubstr("reason=\"unknown\""))) << "its first patch was whole";
  EXPECT_FALSE(told_down());
  EXPECT_FALSE(told_of("gate/person end"));
}

TEST_F(StagesLinkTest, AStreamWaitsForItsNextTowerWhereTheOneThatHasItLeavesFirst) {
  start_gate();
  const std::int64_t before = patches(s1_);
  start_vision(v2_);
  make_way(v2_, s1_);
  caf::anon_send(links_.at("v1>s1"), moved_atom_v, std::string("gate"), true);
  pass(2s);
  EXPECT_THAT(v1_.encoder.forgotten, ElementsAre("gate"));
  EXPECT_GE(patches(s1_), before);
  start_link(v2_, s1_);
  plan({owned("gate", 5, "v2>s1")});
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(patches(s1_), before) << "it never began anew";
  EXPECT_FALSE(told_of("gate/person end"));
  // And comes back, as any other that joins.
  caf::anon_send(links_.at("v2>s1"), moved_atom_v, std::string("gate"), true);
  plan({owned("gate", 5, "v1>s1")});
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(patches(s1_), before + 5);
}

TEST_F(StagesLinkTest, AStreamThatNoTowerComesForEnds) {
  start_gate();
  caf::anon_send(links_.at("v1>s1"), moved_atom_v, std::string("gate"), true);
  plan({});
  pass(20s);
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
  EXPECT_EQ(s1_.language.book.free_pages(), s1_.language.book.pages());
}

TEST_F(StagesLinkTest, ATowerThatHadTheCameraGoesOnWhereTheNextOneHasFailed) {
  start_gate();
  const std::int64_t before = patches(s1_);
  start_vision(v2_);
  make_way(v2_, s1_);
  plan({changes_tower()});
  start_link(v2_, s1_);
  pass(2s);
  ASSERT_GT(v2_.encoder.frames, 0U);
  caf::anon_send(v2_.dock, actors::stop_atom_v);
  pass(1s);
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(patches(s1_), before);
  EXPECT_EQ(told("status/").back(), "gate up");
}

// One tower's end overtakes the other one's beginning by less than the stream takes to come to its end.
TEST_F(StagesLinkTest, AStreamThatIsToBeginWhileItEndsBeginsWhenItHasEnded) {
  start_gate();
  start_vision(v2_);
  make_way(v2_, s1_);
  start_link(v2_, s1_);
  ASSERT_GT(patches(s1_), 0);
  const auto watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(v1_.port.send("s1", write(TokensEndFrame{"gate", 1})));
  ASSERT_TRUE(v2_.port.send("s1", write(TokensJoinFrame{watch, 1, "cam"})));
  pass(100ms);
  EXPECT_TRUE(s1_.language.desk.is_open("gate"));
  EXPECT_EQ(patches(s1_), 0) << "anew";
  EXPECT_FALSE(told_of("gate/person end")) << "its owner was told of no end";
  // And is let go as any other.
  ASSERT_TRUE(v2_.port.send("s1", write(TokensEndFrame{"gate", 1})));
  pass(100ms);
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
}

TEST_F(StagesLinkTest, AStreamThatWasToBeginAndIsNotWantedAnyMoreDoesNot) {
  start_gate();
  start_vision(v2_);
  make_way(v2_, s1_);
  start_link(v2_, s1_);
  const auto watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(v1_.port.send("s1", write(TokensEndFrame{"gate", 1})));
  ASSERT_TRUE(v2_.port.send("s1", write(TokensJoinFrame{watch, 1, "cam"})));
  ASSERT_TRUE(v2_.port.send("s1", write(TokensEndFrame{"gate", 1})));
  pass(100ms);
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
}

// Its sessions are counted from one again.
TEST_F(StagesLinkTest, ATowersNodeThatIsStartedAgainIsJoinedAgain) {
  start_gate();
  const std::int64_t before = patches(s1_);
  caf::anon_send(v1_.dock, actors::stop_atom_v);
  pass(1s);
  start_vision(v1_);
  make_way(v1_, s1_);
  start_link(v1_, s1_);
  pass(2s);
  EXPECT_EQ(told("status/").back(), "gate up") << log_.str();
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(patches(s1_), before);
}

TEST_F(StagesLinkTest, AStreamWhoseNodeIsGoneBeginsAtAnotherWithTheSameTower) {
  start_gate();
  start_stream(s2_);
  make_way(v1_, s2_);
  caf::anon_send(s1_.dock, actors::stop_atom_v);
  pass(1s);
  EXPECT_EQ(told("status/").back(), "gate down");
  plan({owned("gate", 5, "v1>s2")});
  start_link(v1_, s2_);
  pass(3s);
  EXPECT_EQ(told("status/").back(), "gate up") << log_.str();
  EXPECT_TRUE(goes_on(s2_)) << log_.str();
  EXPECT_FALSE(told_of("gate/person end"));
}

TEST_F(StagesLinkTest, AnEndThatComesWhenTheTowerHasGivenTheCameraUpKeepsNobodyOut) {
  start_gate();
  start_stream(s2_);
  make_way(v1_, s2_);
  cut("v1", "s1");
  pass(7s);
  ASSERT_EQ(told("status/").back(), "gate down");
  // It was under way when the tower lost the stream.
  ASSERT_EQ(cam_.send("v1", write(EndFrame{"gate", "s1"})).answer, cluster::BulkSent::Answer::taken);
  pass(1s);
  start_link(v1_, s2_);
  plan({owned("gate", 5, "v1>s2")});
  pass(4s);
  EXPECT_EQ(told("status/").back(), "gate up") << log_.str();
  EXPECT_TRUE(goes_on(s2_)) << log_.str();
}

TEST_F(StagesLinkTest, AStreamThatMovesGoesOnThereWithTheEpisodesOfTheCamera) {
  start_gate();
  start_stream(s2_);
  make_way(v1_, s2_);
  start_link(v1_, s2_);
  // As the node does with a plan.
  caf::anon_send(links_.at("v1>s1"), moved_atom_v, std::string("gate"), false);
  plan({owned("gate", 5, "v1>s2")});
  pass(3s);
  EXPECT_TRUE(goes_on(s2_)) << log_.str();
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
  EXPECT_EQ(s1_.language.book.free_pages(), s1_.language.book.pages());
  EXPECT_FALSE(told_of("gate/person end"));
  EXPECT_EQ(told("status/").back(), "gate up");
}

TEST_F(StagesLinkTest, AHigherFenceTakesTheCameraAndTheStreamGoesOn) {
  start_gate();
  const std::int64_t before = patches(s1_);
  std::vector<std::string> heard;
  const link_actor other = testing::link_by_hand(system_, heard);
  for (const HalfNode* node : {&s1_, &v1_})
    caf::send_as(caf::actor_cast<caf::actor>(other), node->dock, attach_atom_v, std::string("cam2"),
                 std::string("v1"), std::string("s1"));
  pass(200ms);
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 6), actors::version_of(6, 1));
  ASSERT_TRUE(cam2_.send("v1", write(JoinFrame{watch, 0, "s1"})));
  pass(1s);
  EXPECT_THAT(heard, Contains("room for gate")) << log_.str();
  const auto bring = [&](int i) {
    actors::FramePatch patch =
        *actors::testing::frame_patch(std::make_shared<const actors::WatchSettings>(watch), 100 + i, 90);
    patch.sequence = static_cast<std::uint64_t>(i);
    patch.captured = {clock_.now(), clock_.wall()};
    return static_cast<bool>(cam2_.send("v1", write(pack(patch, 2, clock_))));
  };
  const std::int64_t joined = patches(s1_);
  pass(4s);
  EXPECT_GT(patches(s1_), joined) << "the former one's, until the next one brings something";
  EXPECT_THAT(heard, Contains("window of gate"));
  ASSERT_TRUE(bring(0));
  pass(1s);
  EXPECT_THAT(log_.str(), HasSubstr("link: v1>s1 does not serve camera gate: its owner is node cam2 now"));
  // What the former owner still sends changes nothing.
  const std::size_t encoded = v1_.encoder.frames;
  pass(4s);
  EXPECT_EQ(v1_.encoder.frames, encoded);
  // The new one's patches join the stream that is there, and it hears the answers.
  heard.clear();
  for (int i = 1; i < 7; ++i) {
    ASSERT_TRUE(bring(i));
    pass(1s);
  }
  EXPECT_THAT(heard, AllOf(Contains("window of gate"), Contains("ack ")));
  EXPECT_GT(patches(s1_), before);
  plan({});
  pass(2s);
  EXPECT_EQ(board_.cameras().size(), 0U);
}

TEST_F(StagesLinkTest, AFormerOwnerIsRefusedByTheStreamWhicheverTowerBringsIt) {
  std::vector<std::string> heard;
  const link_actor other = link_another_owner(heard);
  // Fence 4 has never been at v2, and s1 knows of 5.
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 4), actors::version_of(4, 1));
  ASSERT_TRUE(cam2_.send("v2", write(JoinFrame{watch, 0, "s1"})));
  pass(1s);
  EXPECT_THAT(heard, Contains("refused its owner is another node by now (fence 5)")) << log_.str();
  EXPECT_TRUE(goes_on(s1_));
  EXPECT_THAT(v2_.encoder.forgotten, ElementsAre("gate")) << "it comes to its end there";
}

TEST_F(StagesLinkTest, OfTwoOwnersOfOneFenceTheSecondOneHearsThatTheStreamRefusesIt) {
  std::vector<std::string> heard;
  const link_actor other = link_another_owner(heard);
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(cam2_.send("v2", write(JoinFrame{watch, 0, "s1"})));
  pass(1s);
  EXPECT_THAT(heard, Contains("refused its owner is another node by now (fence 5)")) << log_.str();
  EXPECT_TRUE(goes_on(s1_));
}

TEST_F(StagesLinkTest, AStreamsDeviceThatIsMadeAgainIsJoinedAgain) {
  start_with_another_engine();
  ASSERT_TRUE(told_of("gate up"));
  ASSERT_GT(patches(s1_), 2);
  // What no window alone is to blame for.
  s1_.language.passes.on_ask = [](std::size_t) { throw 7; };
  pass(3s);
  EXPECT_THAT(log_.str(), HasSubstr("its engine is made again")) << log_.str();
  pass(5s);
  EXPECT_GT(patches(s2_), 2) << "that of the other one is what it was made again with";
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
}

TEST_F(StagesLinkTest, ACameraThatLeavesWhileItsStreamsDeviceIsMadeAgainMayComeBack) {
  start_with_another_engine();
  ASSERT_GT(patches(s1_), 2);
  s1_.language.passes.on_ask = [](std::size_t) { throw 7; };
  for (int i = 0; i < 100 && log_.str().find("its engine is made again") == std::string::npos; ++i)
    pass(100ms);
  ASSERT_THAT(log_.str(), HasSubstr("its engine is made again"));
  plan({});
  // Longer than docks keep a camera whose bringer is away.
  pass(20s);
  plan({owned("gate", 7, "v1>s1")});
  pass(6s);
  EXPECT_GT(patches(s2_), 2) << log_.str();
  EXPECT_TRUE(goes_on(s1_));
}

TEST_F(StagesLinkTest, ATowersDeviceThatIsMadeAgainIsJoinedAgain) {
  for (int i = 0; i < 2; ++i) sources_.add("/clips/gate.mp4", frames(std::vector<int>(4000, 90)));
  start_dock(v1_, tower(v1_), [this] { return tower(v2_); });
  start_stream(s1_);
  make_way(v1_, s1_);
  start_node({owned("gate", 5, "v1>s1")});
  start_link(v1_, s1_);
  pass(5s);
  const std::int64_t before = patches(s1_);
  ASSERT_GT(before, 2);
  // An error that no patch alone has, and that leaves the device usable.
  v1_.encoder.on_encode = [] { throw 7; };
  pass(3s);
  EXPECT_THAT(log_.str(), HasSubstr("its engine is made again")) << log_.str();
  pass(4s);
  EXPECT_TRUE(goes_on(s1_)) << log_.str();
  EXPECT_GT(v2_.encoder.frames, 4U);
  EXPECT_GT(patches(s1_), before);
}

TEST_F(StagesLinkTest, BytesThatMakeNoSenseAreRefusedAndTheRestGoesOn) {
  start_gate();
  ASSERT_TRUE(v1_.port.send("s1", {"t", {cluster::Bytes(std::string("nonsense"))}}));
  // Of a camera of its own, in a shape that no token has.
  actors::VisualPatch patch;
  patch.watch = {"gate", actors::version_of(5, 1)};
  model::VisualTokens shape;
  shape.width = 3;
  shape.kept = base::GridMask::all(1, 1);
  shape.duration = 1;
  patch.tokens = run::host_tokens(std::move(shape), std::vector<std::byte>(12));
  patch.frames = 2;
  for (const std::uint32_t session : {0U, 1U, 99U})
    ASSERT_TRUE(v1_.port.send("s1", write(pack(patch, session, clock_))));
  pass(1s);
  EXPECT_THAT(log_.str(), HasSubstr("dock: ignored bytes of node v1 that make no sense"));
  EXPECT_THAT(log_.str(), HasSubstr("dock: ignored visual tokens of camera gate of node v1 that do not fit"));
  EXPECT_TRUE(goes_on(s1_));
}

TEST_F(StagesLinkTest, ANodeThatHasBothHalvesEncodesForAnothersStream) {
  for (int i = 0; i < 2; ++i) {
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(4000, 90)));
    sources_.add("/clips/yard.mp4", frames(std::vector<int>(4000, 90)));
  }
  start_dock(v1_, parts(v1_.encoder, v1_.language));
  start_stream(s1_);
  make_way(v1_, s1_);
  start_node({owned("gate", 5, "v1>s1"), owned("yard", 6, "v1")});
  start_link(v1_, s1_);
  start_link(v1_, v1_);
  pass(8s);
  EXPECT_TRUE(told_of("gate/person new")) << log_.str();
  EXPECT_TRUE(told_of("yard/person new")) << log_.str();
  EXPECT_FALSE(v1_.language.desk.is_open("gate"));
  EXPECT_TRUE(v1_.language.desk.is_open("yard"));
  // One that comes to be all its own.
  caf::anon_send(links_.at("v1>s1"), moved_atom_v, std::string("gate"), false);
  plan({owned("gate", 5, "v1"), owned("yard", 6, "v1")});
  pass(6s);
  EXPECT_TRUE(v1_.language.desk.is_open("gate")) << log_.str();
  EXPECT_FALSE(s1_.language.desk.is_open("gate"));
  EXPECT_FALSE(told_of("gate/person end"));
}

TEST_F(StagesLinkTest, ALinkIsRefusedWhereItsHalfIsNot) {
  start_node({});
  start_vision(v1_);
  start_stream(s1_);
  std::vector<std::string> heard;
  const link_actor other = testing::link_by_hand(system_, heard);
  const auto may = [&](const HalfNode& at, const std::string& vision, const std::string& stream) {
    bool answer = true;
    caf::scoped_actor asker{system_};
    auto asked = asker->request(at.dock, caf::infinite, attach_atom_v, std::string("cam2"), vision, stream);
    settle();
    asked.receive([&](bool may_attach) { answer = may_attach; }, [](const caf::error&) {});
    return answer;
  };
  EXPECT_FALSE(may(v1_, "v1", "v1"));
  EXPECT_FALSE(may(s1_, "s1", "s1"));
  EXPECT_FALSE(may(v1_, "v1", "s1")) << "as long as there is no way to it";
  make_way(v1_, s1_);
  pass(1s);
  EXPECT_TRUE(may(v1_, "v1", "s1"));
  EXPECT_TRUE(may(s1_, "v1", "s1"));
}

}  // namespace
}  // namespace vigil::fleet
