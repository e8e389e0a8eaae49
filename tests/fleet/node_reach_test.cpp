// How a node comes, whom it tells that it does not reach, and what it says of clocks.
#include "tests/fleet/node_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using cluster::NodeRole;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kComputes;
using ::testing::Not;

class NodeReachTest : public testing::NodeTest {
 protected:
  std::size_t owned(const json& page, const std::string& name) {
    std::size_t count = 0;
    for (const json& camera : page.at("list")) count += camera.at("owner") == name;
    return count;
  }
  /// Whether the registry tells of it.
  bool is_told(const std::string& name) const {
    return !store_->range("/vigil/city/nodes/" + name).entries.empty();
  }
  /// Passes the time in which it is given nothing, at any moment of it.
  void pass_without(const std::string& name, base::Duration span) {
    for (base::Duration done{0}; done < span; done += 250ms) {
      pass(250ms);
      for (const auto& entry : store_->range("/vigil/city/plan/").entries)
        for (const json& camera : json::parse(entry.value).at("cameras")) {
          ASSERT_FALSE(entry.key.ends_with("/" + name)) << entry.value;
          ASSERT_NE(camera.value("stream", ""), name) << entry.value;
        }
    }
  }
  json record(const std::string& name) const {
    return json::parse(store_->range("/vigil/city/nodes/" + name).entries.at(0).value);
  }
};

TEST_F(NodeReachTest, OneThatReachesNobodyIsGivenNothingUntilAWayStands) {
  wish({"a", "b", "c", "d", "e", "f", "g", "h"});
  const Node& c1 = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  cut_ = {{"c2", "gpu"}};
  start("c2", {NodeRole::camera});
  pass_without("c2", 20s);
  json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "c2").at("state"), "ready") << "it is there";
  EXPECT_EQ(node_of(page, "c2").at("apart"), true);
  EXPECT_EQ(owned(page, "c1"), 8U);
  EXPECT_EQ(owned(page, "c2"), 0U);
  EXPECT_THAT(log_.str(), HasSubstr("has found no way to any node with which it deals"));
  cut_.clear();
  pass(20s);
  page = shown(c1, {.cameras = true});
  EXPECT_EQ(node_of(page, "c2").at("apart"), false);
  EXPECT_EQ(owned(page, "c2"), 4U);
}

TEST_F(NodeReachTest, OneThatReachesAGatewayAloneIsGivenNothing) {
  wish({"a", "b", "c", "d"});
  const Node& c1 = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  start("w1", {NodeRole::gateway});
  pass(6s);
  cut_ = {{"c2", "gpu"}};
  start("c2", {NodeRole::camera});
  pass_without("c2", 20s);
  json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "c2").at("apart"), true);
  cut_.clear();
  pass(20s);
  EXPECT_EQ(owned(shown(c1, {.cameras = true}), "c2"), 2U);
}

/// Its lease ends, and it comes back: what was told of it before is told no more.
TEST_F(NodeReachTest, WhoComesBackIsNotToldUntilItHasBeenUnreachableAgain) {
  wish({"a", "b", "c", "d", "e", "f", "g", "h"});
  cut_ = {{"c1", "g2"}};
  const Node& c1 = start("c1", {NodeRole::camera});
  start("g1", kComputes);
  Node& g2 = start("g2", kComputes);
  start("w1", {NodeRole::gateway});
  pass(25s);
  ASSERT_EQ(node_of(shown(c1), "c1").at("unreachable"), json({"g2"}));
  g2.is_cut = true;
  pass(6s);
  ASSERT_FALSE(is_told("g2"));
  cut_.clear();
  g2.is_cut = false;
  pass(15s);
  ASSERT_TRUE(is_told("g2"));
  const json page = shown(c1, {.cameras = true});
  EXPECT_EQ(node_of(page, "c1").at("unreachable"), json::array());
  EXPECT_EQ(node_of(page, "g2").at("streams"), 4);
}

TEST_F(NodeReachTest, OneThatComputesAndReachesNobodyIsGivenNoStream) {
  wish({"a", "b", "c", "d", "e", "f", "g", "h"});
  const Node& c1 = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  cut_ = {{"c1", "new"}, {"gpu", "new"}};
  start("new", kComputes);
  pass_without("new", 20s);
  json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "new").at("apart"), true);
  EXPECT_EQ(node_of(page, "new").at("streams"), 0);
  EXPECT_EQ(node_of(page, "gpu").at("streams"), 8);
  cut_.clear();
  pass(30s);
  page = shown(c1, {.cameras = true});
  EXPECT_EQ(node_of(page, "new").at("streams"), 4);
}

