// How long a server may take.
#include "cluster/registry/etcd_patience.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

TEST(EtcdPatience, EachSilenceGivesTheNextAttemptMoreTimeUpToABound) {
  EtcdPatience patience(5s, 1);
  std::vector<base::Duration> attempts;
  for (int i = 0; i < 6; ++i) {
    attempts.push_back(patience.attempt());
    patience.silent();
  }
  EXPECT_THAT(attempts, ElementsAre(2500ms, 3750ms, 5625ms, 8437ms, 10s, 10s));
  EXPECT_EQ(patience.call(), 5s) << "never more than the limit of a call";
  EXPECT_EQ(EtcdPatience(5s, 3).attempt(), 1666ms) << "two may be silent within the time of a call";
  EXPECT_EQ(EtcdPatience(5s, 3).call(), 1666ms);
}

TEST(EtcdPatience, OnlyWhatLastedIsSilence) {
  EtcdPatience patience(4s, 1);
  EXPECT_FALSE(patience.is_silence(10ms)) << "refused, say";
  EXPECT_TRUE(patience.is_silence(1990ms));
  patience.silent();
  EXPECT_FALSE(patience.is_silence(1990ms));
}

TEST(EtcdPatience, AnAnswerSaysHowMuchTheNextOnesNeed) {
  EtcdPatience patience(5s, 1);
  for (int i = 0; i < 9; ++i) patience.silent();
  EXPECT_EQ(patience.answered(2600ms), "its first answer took 2600ms, and should take 2500ms at most");
  EXPECT_EQ(patience.attempt(), 5200ms);
  EXPECT_NE(patience.answered(9s), "");
  EXPECT_EQ(patience.attempt(), 10s);
  EXPECT_EQ(patience.answered(20ms), "");
  EXPECT_EQ(patience.attempt(), 2500ms);
}

TEST(EtcdPatience, QuickCallsTakeBackWhatSlowOnesWereGivenAndGiveNothing) {
  EtcdPatience patience(5s, 3);
  patience.answered(4s);
  patience.call_answered(1s);
  EXPECT_EQ(patience.attempt(), 4s) << "a connection takes several times what a call takes";
  patience.call_answered(1500ms);
  EXPECT_EQ(patience.attempt(), 4s);
  patience.call_answered(0ms);
  EXPECT_EQ(patience.attempt(), 1666ms);
}

TEST(EtcdPatience, ComplainsFromTimeToTimeWhileNobodyAnswers) {
  EtcdPatience patience(5s, 1);
  const EtcdPatience::TimePoint begin;
  EXPECT_FALSE(patience.complaint(begin)) << "none was silent";
  patience.silent();
  EXPECT_EQ(patience.complaint(begin),
            "registry: no server of etcd answers, the last within 2500ms; the next has 3750ms");
  patience.silent();
  EXPECT_FALSE(patience.complaint(begin + 59s));
  EXPECT_EQ(patience.complaint(begin + 60s),
            "registry: no server of etcd answers, the last within 3750ms; the next has 5625ms");
  patience.answered(20ms);
  EXPECT_FALSE(patience.complaint(begin + 3h));
  patience.silent();
  EXPECT_TRUE(patience.complaint(begin + 3h)) << "that is another time";
}

}  // namespace
}  // namespace vigil::cluster
