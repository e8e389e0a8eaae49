// A gateway whose outbox was damaged, beside one that has all, and alone.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "config/running/retention_clock.h"
#include "fleet/events/gateway_joining.h"
#include "tests/fleet/events/bare_gateways.h"
#include "tests/temporary_folder.h"

namespace vigil::fleet::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

/// The first gateway's outbox is on a disk.
class DamagedGatewayTest : public GatewaysTest {
 protected:
  DamagedGatewayTest() { one_.outbox = on_disk(); }
  ~DamagedGatewayTest() override { close(); }

  std::unique_ptr<actors::Outbox> on_disk() { return actors::open_rocksdb_outbox(folder_.path(), ages_); }

  /// It is gone, and comes back with something in the middle of its log that cannot be read.
  void damage_and_come() {
    go(one_);
    close();
    fs::path log;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      if (entry.path().extension() == ".log" && fs::file_size(entry) > 0) log = entry.path();
    ASSERT_FALSE(log.empty());
    std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(log) / 2));
    file.write("damage", 6);
    file.close();
    one_.outbox = on_disk();
    ASSERT_THAT(one_.outbox->take_notices(), SizeIs(1));
    come(one_);
  }
  void close() {
    one_.joining.reset();
    one_.desk.reset();
    one_.outbox.reset();
  }
  void tell_both(int events) {
    for (int i = 0; i < events; ++i) tell({&one_, &other_}, "E", i, "update");
  }

  TemporaryFolder folder_;
  config::RetentionClock ages_{clock_};
};

TEST_F(DamagedGatewayTest, BeginsAnewWithAllThatOneHasThatServes) {
  let_both_serve();
  tell_both(400);
  const std::vector<std::string> all = other_.events();
  ASSERT_THAT(all, SizeIs(800));
  damage_and_come();
  EXPECT_EQ(one_.outbox->last_sequence(kRule), 400U) << "the ends are as they were: no comparison shows it";
  EXPECT_LT(one_.events().size(), all.size());
  EXPECT_TRUE(one_.desk->has_lost());
  settle();
  EXPECT_EQ(emptied_, 1);
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving) << one_.joining->trouble();
  EXPECT_EQ(one_.events(), all);
  EXPECT_EQ(one_.notes(), other_.notes());
  EXPECT_FALSE(one_.desk->has_lost());
}

TEST_F(DamagedGatewayTest, SaysThatItBeginsAnewSinceSomeOfItsOwnIsLost) {
  let_both_serve();
  tell_both(400);
  damage_and_come();
  for (int i = 0; i < 20 && !one_.joining->wants_empty_outbox(); ++i) ask(one_, {&other_});
  ASSERT_TRUE(one_.joining->wants_empty_outbox());
  EXPECT_EQ(one_.joining->trouble(),
            "some of what it had could not be read: it begins anew, with all that g2 has");
}

TEST_F(DamagedGatewayTest, ThatIsTheFirstToComeWaitsForOneThatMayHaveAll) {
  let_both_serve();
  tell_both(400);
  const std::vector<std::string> all = other_.events();
  // The power was gone for both.
  go(other_);
  damage_and_come();
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(one_.joining->trouble(), "waits for another gateway, which may have what is missing here");
  come(other_);
  expect_both_to_have(all);
}

TEST_F(DamagedGatewayTest, ServesWithoutWhatIsLostIfNoOtherOneComes) {
  come(one_);
  settle();
  claim(one_);
  for (int i = 0; i < 400; ++i) tell({&one_}, "E", i, "update");
  damage_and_come();
  settle();
  ASSERT_EQ(one_.desk->mode(), GatewayMode::away);
  clock_.ms += 10'000;
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving) << one_.joining->trouble();
  EXPECT_TRUE(one_.desk->has_lost()) << "and its actor says so";
  // Once is enough.
  restart({&one_});
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving) << one_.joining->trouble();
  // Whoever comes beside it gets what there is.
  come(other_);
  settle();
  EXPECT_EQ(other_.events(), one_.events());
  EXPECT_THAT(other_.events(), ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace vigil::fleet::testing