/// As with a wrong `cluster.advertise`: it reaches all others, and is linked with them.
TEST_F(NodeReachTest, OneThatNobodyReachesIsGivenNothingFromTheStart) {
  wish({"a", "b", "c", "d", "e", "f", "g", "h"});
  const Node& c1 = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  const json before = shown(c1, {.cameras = true}).at("list");
  told_["c2"] = "elsewhere";
  start("c2", {NodeRole::camera});
  pass_without("c2", 30s);
  json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "c2").at("state"), "ready") << "it is there";
  EXPECT_EQ(node_of(page, "c2").at("apart"), true);
  ASSERT_EQ(page.at("list").size(), 8U);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(page.at("list")[i].at("fence"), before[i].at("fence")) << "nobody let it go";
  EXPECT_THAT(log_.str(),
              HasSubstr("node gpu does not reach this one at elsewhere:7400: nobody listens there"));
  EXPECT_THAT(log_.str(), HasSubstr("no node with which it deals has come to it at elsewhere:7400 "
                                    "(cluster.advertise): it is given nothing until one has"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("has found no way to any node"))) << "it has";
  hosts_["elsewhere"] = "c2";
  pass(20s);
  page = shown(c1, {.cameras = true});
  EXPECT_EQ(node_of(page, "c2").at("apart"), false);
  EXPECT_EQ(owned(page, "c2"), 4U);
  EXPECT_THAT(log_.str(), HasSubstr("node gpu reaches this one"));
}

TEST_F(NodeReachTest, WhereAnotherNodeAnswersItIsNotReached) {
  wish({"a", "b", "c", "d"});
  start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  told_["c2"] = "c1";
  start("c2", {NodeRole::camera});
  pass_without("c2", 20s);
  EXPECT_THAT(log_.str(), HasSubstr("does not reach this one at c1:7400: another node answers there: c1"));
}

TEST_F(NodeReachTest, WhoHearsOfNobodyThatReachesItIsThereAfterASecondAndGivenNothing) {
  wish({"a", "b", "c", "d"});
  start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  told_["c2"] = "far";
  lost_ = {"far"};
  start("c2", {NodeRole::camera});
  pass(900ms);
  EXPECT_FALSE(is_told("c2"));
  pass(250ms);
  ASSERT_TRUE(is_told("c2"));
  EXPECT_EQ(record("c2").value("apart", false), true);
  pass_without("c2", 30s);
}

/// There was nobody to ask when it came.
TEST_F(NodeReachTest, TheFirstOneGivesUpWhatItHasWhenOthersDoNotReachIt) {
  wish({"a", "b", "c", "d"});
  told_["c2"] = "elsewhere";
  start("c2", {NodeRole::camera});
  pass(3s);
  start("gpu", kComputes);
  const Node& c1 = start("c1", {NodeRole::camera});
  pass(30s);
  const json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(record("c2").value("apart", false), true);
  EXPECT_FALSE(record("gpu").contains("apart"));
  EXPECT_FALSE(record("c1").contains("apart"));
  EXPECT_EQ(owned(page, "c1"), 4U);
}

TEST_F(NodeReachTest, AmongBuildsThatDoNotTellOneIsTakenAsItComes) {
  wish({"a", "b", "c", "d"});
  old_ = {"gpu"};
  const Node& c1 = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  start("c2", {NodeRole::camera});
  pass(150ms);
  ASSERT_TRUE(is_told("c2"));
  EXPECT_FALSE(record("c2").contains("apart"));
  pass(20s);
  EXPECT_EQ(owned(shown(c1, {.cameras = true}), "c2"), 2U);
}

TEST_F(NodeReachTest, WhoIsFirstOrAnsweredIsThereAtOnce) {
  start("c1", {NodeRole::camera});
  pass(150ms);
  EXPECT_TRUE(is_told("c1"));
  start("gpu", kComputes);
  pass(150ms);
  ASSERT_TRUE(is_told("gpu"));
  EXPECT_FALSE(record("gpu").contains("apart"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("no way")));
}

TEST_F(NodeReachTest, WhoHearsNothingIsThereAfterASecond) {
  start("c1", {NodeRole::camera});
  pass(1s);
  swallowed_ = {{"c1", "gpu"}};
  start("gpu", kComputes);
  pass(900ms);
  EXPECT_FALSE(is_told("gpu"));
  pass(250ms);
  ASSERT_TRUE(is_told("gpu"));
  EXPECT_EQ(record("gpu").value("apart", false), true);
}

TEST_F(NodeReachTest, AnOwnerTellsOfTheOneThatItDoesNotReachAndAThirdComputes) {
  wish({"a", "b", "c", "d", "e", "f", "g", "h"});
  cut_ = {{"c1", "g2"}};
  const Node& c1 = start("c1", {NodeRole::camera});
  start("g1", kComputes);
  start("g2", kComputes);
  start("c2", {NodeRole::camera});
  start("w1", {NodeRole::gateway});
  pass(25s);
  json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "c1").at("unreachable"), json({"g2"}));
  EXPECT_EQ(node_of(page, "c1").at("apart"), false);
  EXPECT_GT(owned(page, "c1"), 0U);
  for (const json& camera : page.at("list"))
    if (camera.at("owner") == "c1") {
      EXPECT_EQ(camera.at("stream"), "g1") << camera;
    }
  cut_.clear();
  pass(30s);
  EXPECT_EQ(node_of(shown(c1), "c1").at("unreachable"), json::array());
}

