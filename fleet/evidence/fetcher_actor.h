// Stills and clips through any node: gives out what is on this node's disk, and fetches what is on another's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "fleet/evidence/evidence_folder.h"
#include "fleet/evidence/fetch_desk.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

struct FetcherDeps {
  /// This node's name, and its folder of evidence; empty: it has none.
  std::string node;
  std::filesystem::path dir = {};
  /// Its bytes go this way; outlives it, as the others do.
  cluster::BulkPort* bulk = nullptr;
  const base::Clock& clock;
  spdlog::logger& logger;
  FetchDesk::Limits limits = {};
  /// For a node to say whether it has a file.
  base::Duration patience{2000};
  /// Files that are looked for or fetched at once; who asks for another is told to come back.
  std::size_t at_once = 2;
  /// Who waits for them at once, some of them for the same: of the four threads on which HTTP waits for
  /// others, one stays free for other questions.
  std::size_t waiters = 3;
};

/// Within what a wish is answered by what is set above: others are found, twice its patience at most, and
/// then all of it comes, or does not.
constexpr base::Duration kFetcherAnswers = FetchDesk::Limits{}.in_all + base::Duration(10'000);

struct fetcher_state {
  using Promise = caf::typed_response_promise<EvidenceReplyPtr>;

  explicit fetcher_state(fetcher_actor::pointer self_pointer) : self(self_pointer) {}

  /// Its bytes, be they too many to be fetched; 0: this node does not have it.
  std::uint64_t find(const std::string& file) const;
  void send_part(const EvidenceWish& wish);
  /// What can be said at once; null: others have to be asked.
  EvidenceReplyPtr fetch_here(const std::string& file) const;
  /// `who` asks; what nobody of them waits for any more is not fetched. Null: that is not known.
  void fetch(const std::string& file, Promise promise, const caf::strong_actor_ptr& who);
  /// Whoever that is is gone.
  void leave(const caf::actor_addr& who);
  void look_around(std::uint64_t search, const NodeStanding& standing);
  /// `size`: 0: it has none; nothing: it did not answer.
  void found(std::uint64_t search, const std::string& node, std::optional<std::uint64_t> size);
  void begin(std::uint64_t search, const std::string& node, std::uint64_t size);
  void take(const BulkArrival& arrival);
  void ask_for(std::uint64_t ticket, std::uint64_t offset);
  void tick();
  void end();

  fetcher_actor::pointer self;
  std::optional<FetcherDeps> deps;
  std::optional<EvidenceFolder> folder;
  std::optional<FetchDesk> desk;
  node_actor owner;
  struct Waiter {
    Promise promise;
    caf::actor_addr who;
  };
  using Waiters = std::vector<Waiter>;
  /// Who waits for this one already; null: it is neither looked for nor fetched.
  Waiters* waiting_for(const std::string& file);
  std::size_t waiting() const;
  void answer(Waiters& waiters, const EvidenceReplyPtr& reply);
  /// Files that are looked for at other nodes.
  struct Search {
    std::string name;
    Waiters waiters;
    std::map<std::string, greeter_actor> ways;
    std::size_t nodes_left = 0;
    std::vector<std::string> silent;
    /// Why it cannot be fetched of one that has it.
    std::string too_large;
    /// How many this node does not deal with.
    std::size_t strangers = 0;
  };
  std::map<std::uint64_t, Search> searches;
  std::uint64_t last_search = 0;
  /// Those that are fetched, by ticket.
  struct Fetch {
    std::string name;
    std::string node;
    greeter_actor way;
    Waiters waiters;
  };
  std::map<std::uint64_t, Fetch> fetches;
  static inline const char* name = "fetcher";
};

/// Waits for disks, so it wants a thread of its own. Quits with its node.
fetcher_actor::behavior_type fetcher(fetcher_actor::stateful_pointer<fetcher_state> self, FetcherDeps deps);

}  // namespace vigil::fleet
