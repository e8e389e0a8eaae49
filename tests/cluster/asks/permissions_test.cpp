// Whose cameras a key may ask about, and what it learns of those of others: nothing.
#include "cluster/asks/permissions.h"

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

const Asker kLocal{};
const Asker kNorth{"north's key"};
const Asker kBoth{"both's key"};
const Asker kRoot{"root's key"};
const Asker kUnknown{"unknown key"};

Permissions permissions() {
  return {{"north's key", {.tenants = {"north"}}},
          {"both's key", {.tenants = {"north", "south"}, .erase = true}},
          {"root's key", {.all_tenants = true, .erase = true}}};
}

TEST(AskPermissions, AKeyIsBoundToItsTenants) {
  const auto rights = [](const Asker& who, const std::string& tenant, bool erase) {
    return may(permissions(), who, tenant, erase);
  };
  for (const bool erase : {false, true}) {
    EXPECT_EQ(rights(kLocal, "anybody", erase), Permission::granted);
    EXPECT_EQ(rights(kRoot, "anybody", erase), Permission::granted);
    EXPECT_EQ(rights(kBoth, "south", erase), Permission::granted);
    EXPECT_EQ(rights(kBoth, "east", erase), Permission::hidden);
    EXPECT_EQ(rights(kNorth, "south", erase), Permission::hidden);
    EXPECT_EQ(rights(kNorth, "", erase), Permission::hidden);
    EXPECT_EQ(rights(kUnknown, "north", erase), Permission::hidden);
    EXPECT_EQ(rights(Asker{""}, "north", erase), Permission::hidden);
  }
  EXPECT_EQ(rights(kNorth, "north", false), Permission::granted);
  EXPECT_EQ(rights(kNorth, "north", true), Permission::forbidden);
}

TEST(AskPermissions, AnothersCameraIsRefusedAsOneThatIsNotThere) {
  const std::optional<std::string> south = "south";
  for (const AskRequest& request :
       {AskRequest(AskQuestion{.camera = "pier", .question = "?"}), AskRequest(MemoryList{"pier"}),
        AskRequest(MemoryVerify{"pier"}), AskRequest(MemoryErase{"pier"})}) {
    const auto nowhere = refusal_of(permissions(), kNorth, request, std::nullopt);
    ASSERT_TRUE(nowhere.has_value());
    EXPECT_EQ(*nowhere, (AskRefusal{AskRefusalType::bad_request, "there is no camera pier"}));
    EXPECT_EQ(to_parts(*refusal_of(permissions(), kNorth, request, south)), to_parts(*nowhere));
    EXPECT_EQ(refusal_of(permissions(), kUnknown, request, south), nowhere);
    EXPECT_EQ(refusal_of(permissions(), kLocal, request, std::nullopt), nowhere);
    EXPECT_EQ(refusal_of(permissions(), kLocal, request, south), std::nullopt);
    EXPECT_EQ(refusal_of(permissions(), kBoth, request, south), std::nullopt);
  }
}

TEST(AskPermissions, WhoMayNotEraseIsToldSoOfHisOwnCamerasAlone) {
  EXPECT_EQ(refusal_of(permissions(), kNorth, MemoryErase{"gate"}, "north"),
            (AskRefusal{AskRefusalType::forbidden, "this key may not erase"}));
  EXPECT_EQ(refusal_of(permissions(), kNorth, MemoryVerify{"gate"}, "north"), std::nullopt);
  EXPECT_EQ(refusal_of(permissions(), kNorth, MemoryErase{"pier"}, "south")->type,
            AskRefusalType::bad_request);
}

TEST(AskPermissions, ACameraOfAnotherTenantThanAskedForIsNotThere) {
  AskQuestion question{.camera = "gate", .tenant = "south", .question = "?"};
  EXPECT_TRUE(refusal_of(permissions(), kRoot, question, "north").has_value());
  EXPECT_TRUE(refusal_of(permissions(), kLocal, question, "north").has_value());
  question.tenant = "north";
  EXPECT_EQ(refusal_of(permissions(), kRoot, question, "north"), std::nullopt);
}

TEST(AskPermissions, WhatNamesNoCameraIsForTheAnswererToSift) {
  EXPECT_EQ(refusal_of(permissions(), kUnknown, MemoryList{}, std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace vigil::cluster
