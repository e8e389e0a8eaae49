// When a fleet runs by another configuration: all of it or none.
#include "cluster/membership/config_agreement.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NodeRecord node(const std::string& name, NodeState state, const std::string& runs, std::uint64_t version,
                const std::string& seen, const std::string& fault = "") {
  NodeRecord record;
  record.name = name;
  record.state = state;
  record.config = runs;
  record.config_version = version;
  record.config_seen = seen;
  record.config_fault = fault;
  return record;
}

std::map<std::string, NodeRecord> nodes(std::initializer_list<NodeRecord> records) {
  std::map<std::string, NodeRecord> named;
  for (const NodeRecord& record : records) named.emplace(record.name, record);
  return named;
}

NodeRecord ready(const std::string& name, const std::string& seen, const std::string& fault = "") {
  return node(name, NodeState::ready, "A", 1, seen, fault);
}
NodeRecord joining(const std::string& name, const std::string& seen, const std::string& fault = "") {
  return node(name, NodeState::joining, "", 0, seen, fault);
}

const FleetConfig kFirst{"A", 1, {}};

std::optional<FleetConfig> proposal(const std::map<std::string, NodeRecord>& there,
                                    const std::optional<FleetConfig>& registered) {
  ConfigAgreement agreement("c1");
  agreement.see(there, registered);
  if (const auto own = there.find("c1"); own != there.end()) {
    agreement.read(own->second.config, "");
    agreement.take();
    agreement.read(own->second.config_seen, own->second.config_fault);
  }
  return agreement.proposal();
}

TEST(FleetConfigText, IsReadBack) {
  const FleetConfig config{"B", 7, {"A", "Z"}};
  EXPECT_EQ(parse_config(print(config)), config);
  for (const char* text : {"", "{}", "[]", R"({"hash": "B"})", R"({"hash": "", "version": 3})",
                           R"({"hash": "B", "version": 0})", R"({"hash": "B", "version": 1, "before": 7})"})
    EXPECT_THROW(parse_config(text), std::runtime_error) << text;
}

TEST(ContentHash, IsSha256) {
  EXPECT_EQ(content_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(shown_hash(content_hash("")), "e3b0c44298fc");
}

TEST(ConfigAgreement, AFleetBeginsWithWhatAllThatAreThereHave) {
  EXPECT_EQ(proposal({}, std::nullopt), std::nullopt) << "its own record is not there yet";
  EXPECT_EQ(proposal(nodes({joining("c1", "A")}), std::nullopt), (FleetConfig{"A", 1, {}}));
  EXPECT_EQ(proposal(nodes({joining("c1", "A"), joining("c2", "B")}), std::nullopt), std::nullopt);
  EXPECT_EQ(proposal(nodes({joining("c1", "A"), joining("c2", "A", "no such variable")}), std::nullopt),
            std::nullopt);
  EXPECT_EQ(proposal(nodes({joining("c1", "")}), std::nullopt), std::nullopt) << "nothing was read";
}

TEST(ConfigAgreement, AChangeIsTheFleetsWhenAllThatRunHaveReadIt) {
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), ready("c2", "A")}), kFirst), std::nullopt);
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), ready("c2", "B", "fps: expected a number")}), kFirst),
            std::nullopt);
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), ready("c2", "C")}), kFirst), std::nullopt);
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), ready("c2", "B")}), kFirst), (FleetConfig{"B", 2, {"A"}}));
  EXPECT_EQ(proposal(nodes({ready("c1", "A"), ready("c2", "A")}), kFirst), std::nullopt) << "nothing changed";
}

TEST(ConfigAgreement, AnOldOneThatAllHaveAgainIsANewVersion) {
  EXPECT_EQ(
      proposal(nodes({node("c1", NodeState::ready, "B", 2, "A"), node("c2", NodeState::ready, "B", 2, "A")}),
               FleetConfig{"B", 2, {"A", "Z"}}),
      (FleetConfig{"A", 3, {"B", "Z"}}));
}

