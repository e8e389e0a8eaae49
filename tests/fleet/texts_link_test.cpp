// Windows of one node, whose texts go on at another, under the deterministic scheduler.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/fleet/half_nodes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::frames;
using testing::HalfNode;
using ::testing::HasSubstr;
using ::testing::Not;

/// s2 generates for s1's streams.
class TextsLinkTest : public testing::HalvesTest {
 protected:
  /// The camera begins with `start_gate`; its alert is told after 6 s at the latest.
  void SetUp() override {
    PipelineTest::SetUp();
    gate_ = std::make_shared<actors::OwnCamera>(*owned("gate", 5, "v1>s1"));
    gate_->rules[0].explain = true;
    start_stream(s2_);
  }
  void start(bool has_way = true) {
    for (int i = 0; i < 3; ++i) sources_.add("/clips/gate.mp4", frames(std::vector<int>(4000, 90)));
    start_vision(v1_);
    start_stream(s1_);
    make_way(v1_, s1_);
    if (has_way) make_way(s1_, s2_);
    start_node({gate_});
    start_link(v1_, s1_);
    generate_at("s2", 5);
    pass(6s);
    ASSERT_TRUE(told_of("gate up")) << log_.str();
  }
  void generate_at(const std::string& node, std::uint64_t fence) {
    caf::anon_send(links_.at("v1>s1"), TextsAt{"gate", fence, node});
    pass(100ms);
  }
  std::string description() const {
    for (const auto& each : publisher_.messages)
      if (each.topic.starts_with("alert/"))
        return nlohmann::json::parse(each.body)["data"]["description"].get<std::string>();
    return "no alert";
  }
  static double generated(const HalfNode& node) {
    return number(node.metrics.text(), "vigil_generation_tokens_total");
  }
  /// All that a window has taken is free in the end.
  void expect_nothing_left() {
    plan({});
    pass(15s);
    for (HalfNode* node : {&s1_, &s2_}) {
      EXPECT_EQ(node->language.book.free_pages(), node->language.book.pages()) << node->name;
      EXPECT_EQ(node->language.desk.texts(), 0U);
    }
  }
  /// What s2 hears from now on is written down, and goes no further.
  void record() {
    s2_.owner.on_arrival = [this](const BulkArrivalPtr& arrival) {
      recorded_.push_back(arrival->received.message);
    };
  }
  /// Of what was written down, the frames of one.
  std::vector<cluster::BulkMessage> first_text() const {
    std::vector<cluster::BulkMessage> frames_of_it;
    for (const cluster::BulkMessage& each : recorded_) {
      if (each.header == "T" && !frames_of_it.empty()) break;
      frames_of_it.push_back(each);
    }
    return frames_of_it;
  }
  void replay(const std::vector<cluster::BulkMessage>& messages) {
    for (const cluster::BulkMessage& each : messages)
      caf::anon_send(s2_.dock, std::make_shared<BulkArrival>(BulkArrival{"s1", {each, 0, {}}}));
    pass(1s);
  }

  std::shared_ptr<actors::OwnCamera> gate_;
  std::vector<cluster::BulkMessage> recorded_;
  const std::string words_ = "Yes, a 90.";
};

TEST_F(TextsLinkTest, TextsGoOnAtTheNodeThatThePlanNames) {
  start();
  EXPECT_EQ(description(), words_) << log_.str();
  EXPECT_EQ(generated(s1_), 0);
  EXPECT_GT(generated(s2_), 1);
  EXPECT_EQ(answered(s2_), 0) << "it answers no window";
  EXPECT_TRUE(goes_on(s1_));
  expect_nothing_left();
}

TEST_F(TextsLinkTest, WithoutAWayTheyComeFromWhereTheWindowIs) {
  start(false);
  EXPECT_EQ(description(), words_);
  EXPECT_GT(generated(s1_), 1);
  EXPECT_EQ(generated(s2_), 0);
  expect_nothing_left();
}

TEST_F(TextsLinkTest, AFormerOwnerDoesNotSayWhere) {
  start(false);
  make_way(s1_, s2_);
  generate_at("s1", 6);
  generate_at("s2", 5);
  const double before = generated(s1_);
  auto changed = std::make_shared<actors::OwnCamera>(*gate_);
  changed->rules[0].name = "somebody";
  plan({changed});
  pass(6s);
  ASSERT_TRUE(told_of("gate/somebody new")) << log_.str();
  EXPECT_GT(generated(s1_), before);
  EXPECT_EQ(generated(s2_), 0);
}

TEST_F(TextsLinkTest, ANodeWithoutRoomRefusesAndTheTextComesFromWhereTheWindowIs) {
  const auto others = s2_.language.book.claim(s2_.language.book.pages());
  start();
  EXPECT_EQ(description(), words_);
  EXPECT_GT(generated(s1_), 1);
  EXPECT_EQ(generated(s2_), 0);
  EXPECT_THAT(log_.str(),
              HasSubstr("a text of camera gate comes from here, not from node s2: the KV cache has "
                        "no room for it now"));
}

