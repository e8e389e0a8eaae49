#include "bench/city_etcd.h"

#include <algorithm>
#include <utility>

namespace vigil::bench {
namespace {

using cluster::RegistryEvent;
using cluster::RegistryFailure;
using cluster::RegistryNews;

/// As etcd looks for leases that are over.
constexpr std::chrono::milliseconds kExpiry{500};
/// Of what is asked, as `EtcdRegistry` has it.
constexpr std::chrono::seconds kTimeLimit{5};
/// etcd keeps five minutes of changes; these are more than come in them.
constexpr std::size_t kMostChanges = 200'000;

std::size_t bytes_of(const cluster::RegistryEntry& entry) {
  return entry.key.size() + entry.value.size();
}

std::size_t bytes_of(const cluster::RegistryTransaction& transaction) {
  std::size_t bytes = 0;
  for (const cluster::RegistryChange& change : transaction.changes)
    if (const auto* put = std::get_if<cluster::RegistryPut>(&change))
      bytes += put->key.size() + put->value.size();
  return bytes;
}

}  // namespace

CityEtcd::Meters::Meters(const VirtualTime& time, std::size_t count)
    : writes(time),
      written_bytes(time),
      keep_alives(time),
      reads(time),
      events(time),
      event_bytes(time),
      disk(time),
      servers(count, {CityMeter(time), CityStation(time)}) {}

void CityEtcd::Meters::reset() {
  for (CityMeter* meter : {&writes, &written_bytes, &keep_alives, &reads, &events, &event_bytes, &disk})
    meter->reset();
  for (Server& server : servers) {
    server.processor.reset();
    server.cores.reset();
  }
  largest = largest_value = 0;
}

double CityEtcd::Meters::processor_peak() const {
  double most = 0;
  for (const Server& server : servers) most = std::max(most, server.processor.peak());
  return most;
}

double CityEtcd::Meters::processor() const {
  double most = 0;
  for (const Server& server : servers) most = std::max(most, server.processor.total());
  return most;
}

Nanoseconds CityEtcd::Meters::longest_queue() const {
  Nanoseconds most{0};
  for (const Server& server : servers) most = std::max(most, server.cores.longest());
  return most;
}

CityEtcd::CityEtcd(VirtualTime& time, const CityCosts& costs)
    : time_(time),
      costs_(costs),
      store_(std::make_unique<cluster::MemoryStore>(
          time, cluster::MemoryStore::Options{.most_changes = kMostChanges})),
      meters_(time, costs.etcd_servers),
      published_(store_->header().revision) {
  expire();
}

void CityEtcd::lose_leader(Nanoseconds time) {
  up_at_ = time_.elapsed() + time;
  waiting_.clear();
}

std::size_t CityEtcd::watchers() const {
  std::size_t count = 0;
  for (const auto& [prefix, watchers] : watchers_)
    count += static_cast<std::size_t>(
        std::ranges::count_if(watchers, [](const WatcherPtr& watcher) { return !watcher->ended; }));
  return count;
}

std::size_t CityEtcd::bytes() const {
  std::size_t bytes = 0;
  for (const cluster::RegistryEntry& entry : store_->range("").entries) bytes += bytes_of(entry);
  return bytes;
}

void CityEtcd::expire() {
  if (is_up()) {
    store_->expire();
    publish();
  } else {
    std::erase_if(leases_, [this](cluster::LeaseId lease) {
      return std::holds_alternative<RegistryFailure>(store_->keep_alive(lease));
    });
  }
  time_.at(kExpiry, [this] { expire(); });
}

Nanoseconds CityEtcd::compute(std::size_t server, Nanoseconds work) {
  Meters::Server& at = meters_.servers[server];
  at.processor.add(std::chrono::duration<double>(work).count());
  return at.cores.take(
      Nanoseconds(static_cast<std::int64_t>(static_cast<double>(work.count()) / costs_.etcd_cores)));
}

Nanoseconds CityEtcd::compute_everywhere(Nanoseconds work) {
  for (std::size_t i = 1; i < meters_.servers.size(); ++i) compute(i, work);
  return compute(0, work);
}

void CityEtcd::write(std::size_t bytes, std::function<void()> apply) {
  meters_.writes.add(1);
  meters_.written_bytes.add(static_cast<double>(bytes));
  meters_.largest = std::max(meters_.largest, bytes);
  waiting_.push_back({bytes, std::move(apply)});
  sync();
}

void CityEtcd::sync() {
  if (syncing_ || waiting_.empty()) return;
  syncing_ = true;
  auto batch = std::make_shared<std::vector<Write>>(std::exchange(waiting_, {}));
  Nanoseconds work{0};
  for (const Write& write : *batch) work += costs_.etcd_write + of_bytes(costs_.etcd_byte, write.bytes);
  meters_.disk.add(std::chrono::duration<double>(costs_.etcd_sync).count());
  time_.at(costs_.etcd_sync + compute_everywhere(work), [this, batch] {
    syncing_ = false;
    if (is_up())
      for (const Write& write : *batch) write.apply();
    publish();
    sync();
  });
}

void CityEtcd::begin_watch(const std::string& prefix, cluster::Revision from, const WatcherPtr& watcher) {
  auto past = store_->changes(prefix, from);
  if (const auto* failure = std::get_if<RegistryFailure>(&past)) {
    watcher->ended = true;
    return watcher->seen(*failure);
  }
  auto& news = std::get<RegistryNews>(past);
  watcher->next = news.header.revision + 1;
  watchers_[prefix].push_back(watcher);
  if (news.events.empty()) return;
  std::size_t bytes = 0;
  for (const RegistryEvent& event : news.events) bytes += bytes_of(event.entry);
  send(watcher, std::make_shared<const RegistryNews>(std::move(news)), bytes);
}

void CityEtcd::publish() {
  auto changes = store_->changes("", published_ + 1);
  auto& news = std::get<RegistryNews>(changes);
  published_ = news.header.revision;
  for (auto first = news.events.begin(); first != news.events.end();) {
    const cluster::Revision revision = first->entry.modified;
    const auto last = std::find_if(first, news.events.end(), [&](const RegistryEvent& event) {
      return event.entry.modified != revision;
    });
    std::map<std::string, RegistryNews> by_prefix;
    for (; first != last; ++first)
      for (std::size_t length = 0; length <= first->entry.key.size(); ++length) {
        const auto found = watchers_.find(std::string_view(first->entry.key).substr(0, length));
        if (found != watchers_.end()) by_prefix[found->first].events.push_back(*first);
      }
    for (auto& [prefix, found] : by_prefix) {
      found.header = news.header;
      found.header.revision = revision;
      std::size_t bytes = 0;
      for (const RegistryEvent& event : found.events) bytes += bytes_of(event.entry);
      const auto shared = std::make_shared<const RegistryNews>(std::move(found));
      auto& watchers = watchers_.at(prefix);
      std::erase_if(watchers, [](const WatcherPtr& watcher) { return watcher->ended; });
      for (const WatcherPtr& watcher : watchers)
        if (revision >= watcher->next) send(watcher, shared, bytes);
      if (watchers.empty()) watchers_.erase(prefix);
    }
  }
}

void CityEtcd::send(const WatcherPtr& watcher, const std::shared_ptr<const RegistryNews>& news,
                    std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(news->events.size());
  meters_.events.add(static_cast<double>(count));
  meters_.event_bytes.add(static_cast<double>(bytes));
  const Nanoseconds sent =
      compute(watcher->server, count * costs_.etcd_event + of_bytes(costs_.etcd_byte, bytes));
  time_.at(sent + costs_.way, [watcher, news] {
    if (!watcher->ended) watcher->seen(*news);
  });
}

/// One that is answered once, in time or as unreachable.
template <class T>
class CityRegistry::Call {
 public:
  Call(std::weak_ptr<int> alive, Done<T> done) : alive_(std::move(alive)), done_(std::move(done)) {}
  void answer(cluster::RegistryResult<T> result) {
    if (alive_.expired() || !done_) return;
    std::exchange(done_, nullptr)(std::move(result));
  }