TEST(ConfigAgreement, WhoJoinsHasNoSay) {
  EXPECT_EQ(proposal(nodes({ready("c1", "A"), joining("c2", "B")}), kFirst), std::nullopt);
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), joining("c2", "Z")}), kFirst), (FleetConfig{"B", 2, {"A"}}))
      << "one with an old file does not hold it up";
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), joining("c2", "B", "a fault of its own")}), kFirst),
            (FleetConfig{"B", 2, {"A"}}));
  EXPECT_EQ(proposal(nodes({ready("c1", "B"), node("c2", NodeState::draining, "A", 1, "A")}), kFirst),
            std::nullopt)
      << "one that hands over still runs";
}

TEST(ConfigAgreement, AFleetThatWasStoppedDoesNotGoBackByItself) {
  const FleetConfig current{"B", 2, {"A"}};
  EXPECT_EQ(proposal(nodes({joining("c1", "A")}), current), std::nullopt);
  EXPECT_EQ(proposal(nodes({joining("c1", "A"), joining("c2", "A")}), current), std::nullopt);
  EXPECT_THAT(
      pending(nodes({joining("c1", "A")}), current),
      ElementsAre("configuration A is not applied: the fleet had it before version 2, and nobody runs that"));
  EXPECT_EQ(proposal(nodes({joining("c1", "C")}), current), (FleetConfig{"C", 3, {"B", "A"}}))
      << "one that it never had is newer";
}

TEST(ConfigAgreement, ANodeRunsByItWhenItIsTheFleetsAndNotBefore) {
  ConfigAgreement c1("c1");
  c1.read("A", "");
  c1.see(nodes({joining("c1", "A")}), std::nullopt);
  EXPECT_EQ(c1.take(), std::nullopt);
  EXPECT_FALSE(c1.is_in_force());
  EXPECT_THAT(c1.waits(), HasSubstr("the fleet has no configuration yet"));
  c1.see(nodes({joining("c1", "A")}), kFirst);
  EXPECT_EQ(c1.take(), kFirst);
  EXPECT_EQ(c1.take(), std::nullopt) << "once";
  EXPECT_TRUE(c1.is_in_force());
  EXPECT_EQ(c1.waits(), "");

  c1.read("B", "");
  EXPECT_EQ(c1.take(), std::nullopt);
  NodeRecord record;
  c1.tell(record);
  EXPECT_EQ(record, node("", NodeState::ready, "A", 1, "B"));
  c1.see(nodes({ready("c1", "B")}), FleetConfig{"B", 2, {"A"}});
  EXPECT_EQ(c1.take()->hash, "B");
  c1.tell(record);
  EXPECT_EQ(record, node("", NodeState::ready, "B", 2, "B"));
}

TEST(ConfigAgreement, WhatANodeHasSaidThatItReadItCanRunByLaterOn) {
  ConfigAgreement c1("c1");
  for (const char* hash : {"A", "B", "C"}) c1.read(hash, "");
  c1.read("D", "a fault");
  // The one that plans had heard of B alone.
  c1.see(nodes({ready("c1", "B")}), FleetConfig{"B", 2, {"A"}});
  EXPECT_EQ(c1.take()->hash, "B");
  EXPECT_TRUE(c1.is_in_force());
  c1.see(nodes({ready("c1", "D")}), FleetConfig{"D", 3, {"B"}});
  EXPECT_EQ(c1.take(), std::nullopt) << "not by what it cannot take";
  EXPECT_FALSE(c1.is_in_force());
  EXPECT_THAT(c1.waits(), AllOf(HasSubstr("the fleet's is D (version 3)"), HasSubstr("a fault")));
}

