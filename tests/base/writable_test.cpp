// Which folders can be written, by who may do everything and by somebody else.
#include "base/writable.h"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/temporary_folder.h"

namespace vigil::base {
namespace {

TEST(Writable, AFolderTellsWhyItIsNot) {
  const TemporaryFolder folder;
  EXPECT_EQ(why_unwritable(folder.path()), "");
  EXPECT_EQ(why_unwritable(folder.path() / "none"), "No such file or directory");
}

TEST(Writable, AFolderOfOthersIsNot) {
  constexpr uid_t kSomebody = 65534;
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  // Root is kept from nothing.
  if (::geteuid() == 0) ::setfsuid(kSomebody);
  const std::string why = why_unwritable(folder.path());
  ::setfsuid(::geteuid());
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(why, "Permission denied");
}

}  // namespace
}  // namespace vigil::base
