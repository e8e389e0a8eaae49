#include "config/checks/short_grace.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"

namespace vigil::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> of(const std::string& more) {
  return short_grace(
      parse("model: m\n"
            "cameras:\n"
            "  gate: {url: x, window: {length: 20s}, rules: [{name: r, prompt: p}]}\n"
            "  roof: {url: x, window: {length: 30s}, rules: [{name: r, prompt: p}]}\n"
            "  yard: {url: x, window: {length: 2m}, enabled: false, rules: [{name: r, prompt: p}]}\n" +
                more,
            "/etc/vigil/site.yaml", [](const std::string&) { return std::nullopt; }));
}

TEST(ShortGrace, IsOneInWhichTheLongestWindowDoesNotFit) {
  const auto told = [](const std::string& grace) {
    return ElementsAre(
        "shutdown_grace: " + grace +
        " is not longer than the window of camera `roof`, 30s: a node that computes it and ends "
        "loses windows; 35s or more are enough");
  };
  EXPECT_THAT(of(""), told("10s"));
  EXPECT_THAT(of("shutdown_grace: 30s\n"), told("30s"));
  EXPECT_THAT(of("shutdown_grace: 30001ms\n"), IsEmpty());
}

TEST(ShortGrace, IsNoneWithoutACamera) {
  EXPECT_THAT(short_grace(Settings()), IsEmpty());
}

}  // namespace
}  // namespace vigil::config
