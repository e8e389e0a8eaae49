// The shell around `CacheDesk`, its readers and its writer. Waits for copies from devices, and for an
// erasure's first stage, so it wants a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/cache/cache_desk.h"
#include "actors/cache/disk_actors.h"
#include "actors/messages/cache.h"
#include "actors/messages/messages.h"
#include "actors/messages/spawn.h"
#include "actors/status/memory_series.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"

namespace vigil::actors {

struct CacheDeps {
  /// Null: nothing goes to a disk. Has to outlive it, its readers and its writer.
  history::HistoryStore* store = nullptr;
  const base::Clock& clock;
  Metrics& metrics;
  /// On which it, its readers and its writer say that they are alive. Alerts need none of them.
  StatusBoard& board;
  spdlog::logger& logger;
  CacheDesk::Options options;
  Threads threads = Threads::own;
  std::size_t readers = 4;
};

struct cache_state {
  explicit cache_state(cache_actor::pointer self_pointer) : self(self_pointer) {}

  void start(CacheDeps deps);
  void join(const std::string& device, const recalling_actor& who);
  void take(const PastRequest& request, past_listener_actor from);
  void forget(std::uint64_t ticket, const past_listener_actor& from);
  void ended(const caf::down_msg& message);
  /// Sends on what has come of whatever was done.
  void settle();
  void tell(const Recall& recall);
  /// Sends it to all devices. False: there are none.
  bool tell(const Show& show);
  /// A device has shown this, or is no more.
  void shown(std::uint64_t show);
  void tell_replies(std::vector<PastReply> replies);
  void count(const CacheDesk::News& news);
  /// By one of the readers; not there without any.
  void tell(PagesToRead wanted, std::vector<ReadPages>& unread_pages);
  void take(ReadPages& pages);
  void beat();
  void quit();
  /// Nobody waits for these any more.
  void give_up_late();
  void tick();
  void stop();
  /// All that devices have given, as soon as they have ended.
  void finish();

  cache_actor::pointer self;
  std::optional<CacheDeps> deps;
  std::optional<CacheDesk> desk;
  std::optional<MemorySeries> series;
  /// Devices that can be asked, and what they were.
  struct Device {
    std::string name;
    recalling_actor who;
    std::set<std::uint64_t> recalls;
    /// What they have not shown yet.
    std::set<std::uint64_t> shows;
  };
  std::map<caf::actor_addr, Device> devices;
  /// That wait until there is one.
  std::deque<Recall> waiting;
  /// Who asked, and his own name for it, by ours.
  struct Asker {
    past_listener_actor who;
    std::uint64_t ticket = 0;
    bool is_question = false;
    base::Clock::TimePoint asked{}, deadline{};
  };
  std::map<std::uint64_t, Asker> askers;
  std::uint64_t tickets = 0;
  struct Reader {
    reader_actor who;
    /// On the board.
    std::string name;
    /// What it has not read yet.
    std::map<std::uint64_t, PagesToReadPtr> wanted;
  };
  std::vector<Reader> readers;
  std::size_t next_reader = 0;
  writer_actor writer;
  /// The writer was told last that something is over.
  bool has_expiries = false;
  bool stopping = false;
  bool finishing = false;
  static inline const char* name = "cache";
};

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_state> self, CacheDeps deps);

}  // namespace vigil::actors
