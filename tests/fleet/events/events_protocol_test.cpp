// The protocol between makers and gateways, over thousands of worlds (events_world.h), and what the same
// worlds find when the protocol is spoilt.
#include <cstdlib>

#include <gmock/gmock.h>

#include "tests/fleet/events/events_world.h"

namespace vigil::fleet::testing {
namespace {

/// VIGIL_SEED=N runs that one alone, VIGIL_SEEDS=N so many.
std::uint64_t number_of(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

World::Options world(std::uint64_t seed, Mistake mistake = Mistake::none) {
  return {.seed = seed,
          .mistake = mistake,
          .gateways = 1 + static_cast<int>(seed % 4),
          .makers = 2 + static_cast<int>(seed / 4 % 2),
          .series = 1 + static_cast<int>(seed / 8 % 3),
          .steps = 150};
}

TEST(EventsProtocol, WhatSubscribersSawIsAtEveryGatewayThatServes) {
  World::Counts all;
  const std::uint64_t one = number_of("VIGIL_SEED", 0);
  const std::uint64_t first = one > 0 ? one : 1;
  const std::uint64_t last = one > 0 ? one : number_of("VIGIL_SEEDS", 1500);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    World run(world(seed));
    const auto failure = run.run();
    ASSERT_FALSE(failure) << "VIGIL_SEED=" << seed << ": " << *failure;
    all.events += run.counts().events;
    all.visible += run.counts().visible;
    all.crashes += run.counts().crashes;
    all.moves += run.counts().moves;
    all.joined += run.counts().joined;
    all.given_up += run.counts().given_up;
    all.unreadable += run.counts().unreadable;
    all.unreadable_at_last += run.counts().unreadable_at_last;
  }
  RecordProperty("events", std::to_string(all.events));
  std::cout << all.events << " events, " << all.visible << " published, " << all.crashes << " crashes, "
            << all.moves << " moves, " << all.joined << " times a gateway came, " << all.unreadable
            << " times it had no outbox, " << all.unreadable_at_last << " of them for good, " << all.given_up
            << " given up\n";
  if (one > 0) return;
  EXPECT_GT(all.visible, all.events / 2);
  EXPECT_GT(all.crashes, last);
  EXPECT_GT(all.moves, last);
  EXPECT_GT(all.joined, 2 * last);
  EXPECT_GT(all.unreadable, last);
  EXPECT_GT(all.unreadable_at_last, last / 20);
  EXPECT_LT(all.given_up, all.events / 500);
}

class Spoilt : public ::testing::TestWithParam<std::pair<const char*, Mistake>> {};

/// What the worlds find of each mistake: otherwise they would not find it if it was made in earnest. That a
/// maker's sessions are told apart, and that gateways that do not serve admit others, too,
/// gateway_joining_test has: it takes more at once than happens here.
TEST_P(Spoilt, IsFound) {
  const std::uint64_t most = number_of("VIGIL_SEEDS", 3000);
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    const auto failure = World(world(seed, GetParam().second)).run();
    if (!failure) continue;
    std::cout << "seed " << seed << ": " << *failure << '\n';
    return;
  }
  FAIL() << "not found in " << most << " worlds";
}

INSTANTIATE_TEST_SUITE_P(All, Spoilt,
                         ::testing::Values(std::pair{"CommitsEarly", Mistake::commits_early},
                                           std::pair{"NoFences", Mistake::no_fences},
                                           std::pair{"BooksWithoutStaged", Mistake::books_without_staged},
                                           std::pair{"PeersNotNamed", Mistake::peers_not_named},
                                           std::pair{"StagedNotCopied", Mistake::staged_not_copied},
                                           std::pair{"ServesTooSoon", Mistake::serves_too_soon},
                                           std::pair{"TokensLast", Mistake::tokens_last},
                                           std::pair{"RecordsAreAlike", Mistake::records_are_alike},
                                           std::pair{"FirstHasTheMost", Mistake::first_has_the_most}),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace vigil::fleet::testing
