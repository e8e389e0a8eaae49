// What a fleet keeps in its registry, as commands ask for it.
#include "cluster/membership/fleet_store.h"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/membership/config_texts.h"
#include "cluster/registry/memory_registry.h"
#include "config/file/fleet.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::ThrowsMessage;

/// Answers nothing.
class GoneRegistry final : public Registry {
 public:
  void range(const std::string&, Done<RegistryRange> done) override { done(gone()); }
  void commit(RegistryTransaction, Done<RegistryCommit> done) override { done(gone()); }
  void grant(base::Duration, Done<RegistryLease> done) override { done(gone()); }
  void keep_alive(LeaseId, Done<RegistryLease> done) override { done(gone()); }
  void revoke(LeaseId, Done<RegistryHeader> done) override { done(gone()); }
  std::unique_ptr<RegistryWatch> watch(const std::string&, Revision,
                                       std::function<void(RegistryResult<RegistryNews>)>) override {
    return nullptr;
  }

 private:
  static RegistryFailure gone() { return {RegistryFailure::Kind::unreachable, "etcd:2379: no answer"}; }
};

class FleetStoreTest : public ::testing::Test {
 protected:
  /// As somebody else, who asks nobody.
  void put(const std::string& key, const std::string& value) {
    shared_->commit({.conditions = {}, .changes = {RegistryPut{key, value}}});
  }
  void erase(const std::string& key) {
    shared_->commit({.conditions = {}, .changes = {RegistryDelete{key}}});
  }
  std::vector<std::string> keys(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const RegistryEntry& entry : shared_->range(prefix).entries) found.push_back(entry.key);
    return found;
  }
  /// Texts of different contents.
  static std::string text(int i) { return "cameras:\n  gate-" + std::to_string(i) + ": {url: a.mp4}\n"; }
  static std::string content(int i) { return content_hash(config::fleet_part(text(i))); }
  void put_config(const FleetConfig& config) { put(of_.config(), print(config)); }

  testing::VirtualTime time_;
  std::shared_ptr<MemoryStore> shared_ = std::make_shared<MemoryStore>(time_);
  FleetKeys of_{"city"};
  FleetStore store_{std::make_unique<MemoryRegistry>(shared_, time_), "city"};
};

TEST_F(FleetStoreTest, AFleetOfWhichThereIsNothingHasNothing) {
  EXPECT_EQ(store_.config(), std::nullopt);
  EXPECT_THAT(store_.nodes(), IsEmpty());
  EXPECT_EQ(store_.value(of_.snoozes()), std::nullopt);
  EXPECT_EQ(store_.text(content(1)), std::nullopt);
  EXPECT_EQ(store_.content_of("ab"), std::nullopt);
  EXPECT_EQ(store_.beginning().content, "");
  EXPECT_EQ(store_.beginning().text, std::nullopt);
  EXPECT_THAT(store_.unread(), IsEmpty());
}

TEST_F(FleetStoreTest, AValueIsThatOfItsKeyAndNoLongerOnes) {
  put(of_.snoozes() + "-of-others", "theirs");
  EXPECT_EQ(store_.value(of_.snoozes()), std::nullopt);
  put(of_.snoozes(), "ours");
  EXPECT_EQ(store_.value(of_.snoozes()), "ours");
}

TEST_F(FleetStoreTest, AChangeIsMadeAnewWhenAnotherOneWasQuicker) {
  int quicker = 2;
  std::vector<std::string> there;
  store_.change(of_.snoozes(), [&](const std::optional<std::string>& now) {
    there.push_back(now.value_or("none"));
    if (quicker > 0) put(of_.snoozes(), "other " + std::to_string(quicker--));
    return now.value_or("none") + " and ours";
  });
  EXPECT_THAT(there, ElementsAre("none", "other 2", "other 1"));
  EXPECT_EQ(store_.value(of_.snoozes()), "other 1 and ours");
}

TEST_F(FleetStoreTest, AChangeThatOthersAreAlwaysQuickerThanEnds) {
  int i = 0;
  const auto change = [&](const auto&) {
    put(of_.snoozes(), "other " + std::to_string(++i));
    return std::string("ours");
  };
  EXPECT_THAT(
      [&] { store_.change(of_.snoozes(), change); },
      ThrowsMessage<std::runtime_error>("the registry: others change /vigil/city/snoozes all the time"));
  EXPECT_EQ(store_.value(of_.snoozes()), "other " + std::to_string(i));
}

TEST_F(FleetStoreTest, WhatChangesNothingIsNotWritten) {
  put(of_.snoozes(), "as it is");
  const Revision before = shared_->header().revision;
  store_.change(of_.snoozes(), [](const auto& now) { return *now; });
  EXPECT_EQ(shared_->header().revision, before);
}

TEST_F(FleetStoreTest, WhatCannotBeReadIsLeftOutAndSaid) {
  NodeRecord record;
  record.name = "a";
  record.control = {"a", 7400};
  record.bulk = {"a", 7401};
  put(of_.node("a"), print(record));
  put(of_.node("b"), "{\"name\": \"b\"");
  put(of_.node("c"), "");
  put(of_.config(), "\xff no JSON");
  EXPECT_THAT(store_.nodes(), ElementsAre(Key("a")));
  EXPECT_EQ(store_.config(), std::nullopt);
  EXPECT_EQ(store_.config(), std::nullopt);
  EXPECT_THAT(store_.unread(), ElementsAre(HasSubstr("/vigil/city/config/current: "),
                                           HasSubstr("/vigil/city/nodes/b: no record"),
                                           HasSubstr("/vigil/city/nodes/c: no record")))
      << "each once";
}

