// What there is to know of each role of a node.
#include "cluster/membership/node_roles.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using enum NodeRole;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using Roles = std::set<NodeRole>;

/// The pairs of single roles of which this holds, as "camera>stream".
template <class Holds>
std::vector<std::string> pairs(Holds&& holds) {
  std::vector<std::string> found;
  for (const RoleTraits& a : all_roles())
    for (const RoleTraits& b : all_roles())
      if (holds(Roles{a.role}, Roles{b.role}))
        found.push_back(std::string(a.name) + '>' + std::string(b.name));
  return found;
}

TEST(NodeRoles, EachHasANameByWhichItIsRead) {
  for (const RoleTraits& each : all_roles()) {
    EXPECT_EQ(name_of(each.role), each.name);
    EXPECT_EQ(parse_role(each.name), each.role);
  }
  for (const char* name : {"", "chef", "Camera", "camera ", "camera,vision"})
    EXPECT_EQ(parse_role(name), std::nullopt) << name;
}

TEST(NodeRoles, WhoDoesCamerasWorkTogether) {
  EXPECT_THAT(pairs(work_together),
              ElementsAre("camera>vision", "camera>stream", "vision>camera", "vision>stream", "stream>camera",
                          "stream>vision", "stream>generate", "generate>stream"));
  EXPECT_TRUE(work_together({camera, gateway}, {generate, stream}));
  EXPECT_FALSE(work_together({camera, gateway}, {gateway, generate}));
  EXPECT_FALSE(work_together({}, {camera, vision, stream, generate, cache, gateway}));
}

TEST(NodeRoles, EverybodyDealsWithGatewaysAndOtherwiseWithThoseThatShareItsWork) {
  for (const RoleTraits& a : all_roles())
    for (const RoleTraits& b : all_roles())
      EXPECT_EQ(deal({a.role}, {b.role}),
                a.role == gateway || b.role == gateway || work_together({a.role}, {b.role}))
          << a.name << ' ' << b.name;
  EXPECT_TRUE(deal({camera, gateway}, {cache}));
  EXPECT_FALSE(deal({}, {camera}));
}

TEST(NodeRoles, WhoMayGreetWhom) {
  EXPECT_THAT(
      pairs([](const Roles& a, const Roles& b) {
        return a != Roles{gateway} && b != Roles{gateway} && may_greet(a, b);
      }),
      ElementsAre("camera>vision", "camera>stream", "camera>generate", "camera>cache", "vision>stream"));
  for (const RoleTraits& each : all_roles()) {
    EXPECT_TRUE(may_greet({gateway}, {each.role}));
    EXPECT_TRUE(may_greet({each.role}, {gateway}));
  }
  EXPECT_FALSE(may_greet({vision}, {vision, stream})) << "it encodes itself";
  EXPECT_TRUE(may_greet({camera, vision}, {vision, stream}));
  EXPECT_TRUE(may_greet({vision}, {stream, camera}));
  EXPECT_FALSE(may_greet({}, {stream}));
  EXPECT_FALSE(may_greet({camera}, {}));
}

TEST(NodeRoles, OnlyAGatewayAloneHasNoWorkOfItsOwn) {
  EXPECT_TRUE(one_deals_with_all({camera, gateway}));
  EXPECT_FALSE(each_deals_with_all({camera, gateway}));
  EXPECT_TRUE(each_deals_with_all({gateway}));
  EXPECT_FALSE(each_deals_with_all({}));
  EXPECT_FALSE(one_deals_with_all({}));
}

TEST(NodeRoles, WhatOfTheModelTheyNeed) {
  EXPECT_TRUE(need({camera, gateway}, ModelNeed::shape));
  EXPECT_FALSE(need({camera, gateway}, ModelNeed::tower));
  EXPECT_TRUE(need({vision}, ModelNeed::tower));
  EXPECT_FALSE(need({vision}, ModelNeed::language));
  EXPECT_TRUE(need({stream}, ModelNeed::language));
  EXPECT_TRUE(need({generate}, ModelNeed::language));
  for (const ModelNeed what : {ModelNeed::shape, ModelNeed::tower, ModelNeed::language})
    EXPECT_FALSE(need({gateway, cache}, what));
}

TEST(NodeRoles, AreReadAsAListOfNames) {
  EXPECT_THAT(parse_roles({"gateway", "camera", "gateway"}), ElementsAre(camera, gateway));
  EXPECT_THAT(parse_roles({"gateway,camera,gateway", "stream"}), ElementsAre(camera, stream, gateway));
  EXPECT_THAT(parse_roles({}), IsEmpty());
  EXPECT_EQ(text_of(Roles{gateway, camera, stream}), "camera,stream,gateway");
  EXPECT_EQ(text_of(Roles{}), "");
  EXPECT_THAT(
      [] {
        parse_roles({"camera", "stove", "chef"});
      },
      ThrowsMessage<std::invalid_argument>(
          "unknown role 'stove' (known: camera, vision, stream, generate, gateway)"));
  EXPECT_THAT([] { parse_roles({""}); },
              ThrowsMessage<std::invalid_argument>(
                  "unknown role '' (known: camera, vision, stream, generate, gateway)"));
}

TEST(NodeRoles, ACommaIsBetweenTwo) {
  for (const std::string list : {"camera,,vision", "camera,", ",camera", ",", ",,"})
    EXPECT_THAT([&] { parse_roles({list}); },
                ThrowsMessage<std::invalid_argument>("a comma with no role beside it in '" + list + '\''));
  EXPECT_THAT([] { parse_roles({"camera,stove"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("unknown role 'stove'")));
}

TEST(NodeRoles, OneThatIsToComeIsRefusedAndNotNamed) {
  for (const RoleTraits& each : all_roles()) {
    const std::string name(each.name);
    EXPECT_EQ(names_of_roles().find(name) != std::string::npos, each.is_given) << name;
    if (each.is_given) {
      EXPECT_THAT(parse_roles({name}), ElementsAre(each.role));
    } else {
      EXPECT_THAT([&] { parse_roles({name}); },
                  ThrowsMessage<std::invalid_argument>("'" + name + "' has nothing to do yet"));
    }
  }
}

}  // namespace
}  // namespace vigil::cluster
