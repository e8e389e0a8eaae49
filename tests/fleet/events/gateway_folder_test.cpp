// A gateway's outbox, and what is set aside.
#include "fleet/events/gateway_folder.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/temporary_folder.h"

namespace vigil::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class StandingClock final : public base::Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall() const override { return WallTime(std::chrono::seconds(1785578400)); }
};

class GatewayFolderTest : public ::testing::Test {
 protected:
  std::uint64_t last_in(actors::Outbox& outbox) { return outbox.last_sequence("alert/t/c/r/"); }
  void append(actors::Outbox& outbox, std::uint64_t sequence) {
    outbox.append(actors::OutboxEvent{0, "alert/t/c/r/", sequence, clock_.wall(), "body"});
  }

  TemporaryFolder temporary_;
  StandingClock clock_;
  config::RetentionClock ages_{clock_};
  std::filesystem::path folder_ = temporary_.path() / "outbox";
  std::filesystem::path aside_ = temporary_.path() / "outbox.replaced";
  GatewayFolder gateway_{folder_, ages_};
};

TEST_F(GatewayFolderTest, KeepsWhatIsThere) {
  append(*gateway_.open(false), 1);
  EXPECT_EQ(last_in(*gateway_.open(false)), 1U);
  EXPECT_FALSE(std::filesystem::exists(aside_));
}

TEST_F(GatewayFolderTest, BeginsAnewAndSetsTheLastOneAside) {
  {
    const auto outbox = gateway_.open(false);
    append(*outbox, 1);
    append(*outbox, 2);
  }
  append(*gateway_.open(true), 1);
  EXPECT_EQ(last_in(*actors::open_rocksdb_outbox(aside_, ages_)), 2U);
  EXPECT_EQ(last_in(*gateway_.open(true)), 0U);
  EXPECT_EQ(last_in(*actors::open_rocksdb_outbox(aside_, ages_)), 1U) << "in place of the one before";
}

TEST_F(GatewayFolderTest, WhatIsSetAsideStaysIfThereIsNothingToSetAside) {
  append(*gateway_.open(false), 1);
  std::filesystem::rename(folder_, aside_);
  EXPECT_EQ(last_in(*gateway_.open(true)), 0U) << "as after a disk that let it do only half of it";
  EXPECT_EQ(last_in(*actors::open_rocksdb_outbox(aside_, ages_)), 1U);
}

TEST_F(GatewayFolderTest, WhatCannotBeSetAsideStaysAndIsTold) {
  // With ".replaced" it would be too long for a file system.
  GatewayFolder gateway(temporary_.path() / std::string(250, 'o'), ages_);
  append(*gateway.open(false), 1);
  EXPECT_THAT([&] { gateway.open(true); },
              ThrowsMessage<actors::OutboxError>(HasSubstr("oo: cannot be set aside: File name too long")));
  EXPECT_EQ(last_in(*gateway.open(false)), 1U);
}

TEST_F(GatewayFolderTest, AFolderThatCannotBeIsTold) {
  std::ofstream(temporary_.path() / "file") << "no folder";
  GatewayFolder gateway(temporary_.path() / "file" / "outbox", ages_);
  for (const bool anew : {false, true})
    EXPECT_THAT([&] { gateway.open(anew); },
                ThrowsMessage<actors::OutboxError>(HasSubstr("file: cannot make the folder")));
}

}  // namespace
}  // namespace vigil::fleet
