#include "actors/camera/backoff.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, IsBoundedAndJittered) {
  Backoff one({1s, 30s}, 1);
  Backoff other({1s, 30s}, 2);
  bool differ = false;
  base::Duration ceiling = 1s;
  for (int i = 0; i < 100; ++i) {
    const base::Duration wait = one.next();
    EXPECT_GE(wait, ceiling / 2);
    EXPECT_LE(wait, ceiling);
    differ = differ || wait != other.next();
    ceiling = std::min<base::Duration>(2 * ceiling, 30s);
  }
  EXPECT_TRUE(differ);
}

}  // namespace
}  // namespace vigil::actors
