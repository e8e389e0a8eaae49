#include "base/private_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace vigil::base {
namespace {

struct stat with_mode(mode_t mode, uid_t owner) {
  struct stat status {};
  status.st_mode = S_IFREG | mode;
  status.st_uid = owner;
  return status;
}

TEST(PrivateFile, IsItsOwnersAlone) {
  for (const mode_t mode : {0600U, 0400U, 0700U, 0000U})
    EXPECT_FALSE(fault_of_privacy(with_mode(mode, 1000)).has_value()) << std::oct << mode;
  for (const mode_t mode : {0601U, 0602U, 0604U, 0610U, 0620U, 0640U})
    EXPECT_TRUE(fault_of_privacy(with_mode(mode, 1000)).has_value()) << std::oct << mode;
  EXPECT_EQ(fault_of_privacy(with_mode(0644, 1000)),
            "has mode 0644; a secret key must be its owner's alone (chmod 600)");
  EXPECT_EQ(fault_of_privacy(with_mode(04604, 1000)),
            "has mode 4604; a secret key must be its owner's alone (chmod 600)");
}

// tests/services/key_mode_test.py sees both sides.
TEST(PrivateFile, OfRootIsLentToAGroupButNotToRoot) {
  EXPECT_EQ(fault_of_privacy(with_mode(0440, 0)).has_value(), ::geteuid() == 0);
  for (const mode_t mode : {0444U, 0460U, 0450U})
    EXPECT_TRUE(fault_of_privacy(with_mode(mode, 0)).has_value()) << std::oct << mode;
}

}  // namespace
}  // namespace vigil::base
