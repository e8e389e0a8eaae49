// The registry in memory does what etcd does: the same script has the same answers and the same events.
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/registry/subjects.h"

namespace vigil::cluster::testing {
namespace {

/// Runs a script of random steps, which does not depend on what is answered, and writes down the answers with
/// revisions and leases counted from the beginning.
class Script {
 public:
  Script(Registry& registry, std::uint32_t seed) : registry_(registry), ask_(registry), random_(seed) {
    start_ = good(ask_.range("")).header.revision;
    last_ = start_;
  }

  std::vector<std::string> run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    // The last change is one that all watches see.
    const Revision end = good(ask_.commit(every_prefix())).header.revision;
    for (auto& [name, seen] : watches_) {
      lines_.push_back("watch " + name);
      for (const RegistryEvent& event : seen->until(end)) lines_.push_back(text(event.entry, event.deleted));
    }
    return lines_;
  }

 private:
  int choose(int below) { return static_cast<int>(random_() % static_cast<std::uint32_t>(below)); }
  std::string key() {
    static const std::vector<std::string> kFolders = {"", "a/", "a/b/", "\xff", "\xff\xff"};
    return kFolders[static_cast<std::size_t>(choose(5))] + static_cast<char>('p' + choose(4));
  }
  RegistryTransaction every_prefix() {
    RegistryTransaction all;
    for (const std::string prefix : {"", "a/", "a/b/", "\xff", "\xff\xff"})
      all.changes.emplace_back(RegistryPut{prefix + "last", "", 0});
    return all;
  }

  std::string relative(Revision revision) const {
    return revision == 0 ? "none" : std::to_string(revision - start_);
  }
  std::string name(LeaseId lease) const {
    for (std::size_t i = 0; i < leases_.size(); ++i)
      if (leases_[i] == lease) return 'L' + std::to_string(i);
    return lease == 0 ? "-" : "unknown lease";
  }
  std::string text(const RegistryEntry& entry, bool deleted) const {
    std::ostringstream line;
    line << (deleted ? "-" : "") << entry.key << '=' << entry.value << " created " << relative(entry.created)
         << " modified " << relative(entry.modified) << " lease " << name(entry.lease);
    return line.str();
  }
  template <class T>
  bool failed(const RegistryResult<T>& result) {
    const auto* failure = std::get_if<RegistryFailure>(&result);
    if (failure != nullptr) lines_.push_back("failure " + std::to_string(static_cast<int>(failure->kind)));
    return failure != nullptr;
  }
  void header(const std::string& what, const RegistryHeader& header) {
    lines_.push_back(what + " at " + relative(header.revision));
    last_ = std::max(last_, header.revision);
  }
  LeaseId lease() {
    if (leases_.empty() || choose(3) == 0) return 0;
    return leases_[static_cast<std::size_t>(choose(static_cast<int>(leases_.size())))];
  }

  void commit() {
    RegistryTransaction transaction;
    std::set<std::string> keys;
    for (int i = choose(4); i > 0; --i) keys.insert(key());
    for (const std::string& each : keys) {
      if (choose(3) == 0)
        transaction.changes.emplace_back(RegistryDelete{each});
      else
        transaction.changes.emplace_back(RegistryPut{each, std::to_string(choose(100)), lease()});
    }
    for (int i = choose(3); i > 0; --i) {
      const std::string of = key();
      const auto found = known_.find(of);
      // Mostly what holds.
      Revision modified = found == known_.end() ? 0 : found->second;
      if (choose(4) == 0) modified = start_ + choose(20);
      transaction.conditions.push_back({of, modified});
    }
    const auto result = ask_.commit(transaction);
    if (failed(result)) return;
    header(std::get<RegistryCommit>(result).made ? "made" : "not made",
           std::get<RegistryCommit>(result).header);
  }

  void range() {
    const auto result = good(ask_.range(choose(2) == 0 ? "" : key()));
    header("range", result.header);
    for (const RegistryEntry& entry : result.entries) {
      lines_.push_back(text(entry, false));
      known_[entry.key] = entry.modified;
    }
  }

  void step() {
    switch (choose(10)) {
      case 0:
        if (const auto result = ask_.grant(std::chrono::seconds(600)); !failed(result)) {
          leases_.push_back(std::get<RegistryLease>(result).id);
          header("granted", std::get<RegistryLease>(result).header);
        }
        break;
      case 1:
        if (const auto result = ask_.revoke(lease()); !failed(result))
          header("revoked", std::get<RegistryHeader>(result));
        break;
      case 2:
        if (const auto result = ask_.keep_alive(lease()); !failed(result))
          lines_.push_back("alive " + name(std::get<RegistryLease>(result).id));
        break;
      case 3:
        if (watches_.size() < 12) {
          const std::vector<std::string> prefixes = {"", "a/", "a/b/", "\xff", "\xff\xff"};
          const Revision from =
              choose(2) == 0 ? last_ + 1 : start_ + 1 + choose(static_cast<int>(last_ - start_ + 1));
          const std::string prefix = prefixes[static_cast<std::size_t>(choose(5))];
          watches_.emplace_back(prefix + " from " + relative(from),
                                std::make_unique<Seen>(registry_, prefix, from));
        }
        break;
      case 4:
      case 5:
        range();
        break;
      default:
        commit();
    }
  }

  Registry& registry_;
  Asking ask_;
  std::mt19937 random_;
  Revision start_ = 0, last_ = 0;
  std::vector<LeaseId> leases_;
  std::map<std::string, Revision> known_;
  std::vector<std::pair<std::string, std::unique_ptr<Seen>>> watches_;
  std::vector<std::string> lines_;
};

TEST(RegistryDifferentialTest, InMemoryAsInEtcd) {
  if (const std::string why = no_etcd(); !why.empty()) GTEST_SKIP() << why;
  // One etcd for all of them: each script begins where the one before ended, with no keys.
  EtcdSubject etcd;
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MemorySubject memory;
    const std::vector<std::string> expected = Script(etcd.registry(), seed).run(250);
    const std::vector<std::string> lines = Script(memory.registry(), seed).run(250);
    ASSERT_GT(expected.size(), 300U);
    for (std::size_t i = 0; i < std::min(expected.size(), lines.size()); ++i)
      ASSERT_EQ(lines[i], expected[i]) << "line " << i;
    ASSERT_EQ(lines.size(), expected.size());
    Asking ask(etcd.registry());
    RegistryTransaction clear;
    for (const RegistryEntry& entry : good(ask.range("")).entries)
      clear.changes.emplace_back(RegistryDelete{entry.key});
    good(ask.commit(clear));
  }
}

}  // namespace
}  // namespace vigil::cluster::testing