TEST_F(NodeReachTest, AClockThatIsSteppedLaterBreaksNoWayAndIsTold) {
  wish({"gate"});
  const Node& c1 = start("c1", {NodeRole::camera});
  Node& gpu = start("gpu", kComputes);
  start("w1", {NodeRole::gateway});
  pass(10s);
  ASSERT_THAT(log_.str(), Not(HasSubstr("clocks are apart")));
  gpu.clock.ahead = 5s;
  pass(20s);
  EXPECT_THAT(log_.str(), HasSubstr("clocks are apart: that of gpu is at least 5s ahead of that of c1"));
  json page = shown(c1);
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "gpu").at("clock_off"), true);
  EXPECT_EQ(node_of(page, "c1").at("clock_off"), false) << "one of two others has its time";
  EXPECT_EQ(node_of(page, "w1").at("clock_off"), false);
  EXPECT_EQ(node_of(page, "gpu").at("answers"), true);
  EXPECT_EQ(node_of(page, "gpu").at("streams"), 1) << "it keeps what it has";
  for (const char* node : {"c1", "gpu", "w1"})
    EXPECT_EQ(node_of(page, node).at("unreachable"), json::array());
  gpu.clock.ahead = 0s;
  pass(20s);
  EXPECT_EQ(node_of(shown(c1), "gpu").at("clock_off"), false);
}

TEST_F(NodeReachTest, AGreetingThatWasLongUnderWayIsNoClockThatIsBehind) {
  wish({"gate"});
  const Node& c1 = start("c1", {NodeRole::camera});
  Node& gpu = start("gpu", kComputes);
  pass(10s);
  // As one that waited in a socket while c1 stood still.
  const cluster::Greeting late{"city", cluster::parse_node(record("gpu").dump()), clock_.wall() - 4500ms};
  caf::scoped_actor self{system_};
  self->send(c1.actor, greet_atom_v, cluster::print(late));
  pass(1s);
  EXPECT_THAT(log_.str(), Not(HasSubstr("clocks are apart")));
  gpu.clock.ahead = -5s;
  pass(20s);
  EXPECT_THAT(log_.str(), HasSubstr("clocks are apart: that of gpu is at least 5s behind that of c1"));
}

TEST_F(NodeReachTest, OneThatComesWithAClockThatIsBehindIsRefusedOnBothSides) {
  wish({"gate"});
  const Node& gpu = start("gpu", kComputes);
  pass(5s);
  start("c1", {NodeRole::camera}).clock.ahead = -5s;
  pass(10s);
  EXPECT_THAT(log_.str(), HasSubstr("refused node c1 at c1:7400: "));
  EXPECT_THAT(log_.str(), HasSubstr("clocks are apart: that of gpu is at least 5s ahead of that of c1"));
  const json page = shown(gpu);
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "gpu").at("clock_off"), false);
  EXPECT_EQ(node_of(page, "c1").at("apart"), true) << "it is given nothing";
}

/// Its clock would keep it out at first contact; that of two nodes that had a way is no first contact.
TEST_F(NodeReachTest, AWayThatBreaksAfterAClockWasSteppedIsMadeAnew) {
  wish({"gate"});
  mute_ = {"gpu"};
  Node& gpu = start("gpu", kComputes);
  start("c1", {NodeRole::camera});
  pass(10s);
  gpu.clock.ahead = 5s;
  const std::size_t ways = mutes_.size();
  for (const testing::mute_actor& mute : mutes_) caf::anon_send_exit(mute, caf::exit_reason::kill);
  pass(10s);
  ASSERT_GT(mutes_.size(), ways) << "it is greeted anew";
  EXPECT_THAT(log_.str(), Not(HasSubstr("no way to node"))) << log_.str();
  EXPECT_THAT(log_.str(), HasSubstr("clocks are apart"));
  EXPECT_FALSE(record("c1").contains("unreachable"));
}

TEST_F(NodeReachTest, ASecondOneOfANameAtTheSameAddressEndsAndTheFirstGoesOn) {
  Node& first = start("c1", {NodeRole::camera});
  pass(1s);
  const Node& second = start("c1", {NodeRole::camera}, {}, {}, {}, "2");
  pass(10s);
  EXPECT_THAT(second.expelled, HasSubstr("another node answers at c1:7400, this one's own address"));
  EXPECT_THAT(first.expelled, IsEmpty());
  EXPECT_EQ(record("c1").at("incarnation"), "1");
}

}  // namespace
}  // namespace vigil::fleet