TEST(ConfigAgreement, WhoIsLeftBehindWaits) {
  ConfigAgreement c2("c2");
  c2.read("A", "");
  c2.see(nodes({ready("c1", "A"), ready("c2", "A")}), kFirst);
  c2.take();
  // Its lease had ended, and the others went on without it.
  c2.see(nodes({node("c1", NodeState::ready, "B", 2, "B"), ready("c2", "A")}), FleetConfig{"B", 2, {"A"}});
  EXPECT_EQ(c2.take(), std::nullopt);
  EXPECT_FALSE(c2.is_in_force());
  EXPECT_FALSE(c2.may_plan());
  EXPECT_THAT(c2.waits(),
              HasSubstr("this node has read A, which the fleet had before: it waits for a newer file"));
  NodeRecord record = ready("c2", "A");
  c2.tell(record);
  EXPECT_EQ(record.state, NodeState::joining);
  EXPECT_EQ(record.config, "A") << "by which it still runs what it has";
  record.state = NodeState::draining;
  c2.tell(record);
  EXPECT_EQ(record.state, NodeState::draining);
  // The others have told that they have read it, and this one has not heard so yet.
  c2.see(nodes({ready("c1", "A"), joining("c2", "A")}), FleetConfig{"B", 2, {"A"}});
  EXPECT_EQ(c2.proposal(), std::nullopt) << "it takes nothing back";

  c2.read("B", "");
  EXPECT_EQ(c2.take()->version, 2U);
  EXPECT_TRUE(c2.is_in_force());
}

TEST(ConfigAgreement, NobodyPlansByWhatIsNotTheFleets) {
  ConfigAgreement c1("c1");
  c1.read("Z", "");
  c1.see(nodes({joining("c1", "Z")}), kFirst);
  EXPECT_TRUE(c1.may_plan()) << "somebody has to see that all agree";
  c1.see(nodes({joining("c1", "Z"), ready("c2", "A")}), kFirst);
  EXPECT_FALSE(c1.may_plan());
}

TEST(ConfigAgreement, ARegistryThatWasSetBackTakesNothingBack) {
  ConfigAgreement c1("c1");
  c1.read("A", "");
  c1.read("B", "");
  const FleetConfig second{"B", 2, {"A"}};
  const NodeRecord runs_b = node("c1", NodeState::ready, "B", 2, "B");
  c1.see(nodes({runs_b}), second);
  c1.take();
  for (const auto& registered : {std::optional(kFirst), std::optional<FleetConfig>()}) {
    c1.see(nodes({runs_b}), registered);
    EXPECT_EQ(c1.take(), std::nullopt);
    EXPECT_TRUE(c1.is_in_force());
    EXPECT_EQ(c1.proposal()->hash, "B");
    EXPECT_EQ(c1.proposal()->version, 2U);
    // What it knew itself counts, too, when its record is gone.
    c1.see({}, registered);
    EXPECT_TRUE(c1.is_in_force());
  }
  // Who joins by what the registry says is told by the others.
  ConfigAgreement c2("c2");
  c2.read("A", "");
  c2.see(nodes({runs_b, joining("c2", "A")}), kFirst);
  EXPECT_EQ(c2.take(), std::nullopt);
}

TEST(Pending, NamesThoseThatHoldAChangeUp) {
  EXPECT_THAT(pending(nodes({ready("c1", "A"), joining("c2", "Z")}), kFirst), IsEmpty());
  EXPECT_THAT(
      pending(nodes({ready("c1", "B"), ready("c2", "A"), ready("gpu", "A"), joining("c3", "Z")}), kFirst),
      ElementsAre("configuration B is not applied: not read by c2, gpu"));
  EXPECT_THAT(
      pending(nodes({ready("c1", "B"), ready("c2", "B", "cameras.a.password: X is not set"),
                     ready("c3", "B", "cameras.a.password: X is not set"), ready("gpu", "A")}),
              kFirst),
      ElementsAre("configuration B is not applied: c2, c3 cannot take it: cameras.a.password: X is not set; "
                  "not read by gpu"));
  EXPECT_THAT(pending(nodes({ready("c1", "B"), ready("c2", "C")}), kFirst),
              ElementsAre("configuration B is not applied: not read by c2",
                          "configuration C is not applied: not read by c1"));
  EXPECT_THAT(pending(nodes({ready("c1", "B"), ready("c2", "B")}), kFirst), IsEmpty()) << "it is about to be";
  std::map<std::string, NodeRecord> many;
  many["z"] = ready("z", "B");
  for (int i = 0; i < 20; ++i) many["n" + std::to_string(10 + i)] = ready("n" + std::to_string(10 + i), "A");
  EXPECT_THAT(
      pending(many, kFirst),
      ElementsAre("configuration B is not applied: not read by n10, n11, n12, n13, n14, n15, n16, n17 and "
                  "12 more"));
}

}  // namespace
}  // namespace vigil::cluster
