// Nodes that read cameras are asked which clips show the evidence of an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fleet/past/past_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastOutcome;
using nlohmann::json;
using ::testing::IsEmpty;
using testing::PastActorTest;
using ::testing::SizeIs;

constexpr std::int64_t kSecond = 1'000'000'000;
/// 2026-11-29T10:00:00Z
constexpr std::int64_t kTen = 1'795'946'400 * kSecond;

class PastClipsTest : public PastActorTest {
 protected:
  static json window(int second, double score) {
    const std::string minute = "2026-11-29T10:00:";
    const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
    return {{"from", minute + two(second) + ".000Z"},
            {"to", minute + two(second + 10) + ".000Z"},
            {"score", score}};
  }
  static void keep(Node& node, const std::string& name, int from, int to,
                   const std::string& tenant = "acme") {
    node.clips.kept.add(name, {{tenant, "gate"}, {kTen + from * kSecond, kTen + to * kSecond}}, name + ".mp4",
                        name + ".jpg");
  }
  json evidence() {
    EXPECT_THAT(replies_, SizeIs(1));
    if (replies_.empty()) return json();
    EXPECT_EQ(replies_.back().outcome, PastOutcome::answer) << replies_.back().text;
    return json::parse(replies_.back().text).at("evidence");
  }
};

TEST_F(PastClipsTest, WhoeverHasTheBestOneIsHeard) {
  Node& gpu = node("gpu-1", true);
  Node& one = reads(node("cam-1", false));
  Node& two = reads(node("cam-2", false));
  Node& gateway = node("gw", false);
  keep(one, "short", 0, 4);
  keep(two, "long", 2, 9);
  keep(two, "theirs", 0, 59, "zoo");
  keep(gpu, "unread", 0, 59);
  ask(gateway, question());
  say(gpu, 0.9, json::array({window(1, 0.9), window(30, 0.2)}));
  const json seen = evidence();
  ASSERT_THAT(seen, SizeIs(2));
  EXPECT_EQ(seen[0].at("clip"), "long.mp4");
  EXPECT_EQ(seen[0].at("thumb"), "long.jpg");
  EXPECT_EQ(seen[0].at("node"), "gpu-1") << "who remembers";
  EXPECT_TRUE(seen[1].at("clip").is_null());
  EXPECT_TRUE(seen[1].at("thumb").is_null());
  EXPECT_EQ(gpu.clips.asked, 0U) << "it reads no cameras";
  EXPECT_EQ(gateway.clips.asked, 0U);
}

TEST_F(PastClipsTest, ANodeAsksItselfToo) {
  Node& all = reads(node("all", true));
  keep(all, "own", 0, 4);
  // As where it has no way to itself.
  standing_.ways.erase("all");
  ask(all, question());
  say(all, 0.9, json::array({window(1, 0.9)}));
  EXPECT_EQ(evidence().at(0).at("clip"), "own.mp4");
}

TEST_F(PastClipsTest, WithoutEvidenceNobodyIsAsked) {
  Node& gpu = node("gpu-1", true);
  Node& one = reads(node("cam-1", false));
  Node& gateway = node("gw", false);
  ask(gateway, question());
  say(gpu, 0.1);
  EXPECT_THAT(evidence(), IsEmpty());
  EXPECT_EQ(one.clips.asked, 0U);
}

TEST_F(PastClipsTest, WhoDoesNotAnswerHoldsNothingUp) {
  Node& gpu = node("gpu-1", true);
  Node& slow = reads(node("cam-1", false));
  Node& odd = reads(node("cam-2", false));
  Node& good = reads(node("cam-3", false));
  Node& gateway = node("gw", false);
  for (Node* const each : {&slow, &odd, &good}) keep(*each, each->name, 0, 9);
  slow.clips.owes = true;
  odd.clips.instead = R"({"clips": [{"clip": 7}]})";
  ask(gateway, question());
  say(gpu, 0.9, json::array({window(1, 0.9)}));
  EXPECT_THAT(replies_, IsEmpty());
  pass(2s);
  EXPECT_EQ(evidence().at(0).at("clip"), "cam-3.mp4");
}

TEST_F(PastClipsTest, AnAnswerComesBeforeItsTimeIsOver) {
  Node& gpu = node("gpu-1", true);
  Node& slow = reads(node("cam-1", false));
  Node& gateway = node("gw", false);
  slow.clips.owes = true;
  ask(gateway, question());
  pass(59s);
  say(gpu, 0.9, json::array({window(1, 0.9)}));
  EXPECT_THAT(replies_, IsEmpty());
  pass(750ms);
  EXPECT_TRUE(evidence().at(0).at("clip").is_null());
}

}  // namespace
}  // namespace vigil::fleet
