#include "actors/messages/failure_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

TEST(FailureLog, TellsACamerasFailureOnceUntilItSucceedsOrTheReasonIsAnother) {
  FailureLog log;
  EXPECT_TRUE(log.failed("a", "1 windows need 1408 tokens, 1024 are free"));
  EXPECT_FALSE(log.failed("a", "1 windows need 1536 tokens, 896 are free")) << "only its numbers differ";
  EXPECT_TRUE(log.failed("b", "1 windows need 1408 tokens, 1024 are free")) << "another camera";
  EXPECT_TRUE(log.failed("a", "the frames of a window differ in size"));
  EXPECT_FALSE(log.failed("a", "the frames of a window differ in size"));
  log.succeeded("a");
  EXPECT_TRUE(log.failed("a", "the frames of a window differ in size"));
  EXPECT_FALSE(log.failed("b", "1 windows need 1408 tokens, 1024 are free")) << "only a has succeeded";
  log.succeeded("b");
  EXPECT_TRUE(log.failed("b", "")) << "one without a reason is told, too";
  EXPECT_FALSE(log.failed("b", ""));
}

}  // namespace
}  // namespace vigil::actors