TEST_F(TextsLinkTest, PagesOfAnotherModelAreRefused) {
  s2_.language.passes.form = 2;
  start();
  EXPECT_EQ(description(), words_);
  EXPECT_EQ(generated(s2_), 0);
  EXPECT_THAT(log_.str(), HasSubstr("not from node s2: these are pages of another model"));
  expect_nothing_left();
}

TEST_F(TextsLinkTest, ANodeThatDiesInTheMiddleIsNotWaitedFor) {
  record();
  start();
  EXPECT_FALSE(recorded_.empty()) << "its pages were sent";
  caf::anon_send(s2_.dock, actors::stop_atom_v);
  pass(1s);
  EXPECT_EQ(description(), words_) << log_.str();
  EXPECT_GT(generated(s1_), 1);
  EXPECT_THAT(log_.str(), HasSubstr("not from node s2: node s2 is gone"));
  EXPECT_TRUE(goes_on(s1_));
  plan({});
  pass(15s);
  EXPECT_EQ(s1_.language.book.free_pages(), s1_.language.book.pages());
}

TEST_F(TextsLinkTest, AWayThatIsCutInTheMiddleIsNotWaitedFor) {
  record();
  start();
  cut("s1", "s2");
  pass(5s);
  EXPECT_EQ(description(), words_) << log_.str();
  EXPECT_GT(generated(s1_), 1);
}

TEST_F(TextsLinkTest, ANodeThatDoesNotAnswerIsWaitedForSixSeconds) {
  record();
  start();
  EXPECT_EQ(description(), "no alert") << "it waits for its text";
  pass(4s);
  EXPECT_EQ(description(), words_) << log_.str();
  EXPECT_GT(generated(s1_), 1);
  EXPECT_THAT(log_.str(), HasSubstr("not from node s2: it did not come back in time"));
  // What it says after all is nobody's any more.
  replay(first_text());
  pass(1s);
  EXPECT_GT(generated(s2_), 1);
  const auto all = told("alert/");
  EXPECT_EQ(std::count(all.begin(), all.end(), "gate/person new"), 1);
  expect_nothing_left();
}

TEST_F(TextsLinkTest, WhatIsOfAFormerOwnerOrDamagedGeneratesNothing) {
  record();
  start();
  const std::vector<cluster::BulkMessage> sent = first_text();
  ASSERT_GE(sent.size(), 2U);
  const auto frame = read(sent[0]);
  ASSERT_TRUE(frame);
  const TextFrame text = std::get<TextFrame>(*frame);

  std::vector<cluster::BulkMessage> truncated = sent;
  truncated.back().parts.back() = truncated.back().parts.back().part(0, 5);
  replay(truncated);
  std::vector<cluster::BulkMessage> without = {sent[0]};
  replay(without);
  replay({{"p", {cluster::Bytes(std::string("nonsense"))}}});
  EXPECT_EQ(generated(s2_), 0);
  EXPECT_EQ(s2_.language.book.free_pages(), s2_.language.book.pages());

  // A text of a later owner: from now on, the former one's are refused.
  TextFrame later = text;
  later.form.watch.version = actors::version_of(6, 1);
  ++later.form.ticket;
  replay({write(later)});
  replay(sent);
  EXPECT_EQ(generated(s2_), 0);
  std::vector<cluster::BulkMessage> whole = sent;
  --later.form.ticket;
  whole[0] = write(later);
  replay(whole);
  EXPECT_GT(generated(s2_), 1) << "all but the fence was right";
  EXPECT_EQ(s2_.language.book.free_pages(), s2_.language.book.pages());
}

TEST_F(TextsLinkTest, ADeviceThatIsMadeAgainTakesTextsAgain) {
  caf::anon_send(s2_.dock, actors::stop_atom_v);
  pass(1s);
  start_dock(s2_, language(s2_), [this] { return language(v2_); });
  s2_.language.passes.on_generate = [](std::size_t) { throw 7; };
  start();
  EXPECT_EQ(description(), words_) << log_.str();
  EXPECT_GT(generated(s1_), 1);
  EXPECT_THAT(log_.str(), HasSubstr("its engine is made again"));
  pass(3s);
  const double before = generated(s1_);
  auto changed = std::make_shared<actors::OwnCamera>(*gate_);
  changed->rules[0].name = "somebody";
  plan({changed});
  pass(6s);
  ASSERT_TRUE(told_of("gate/somebody new")) << log_.str();
  EXPECT_EQ(generated(s1_), before);
  EXPECT_GT(generated(s2_), 1);
}

}  // namespace
}  // namespace vigil::fleet
