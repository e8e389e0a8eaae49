#include "config/checks/left_behind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace vigil::config {
namespace {

using ::testing::ElementsAre;

TEST(LeftBehind, IsWhatLiesWhereItWasBefore) {
  const TemporaryFolder scratch;
  const std::filesystem::path& root = scratch.path();
  for (const char* folder : {"work/vigil-outbox", "work/vigil-evidence", "etc"})
    std::filesystem::create_directories(root / folder);
  Settings settings;
  settings.alerts.outbox = root / "etc" / "vigil-outbox";
  settings.evidence.dir = root / "etc" / "vigil-evidence";
  EXPECT_THAT(left_behind(settings, root / "work"),
              ElementsAre("alerts.outbox is " + (root / "etc/vigil-outbox").string() +
                          " now, beside the configuration; " + (root / "work/vigil-outbox").string() +
                          ", where it was before, is not read: move it there, or name it in the file"));
  settings.evidence.enabled = true;
  EXPECT_EQ(left_behind(settings, root / "work").size(), 2U);
  EXPECT_THAT(left_behind(settings, root / "etc"), testing::IsEmpty()) << "nothing is there";
  std::filesystem::create_directories(settings.alerts.outbox);
  std::filesystem::create_directories(settings.evidence.dir);
  EXPECT_THAT(left_behind(settings, root / "work"), testing::IsEmpty()) << "there is one already";
  settings.alerts.outbox = root / "elsewhere";
  EXPECT_THAT(left_behind(settings, root / "work"), testing::IsEmpty()) << "the file names it";
}

}  // namespace
}  // namespace vigil::config
