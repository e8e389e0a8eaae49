// A start of several actors that comes to nothing halfway.
#include "fleet/node/started_actors.h"

#include <future>
#include <mutex>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/messages/types.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

using Part = caf::typed_actor<caf::reacts_to<actors::tick_atom>, caf::reacts_to<actors::stop_atom>>;

struct Config : caf::actor_system_config {
  Config() { fleet::know_messages(*this); }
};

/// Who ended, in that order.
struct Ends {
  void add(const std::string& name) {
    const std::lock_guard lock(mutex);
    names.push_back(name);
  }
  std::mutex mutex;
  std::vector<std::string> names;
};

/// Has something left to do when it is told to end.
Part::behavior_type part(Part::pointer self, const std::string& name, Ends* ends) {
  return {[self, name, ends](actors::tick_atom) {
            ends->add(name);
            self->quit();
          },
          [self](actors::stop_atom) { self->send(self, actors::tick_atom_v); }};
}

Part::behavior_type deaf(Part::pointer /*self*/) {
  return {[](actors::tick_atom) {}, [](actors::stop_atom) {}};
}

class StartedActorsTest : public ::testing::Test {
 protected:
  Part start(const std::string& name) {
    return started_.start(name, [&] { return system_.spawn(part, name, &ends_); });
  }
  /// Ready once it has ended, however that came.
  std::future<void> end_of(const Part& actor) {
    const auto ended = std::make_shared<std::promise<void>>();
    caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor(
        [ended](const caf::error&) { ended->set_value(); });
    return ended->get_future();
  }

  Ends ends_;
  Config config_;
  caf::actor_system system_{config_};
  StartedActors started_{system_};
};

TEST_F(StartedActorsTest, TheLastEndsFirstAndEachOneAfterThoseBehindIt) {
  for (const char* name : {"dock", "maker", "node"}) start(name);
  EXPECT_TRUE(started_.end(10s));
  EXPECT_THAT(ends_.names, ElementsAre("node", "maker", "dock"));
  EXPECT_TRUE(started_.end(0s)) << "nothing is left to end";
}

TEST_F(StartedActorsTest, WhatCannotBeStartedIsNamedAndWhatWasEnds) {
  start("dock");
  std::string told;
  try {
    started_.start("fetcher", []() -> Part {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    });
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  EXPECT_EQ(told, "the fetcher cannot be started: Resource temporarily unavailable");
  EXPECT_TRUE(started_.end(10s));
  EXPECT_THAT(ends_.names, ElementsAre("dock"));
}

TEST_F(StartedActorsTest, OtherFaultsAreToldAsTheyAre) {
  EXPECT_THROW(started_.start("dock", []() -> Part { throw std::out_of_range("no such device"); }),
               std::out_of_range);
}

TEST_F(StartedActorsTest, WhoDoesNotEndIsKilledAndKeepsNoOtherOne) {
  start("dock");
  const Part never = started_.start("maker", [&] { return system_.spawn(deaf); });
  start("node");
  auto end = end_of(never);
  EXPECT_FALSE(started_.end(200ms));
  EXPECT_THAT(ends_.names, ElementsAre("node", "dock"));
  EXPECT_EQ(end.wait_for(10s), std::future_status::ready) << "it was killed";
}

TEST_F(StartedActorsTest, WhoIsGoneIsNotWaitedFor) {
  start("dock");
  const Part gone = start("node");
  auto end = end_of(gone);
  caf::anon_send_exit(gone, caf::exit_reason::kill);
  ASSERT_EQ(end.wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(started_.end(10s));
  EXPECT_THAT(ends_.names, ElementsAre("dock"));
}

TEST_F(StartedActorsTest, OneMayHaveAWayToEndOfItsOwn) {
  started_.start(
      "supervisor", [&] { return system_.spawn(part, "supervisor", &ends_); },
      [this](const Part& actor) {
        ends_.add("its way");
        caf::anon_send(actor, actors::tick_atom_v);
      });
  EXPECT_TRUE(started_.end(10s));
  EXPECT_THAT(ends_.names, ElementsAre("its way", "supervisor"));
}

}  // namespace
}  // namespace vigil::fleet
