#include "actors/messages/batch_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

TEST(BatchLimit, HalvesAndGrowsBackSlowly) {
  BatchLimit limit(8);
  limit.fitted(8);
  EXPECT_EQ(limit.now(), 8U);
  limit.too_many(8);
  EXPECT_EQ(limit.now(), 4U);
  limit.too_many(3);
  EXPECT_EQ(limit.now(), 1U);
  limit.too_many(1);
  EXPECT_EQ(limit.now(), 1U) << "one is always tried";
  for (int i = 0; i < 15; ++i) limit.fitted(1);
  EXPECT_EQ(limit.now(), 1U);
  limit.fitted(1);
  EXPECT_EQ(limit.now(), 2U);
  for (int i = 0; i < 100; ++i) limit.fitted(1);
  EXPECT_EQ(limit.now(), 2U) << "passes that take less than is allowed tell nothing";
  for (int i = 0; i < 16 * 20; ++i) limit.fitted(limit.now());
  EXPECT_EQ(limit.now(), 8U);
}

}  // namespace
}  // namespace vigil::actors
