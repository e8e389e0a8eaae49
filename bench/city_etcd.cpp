#include "bench/city_etcd.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "bench/city_registry.h"

namespace vigil::bench {
namespace {

using cluster::RegistryEvent;
using cluster::RegistryFailure;
using cluster::RegistryNews;

/// As etcd looks for leases that are over.
constexpr std::chrono::milliseconds kExpiry{500};
/// After which a server without a leader ends watches that want one: three of its election timeouts.
constexpr std::chrono::seconds kNoLeader{3};
/// etcd keeps five minutes of changes; these are more than come in them.
constexpr std::size_t kMostChanges = 200'000;

}  // namespace

std::size_t bytes_of(const cluster::RegistryEntry& entry) {
  return entry.key.size() + entry.value.size();
}

CityEtcd::Meters::Meters(const VirtualTime& time, std::size_t count)
    : writes(time),
      written_bytes(time),
      keep_alives(time),
      reads(time),
      read_bytes(time),
      events(time),
      event_bytes(time),
      connections(time),
      disk(time),
      servers(count, {CityMeter(time), CityStation(time)}) {}

void CityEtcd::Meters::reset() {
  for (CityMeter* meter : {&writes, &written_bytes, &keep_alives, &reads, &read_bytes, &events, &event_bytes,
                           &connections, &disk})
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
  time_.at(kNoLeader, [this] {
    if (!is_up()) break_connections(std::nullopt);
  });
}

void CityEtcd::lose_server(std::size_t server) {
  if (server == 0 || server >= meters_.servers.size()) throw std::invalid_argument("no such server");
  meters_.servers[server].lost = true;
  break_connections(server);
}

void CityEtcd::restore_server(std::size_t server) {
  meters_.servers.at(server).lost = false;
}

void CityEtcd::break_connections(std::optional<std::size_t> server) {
  for (const auto& [number, client] : clients_)
    if (!server || client->server_ == *server) client->lost(!server);
}

std::size_t CityEtcd::watchers() const {
  std::size_t count = 0;
  for (const auto& [prefix, watchers] : watchers_)
    count += static_cast<std::size_t>(std::ranges::count_if(
        watchers, [](const WatcherPtr& watcher) { return !watcher->ended && watcher->attached; }));
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
  // What was asked of one that is lost is asked of the next.
  while (meters_.servers[server].lost) server = (server + 1) % meters_.servers.size();
  Meters::Server& at = meters_.servers[server];
  at.processor.add(std::chrono::duration<double>(work).count());
  return at.cores.take(
      Nanoseconds(static_cast<std::int64_t>(static_cast<double>(work.count()) / costs_.etcd_cores)));
}

Nanoseconds CityEtcd::compute_everywhere(Nanoseconds work) {
  for (std::size_t i = 1; i < meters_.servers.size(); ++i)
    if (!meters_.servers[i].lost) compute(i, work);
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

void CityEtcd::attach(const WatcherPtr& watcher) {
  compute(watcher->server, costs_.etcd_watch);
  auto past = store_->changes(watcher->prefix, watcher->next);
  if (const auto* failure = std::get_if<RegistryFailure>(&past)) {
    watcher->ended = true;
    return watcher->seen(*failure);
  }
  auto& news = std::get<RegistryNews>(past);
  watcher->sent = news.header.revision + 1;
  if (news.events.empty()) watcher->next = watcher->sent;
  watcher->attached = true;
  ++watcher->connection;
  auto& watchers = watchers_[watcher->prefix];
  std::erase(watchers, watcher);
  watchers.push_back(watcher);
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
      std::erase_if(watchers, [](const WatcherPtr& watcher) { return watcher->ended || !watcher->attached; });
      for (const WatcherPtr& watcher : watchers) {
        if (revision < watcher->sent) continue;
        watcher->sent = revision + 1;
        send(watcher, shared, bytes);
      }
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
  // What is on a connection is gone with it.
  time_.at(sent + costs_.way, [watcher, news, connection = watcher->connection] {
    if (watcher->ended || !watcher->attached || watcher->connection != connection) return;
    watcher->next = news->header.revision + 1;
    watcher->seen(*news);
  });
}

}  // namespace vigil::bench
