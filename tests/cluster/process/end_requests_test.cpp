#include "cluster/process/end_requests.h"

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using Meaning = EndRequests::Meaning;

class SetClock final : public base::Clock {
 public:
  TimePoint now() const override { return time; }
  WallTime wall() const override { return {}; }
  TimePoint time{1h};
};

TEST(EndRequests, ASecondSignalAtOnceIsTheSame) {
  SetClock clock;
  EndRequests requests(clock);
  EXPECT_EQ(requests.take(), Meaning::finish);
  EXPECT_EQ(requests.take(), Meaning::nothing);
  clock.time += 2ms;
  EXPECT_EQ(requests.take(), Meaning::nothing);
  clock.time += 997ms;
  EXPECT_EQ(requests.take(), Meaning::nothing) << "a second has not passed since the first one";
  clock.time += 1ms;
  EXPECT_EQ(requests.take(), Meaning::quit);
}

TEST(EndRequests, ASecondSignalLaterEndsAtOnce) {
  SetClock clock;
  EndRequests requests(clock);
  EXPECT_EQ(requests.take(), Meaning::finish);
  clock.time += 10min;
  EXPECT_EQ(requests.take(), Meaning::quit);
  EXPECT_EQ(requests.take(), Meaning::quit);
}

}  // namespace
}  // namespace vigil::cluster