 private:
  const std::weak_ptr<int> alive_;
  Done<T> done_;
};

CityRegistry::CityRegistry(CityEtcd& etcd, VirtualTime& time, VirtualThread& thread, const CityCosts& costs)
    : etcd_(etcd),
      time_(time),
      thread_(thread),
      costs_(costs),
      server_(etcd.clients_++ % costs.etcd_servers) {}

CityRegistry::~CityRegistry() = default;

template <class T>
std::shared_ptr<CityRegistry::Call<T>> CityRegistry::begin(Done<T> done) {
  auto call = std::make_shared<Call<T>>(alive_, std::move(done));
  time_.at(kTimeLimit, [call] {
    call->answer(RegistryFailure{RegistryFailure::Kind::unreachable, "etcd: no answer in time"});
  });
  return call;
}

void CityRegistry::there(Repeat repeat, std::function<void()> piece) {
  time_.at(costs_.way, [etcd = &etcd_, time = &time_, repeat, piece = std::move(piece)] {
    if (etcd->is_up()) return piece();
    if (repeat == Repeat::yes) time->at(etcd->up_at_ - time->elapsed(), piece);
  });
}

void CityRegistry::range(const std::string& prefix, Done<cluster::RegistryRange> done) {
  there(Repeat::yes, [this, etcd = &etcd_, time = &time_, costs = &costs_, server = server_,
                      alive = std::weak_ptr(alive_), prefix,
                      call = begin<cluster::RegistryRange>(std::move(done))] {
    auto found = std::make_shared<cluster::RegistryRange>(etcd->store_->range(prefix));
    std::size_t bytes = 0;
    for (const cluster::RegistryEntry& entry : found->entries) bytes += bytes_of(entry);
    const auto entries = static_cast<std::int64_t>(found->entries.size());
    etcd->meters_.reads.add(1);
    const Nanoseconds work =
        costs->etcd_read + entries * costs->etcd_entry + of_bytes(costs->etcd_byte, bytes);
    time->at(etcd->compute(server, work) + costs->way, [this, costs, alive, found, bytes, entries, call] {
      if (!alive.expired()) thread_.spend(entries * costs->node_event + of_bytes(costs->parse_byte, bytes));
      call->answer(std::move(*found));
    });
  });
}

void CityRegistry::commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) {
  auto call = begin<cluster::RegistryCommit>(std::move(done));
  there(Repeat::no,
        [etcd = &etcd_, time = &time_, way = costs_.way, transaction = std::move(transaction), call] {
          const std::size_t bytes = bytes_of(transaction);
          for (const cluster::RegistryChange& change : transaction.changes)
            if (const auto* put = std::get_if<cluster::RegistryPut>(&change))
              etcd->meters_.largest_value = std::max(etcd->meters_.largest_value, put->value.size());
          etcd->write(bytes, [etcd, time, way, transaction, call] {
            time->at(way, [call, result = etcd->store_->commit(transaction)] { call->answer(result); });
          });
        });
}

