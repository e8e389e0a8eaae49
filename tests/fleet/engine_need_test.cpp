#include "fleet/node/engine_need.h"

#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using engine::Halves;

TEST(EngineNeed, ANodeLoadsTheHalvesThatItsRolesComputeWith) {
  using enum cluster::NodeRole;
  for (const std::set<cluster::NodeRole>& roles :
       {std::set<cluster::NodeRole>{}, {camera}, {gateway}, {camera, gateway}, {cache}})
    EXPECT_EQ(halves_of(roles), std::nullopt) << cluster::text_of(roles);
  EXPECT_EQ(halves_of({vision}), Halves::tower);
  EXPECT_EQ(halves_of({camera, vision, gateway}), Halves::tower);
  for (const std::set<cluster::NodeRole>& roles :
       {std::set<cluster::NodeRole>{stream}, {generate}, {stream, generate}, {camera, generate}})
    EXPECT_EQ(halves_of(roles), Halves::language) << cluster::text_of(roles);
  for (const std::set<cluster::NodeRole>& roles :
       {std::set<cluster::NodeRole>{vision, stream}, {vision, generate}, {camera, vision, stream, generate}})
    EXPECT_EQ(halves_of(roles), Halves::both) << cluster::text_of(roles);
}

TEST(EngineNeed, ASecondModelForAnswersIsForWhoAsksAndCompletes) {
  using enum cluster::NodeRole;
  config::EngineSettings settings;
  settings.decode_device = "cuda:1";
  EXPECT_EQ(engine_of(settings, {vision, stream, generate}).decode_device, "cuda:1");
  EXPECT_EQ(engine_of(settings, {stream, generate}).decode_device, "cuda:1");
  for (const std::set<cluster::NodeRole>& roles :
       {std::set<cluster::NodeRole>{}, {vision, stream}, {generate}, {vision}})
    EXPECT_EQ(engine_of(settings, roles).decode_device, "") << cluster::text_of(roles);
}

}  // namespace
}  // namespace vigil::fleet
