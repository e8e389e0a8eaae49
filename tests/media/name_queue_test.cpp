#include "media/name_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::media {
namespace {

using ::testing::ElementsAre;

std::string host_of(const std::optional<NameQueue::Name>& name) {
  return name ? name->host : "none";
}

TEST(NameQueue, AZoneThatDoesNotAnswerHoldsUpNoOther) {
  NameQueue queue(2);
  for (int i = 0; i < 1000; ++i)
    queue.add(static_cast<std::uint64_t>(i), "c" + std::to_string(i) + ".dead", "554");
  const auto first = queue.take();
  EXPECT_EQ(host_of(first), "c0.dead");
  EXPECT_EQ(host_of(queue.take()), "c1.dead");
  EXPECT_FALSE(queue.ready()) << "two at once";
  EXPECT_EQ(host_of(queue.take()), "none");
  queue.add(2000, "gate.site", "554");
  EXPECT_EQ(host_of(queue.take()), "gate.site");
  queue.done(*first);
  EXPECT_EQ(host_of(queue.take()), "c2.dead");
}

TEST(NameQueue, ZonesTakeTurns) {
  NameQueue queue(8);
  for (const char* host : {"a1.a", "a2.a", "a3.a", "b1.b", "b2.b", "local"}) queue.add(1, host, "1");
  std::vector<std::string> order;
  while (const auto name = queue.take()) {
    order.push_back(name->host);
    queue.done(*name);
  }
  EXPECT_THAT(order, ElementsAre("local", "a1.a", "b1.b", "a2.a", "b2.b", "a3.a"));
}

TEST(NameQueue, WhoAsksForTheSameWaitsForOneAnswer) {
  NameQueue queue(8);
  queue.add(1, "nvr.site", "554");
  queue.add(2, "nvr.site", "554");
  queue.add(3, "nvr.site", "8554");
  queue.add(4, "nvr.site", "554");
  queue.drop(2);
  const auto name = queue.take();
  ASSERT_TRUE(name.has_value());
  EXPECT_THAT(name->tickets, ElementsAre(1, 4));
  queue.add(5, "nvr.site", "554");
  queue.drop(3);
  EXPECT_THAT(queue.take()->tickets, ElementsAre(5)) << "the other one may have been answered by now";
  EXPECT_FALSE(queue.ready());
}

}  // namespace
}  // namespace vigil::media