TEST_F(FleetStoreTest, ATextIsPutInPartsOfferedAndReadBack) {
  const std::string text =
      "cameras:\n  gate: {url: a.mp4}\n" + std::string(RegistryTransaction::kMostBytes, '#');
  const std::string hash = store_.put_text(text);
  EXPECT_EQ(hash, content_hash(config::fleet_part(text)));
  EXPECT_EQ(store_.value(of_.config_offer()), hash);
  EXPECT_THAT(keys(of_.config_text(hash)), ::testing::SizeIs(3));
  EXPECT_EQ(store_.text(hash), text);
  // The same content in fewer bytes leaves none of the longer one's parts.
  EXPECT_EQ(store_.put_text("cameras:\n  gate: {url: a.mp4}\n"), hash);
  EXPECT_THAT(keys(of_.config_text(hash)), ElementsAre(part_key(of_.config_text(hash), 0, 1)));
  EXPECT_EQ(store_.text(hash), "cameras:\n  gate: {url: a.mp4}\n");
}

TEST_F(FleetStoreTest, ATextOfWhichSomeIsMissingIsNone) {
  const std::string hash = store_.put_text(text(1) + std::string(RegistryTransaction::kMostBytes, '#'));
  erase(keys(of_.config_text(hash)).at(1));
  EXPECT_EQ(store_.text(hash), std::nullopt);
  EXPECT_EQ(store_.beginning().content, hash);
  EXPECT_EQ(store_.beginning().text, std::nullopt);
}

TEST_F(FleetStoreTest, WhatIsNoConfigurationIsNotPut) {
  EXPECT_ANY_THROW(store_.put_text("cameras: ["));
  EXPECT_THAT(keys(of_.root()), IsEmpty());
}

TEST_F(FleetStoreTest, TextsThatNoNodeAsksForAreForgotten) {
  FleetConfig now{.hash = content(10), .version = 11, .before = {}};
  for (int i = 9; i >= 0; --i) now.before.push_back(content(i));
  // Nodes run by none of these yet: nobody asks for what was offered before.
  for (int i = 0; i <= 10; ++i) store_.put_text(text(i));
  EXPECT_EQ(store_.text(content(9)), std::nullopt);
  EXPECT_EQ(store_.text(content(10)), text(10));
  put_config(now);
  for (int i = 0; i <= 10; ++i) put(part_key(of_.config_text(content(i)), 0, 1), text(i));
  store_.put_text(text(11));
  EXPECT_EQ(store_.text(content(11)), text(11));
  EXPECT_EQ(store_.text(content(10)), text(10)) << "the fleet runs by it";
  for (int i = 2; i <= 9; ++i) EXPECT_EQ(store_.text(content(i)), text(i)) << "one of the eight before";
  for (int i = 0; i <= 1; ++i) EXPECT_EQ(store_.text(content(i)), std::nullopt);
}

TEST_F(FleetStoreTest, NothingIsForgottenWhileWhatTheFleetRunsByCannotBeRead) {
  store_.put_text(text(1));
  put(of_.config(), "{");
  store_.put_text(text(2));
  EXPECT_EQ(store_.text(content(1)), text(1));
}

TEST_F(FleetStoreTest, ATextIsFoundByHowItsContentBegins) {
  put(part_key(of_.config_text("abc1"), 0, 2), "a");
  put(part_key(of_.config_text("abc1"), 1, 2), "b");
  put(part_key(of_.config_text("abd2"), 0, 1), "c");
  put(of_.config_texts() + "no-part", "d");
  EXPECT_EQ(store_.content_of("abc"), "abc1");
  EXPECT_EQ(store_.content_of("abd2"), "abd2");
  EXPECT_EQ(store_.content_of("abd22"), std::nullopt);
  EXPECT_EQ(store_.content_of("no"), "no-part");
  for (const char* beginning : {"ab", ""})
    EXPECT_THAT([&] { store_.content_of(beginning); },
                ThrowsMessage<std::runtime_error>(std::string(beginning) + " begins more than one"));
}

TEST_F(FleetStoreTest, ANodeBeginsWithWhatTheFleetRunsByOrElseWithWhatIsOffered) {
  store_.put_text(text(1));
  EXPECT_EQ(store_.beginning().content, content(1));
  EXPECT_EQ(store_.beginning().text, text(1));
  put_config({.hash = content(1), .version = 1, .before = {}});
  store_.put_text(text(2));
  EXPECT_EQ(store_.beginning().content, content(1)) << "the offer is not taken yet";
  put_config({.hash = content(3), .version = 2, .before = {}});
  EXPECT_EQ(store_.beginning().content, content(3));
  EXPECT_EQ(store_.beginning().text, std::nullopt) << "nobody has put it";
}

TEST_F(FleetStoreTest, ARegistryThatRefusesOrDoesNotAnswerIsToldAsItSaysItself) {
  shared_->set_full(true);
  EXPECT_THROW(store_.put_text(text(1)), std::runtime_error);
  EXPECT_THROW(store_.change(of_.snoozes(), [](const auto&) { return "x"; }), std::runtime_error);
  FleetStore gone(std::make_unique<GoneRegistry>(), "city");
  const auto says = ThrowsMessage<std::runtime_error>("etcd:2379: no answer");
  EXPECT_THAT([&] { gone.config(); }, says);
  EXPECT_THAT([&] { gone.nodes(); }, says);
  EXPECT_THAT([&] { gone.beginning(); }, says);
  EXPECT_THAT([&] { gone.put_text(text(1)); }, says);
}

}  // namespace
}  // namespace vigil::cluster
