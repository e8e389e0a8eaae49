// What the configuration takes for a URL is what is opened, and the other way round: config/ and media/ do
// not know each other.
#include "media/schemes.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/supervisor/sources.h"
#include "config/values/source.h"

namespace vigil::actors {
namespace {

std::set<std::string_view> opened(bool local) {
  std::set<std::string_view> names;
  for (const media::Scheme& scheme : media::schemes()) {
    if (scheme.is_local() == local) names.insert(scheme.name);
  }
  return names;
}

TEST(Schemes, AreTheSameInTheConfigurationAndWhereTheyAreOpened) {
  EXPECT_THAT(opened(false), ::testing::UnorderedElementsAreArray(config::network_schemes()));
  EXPECT_THAT(opened(true), ::testing::UnorderedElementsAreArray(config::local_schemes()));
}

TEST(Schemes, OfAllThatAreOpenedNoneIsAFault) {
  for (const media::Scheme& scheme : media::schemes()) {
    const std::string url = std::string(scheme.name) + "://10.0.0.1:9000/x";
    EXPECT_EQ(config::source_fault(url), std::nullopt) << url;
    const auto way = scheme.is_local() ? Dialer::Way::file
                     : scheme.asked    ? Dialer::Way::asked
                                       : Dialer::Way::blind;
    EXPECT_EQ(way_of(url, true), way) << url;
  }
}

}  // namespace
}  // namespace vigil::actors