void CityRegistry::grant(base::Duration ttl, Done<cluster::RegistryLease> done) {
  there(Repeat::yes, [etcd = &etcd_, time = &time_, way = costs_.way, ttl,
                      call = begin<cluster::RegistryLease>(std::move(done))] {
    etcd->write(0, [etcd, time, way, ttl, call] {
      auto result = etcd->store_->grant(ttl);
      etcd->leases_.push_back(std::get<cluster::RegistryLease>(result).id);
      time->at(way, [call, result = std::move(result)] { call->answer(result); });
    });
  });
}

void CityRegistry::keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) {
  there(Repeat::yes, [etcd = &etcd_, time = &time_, costs = &costs_, server = server_, lease,
                      call = begin<cluster::RegistryLease>(std::move(done))] {
    etcd->meters_.keep_alives.add(1);
    // A server that does not lead asks the one that does.
    Nanoseconds done_in = etcd->compute(0, costs->etcd_keep_alive);
    if (server != 0) done_in = std::max(done_in, etcd->compute(server, costs->etcd_keep_alive));
    time->at(done_in + costs->way,
             [call, result = etcd->store_->keep_alive(lease)] { call->answer(result); });
  });
}

void CityRegistry::revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) {
  there(Repeat::no, [etcd = &etcd_, time = &time_, way = costs_.way, lease,
                     call = begin<cluster::RegistryHeader>(std::move(done))] {
    etcd->write(0, [etcd, time, way, lease, call] {
      time->at(way, [call, result = etcd->store_->revoke(lease)] { call->answer(result); });
    });
  });
}

std::unique_ptr<cluster::RegistryWatch> CityRegistry::watch(
    const std::string& prefix, cluster::Revision from,
    std::function<void(cluster::RegistryResult<RegistryNews>)> seen) {
  class Handle final : public cluster::RegistryWatch {
   public:
    explicit Handle(CityEtcd::WatcherPtr watcher) : watcher_(std::move(watcher)) {}
    ~Handle() override { watcher_->ended = true; }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

   private:
    const CityEtcd::WatcherPtr watcher_;
  };
  auto watcher = std::make_shared<CityEtcd::Watcher>();
  watcher->server = server_;
  watcher->seen = [this, alive = std::weak_ptr(alive_),
                   seen = std::move(seen)](const cluster::RegistryResult<RegistryNews>& result) {
    if (alive.expired()) return;
    if (const auto* news = std::get_if<RegistryNews>(&result))
      for (const RegistryEvent& event : news->events)
        thread_.spend(costs_.node_event + of_bytes(costs_.parse_byte, event.entry.value.size()));
    seen(result);
  };
  // The connection finds the next leader by itself.
  auto ask = std::make_shared<std::function<void()>>();
  *ask = [etcd = &etcd_, time = &time_, prefix, from, watcher, weak = std::weak_ptr(ask)] {
    if (watcher->ended) return;
    if (etcd->is_up()) return etcd->begin_watch(prefix, from, watcher);
    time->at(std::chrono::seconds(1), [ask = weak.lock()] {
      if (ask) (*ask)();
    });
  };
  time_.at(costs_.way, [ask] { (*ask)(); });
  return std::make_unique<Handle>(std::move(watcher));
}

}  // namespace vigil::bench
