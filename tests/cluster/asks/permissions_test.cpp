// Whose cameras are there for a key.
#include "cluster/asks/permissions.h"

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

const Permissions kPermissions = {{"north's key", {.tenants = {"north"}}},
                                  {"both's key", {.tenants = {"north", "south"}, .erase = true}},
                                  {"root's key", {.all_tenants = true, .erase = true}}};

TEST(AskPermissions, AKeyHasTheRightsThatItIsBoundTo) {
  for (const auto& [key, rights] : kPermissions)
    EXPECT_EQ(rights_of(kPermissions, Asker{key}), rights) << key;
}

TEST(AskPermissions, AKeyThatIsNotThereMayNothing) {
  for (const char* key : {"unknown key", "", "north's ke", "north's key "}) {
    const KeyRights rights = rights_of(kPermissions, Asker{key});
    EXPECT_FALSE(rights.all_tenants || rights.erase) << key;
    EXPECT_TRUE(rights.tenants.empty()) << key;
  }
}

TEST(AskPermissions, WhoNeedsNoKeyMayEverything) {
  const KeyRights all{.all_tenants = true, .erase = true};
  EXPECT_EQ(rights_of(kPermissions, Asker{}), all);
  EXPECT_EQ(rights_of({}, Asker{}), all);
}

}  // namespace
}  // namespace vigil::cluster
