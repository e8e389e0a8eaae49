#include "cluster/planning/plan.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

TEST(NodePlan, IsReadBackAsItWas) {
  NodePlan plan;
  plan.incarnation = "5f03";
  plan.fence = 1'000'000'000'000;
  plan.cameras["gate"] = {17,       "v",    "s", "g", 1'790'000'000'123, "c2", "fewer frames", "first choice",
                          "second", "third"};
  plan.cameras["yard"] = {18, "", "", "", 1, "", "", "", "", ""};
  EXPECT_EQ(parse_plan(print(plan)), plan);
  for (const char* wrong : {"", "{}", "[]", R"({"fence":1})", R"({"fence":1,"cameras":{"a":{}}})"})
    EXPECT_THROW(parse_plan(wrong), std::runtime_error) << wrong;
}

}  // namespace
}  // namespace vigil::cluster
