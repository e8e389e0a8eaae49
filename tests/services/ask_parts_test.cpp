// Who may ask a running service, as its settings say.
#include "services/ask_parts.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/process/clock.h"
#include "cluster/sockets/curve.h"
#include "tests/temporary_folder.h"

namespace vigil::services {
namespace {

config::AskSettings settings_of(const std::vector<config::AskerSettings>& askers) {
  config::AskSettings settings;
  settings.askers = askers;
  return settings;
}

config::AskerSettings asker(const std::string& key, const std::vector<std::string>& tenants = {},
                            bool erase = false) {
  return {key, tenants, erase};
}

TEST(AskParts, AskersAreBoundToTheirTenants) {
  config::AskSettings settings =
      settings_of({asker("k1", {"north", "south"}, true), asker("k2", {"*"}), asker("k3")});
  settings.at_once = 7;
  const fleet::AskBook::Options options = ask_book_options(settings);
  EXPECT_EQ(options.at_once, 7U);
  EXPECT_EQ(options.permissions, (cluster::Permissions{{"k1", {.tenants = {"north", "south"}, .erase = true}},
                                                       {"k2", {.all_tenants = true}},
                                                       {"k3", {}}}));
}

TEST(AskParts, WithoutASecretKeyThereAreNoKeys) {
  const cluster::SystemClock clock;
  config::AskSettings settings = settings_of({asker("k1")});
  settings.bind = "ipc:///nowhere/asks";
  const auto options = ask_server_options(settings, clock);
  EXPECT_EQ(options.endpoint, "ipc:///nowhere/asks");
  EXPECT_FALSE(options.curve.has_value());
  EXPECT_EQ(options.clock, &clock);
}

TEST(AskParts, WithOneTheKeysOfAskersAreLetIn) {
  const TemporaryFolder folder;
  const cluster::KeyPair keys = cluster::make_key_pair();
  cluster::write_key_files(folder / "asks.key", keys);
  const cluster::SystemClock clock;
  config::AskSettings settings = settings_of({asker("k1"), asker("k2")});
  settings.secret_key_file = folder / "asks.key";
  const auto options = ask_server_options(settings, clock);
  ASSERT_TRUE(options.curve.has_value());
  EXPECT_EQ(options.curve->keys.public_key, keys.public_key);
  EXPECT_EQ(options.curve->allow, (std::vector<std::string>{"k1", "k2"}));
  settings.secret_key_file = folder / "none.key";
  EXPECT_THROW(ask_server_options(settings, clock), cluster::KeyError);
}

}  // namespace
}  // namespace vigil::services
