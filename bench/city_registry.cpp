#include "bench/city_registry.h"

#include <algorithm>
#include <utility>

namespace vigil::bench {
namespace {

using cluster::RegistryEvent;
using cluster::RegistryFailure;
using cluster::RegistryNews;

// As `EtcdRegistry` has them: of what is asked, and between attempts to connect.
constexpr std::chrono::seconds kTimeLimit{5};
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr std::chrono::seconds kElection{1};
/// A connection that stood for so long was none in vain.
constexpr std::chrono::seconds kLasting{1};

std::size_t bytes_of(const cluster::RegistryTransaction& transaction) {
  std::size_t bytes = 0;
  for (const cluster::RegistryChange& change : transaction.changes)
    if (const auto* put = std::get_if<cluster::RegistryPut>(&change))
      bytes += put->key.size() + put->value.size();
  return bytes;
}

}  // namespace

/// One that is answered once, in time or as unreachable.
template <class T>
class CityRegistry::Call {
 public:
  Call(std::weak_ptr<int> alive, Done<T> done) : alive_(std::move(alive)), done_(std::move(done)) {}
  void answer(cluster::RegistryResult<T> result) {
    if (!is_over()) std::exchange(done_, nullptr)(std::move(result));
  }
  bool is_over() const { return alive_.expired() || !done_; }

 private:
  const std::weak_ptr<int> alive_;
  Done<T> done_;
};

CityRegistry::CityRegistry(CityEtcd& etcd, VirtualTime& time, VirtualThread& thread, const CityCosts& costs)
    : etcd_(etcd),
      time_(time),
      thread_(thread),
      costs_(costs),
      number_(etcd.clients_ever_++),
      server_(number_ % costs.etcd_servers),
      random_(static_cast<std::minstd_rand::result_type>(number_ + 1)) {
  etcd_.clients_[number_] = this;
  connect();
}

CityRegistry::~CityRegistry() {
  etcd_.clients_.erase(number_);
}

void CityRegistry::lost(bool no_leader) {
  // Whoever is about to connect finds out by itself.
  if (!std::exchange(is_connected_, false)) return;
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  for (const auto& weak : watches_) weak.lock()->attached = false;
  server_ = (server_ + 1) % costs_.etcd_servers;
  tried_ = 0;
  if (time_.elapsed() - connected_at_ >= kLasting) pause_ = Nanoseconds(0);
  rest(no_leader);
}

void CityRegistry::rest(bool no_leader) {
  if (no_leader) pause_ = std::max<Nanoseconds>(pause_, kElection);
  // Not all clients at once.
  const Nanoseconds pause = pause_ * std::uniform_int_distribution(50, 100)(random_) / 100;
  pause_ = std::clamp<Nanoseconds>(pause_ * 2, kFirstPause, kLongestPause);
  time_.at(pause, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) connect();
  });
}

void CityRegistry::missed(bool no_leader) {
  server_ = (server_ + 1) % costs_.etcd_servers;
  if (++tried_ < costs_.etcd_servers && !no_leader) return connect();
  tried_ = 0;
  rest(no_leader);
}

void CityRegistry::connect() {
  // There and back for TCP, for TLS, and to ask who is there.
  time_.at(5 * costs_.way, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    if (etcd_.is_lost(server_)) return missed(false);
    etcd_.meters_.connections.add(1);
    const Nanoseconds done = etcd_.compute(server_, costs_.etcd_connect + costs_.etcd_read);
    time_.at(done + costs_.way, [this, alive] {
      if (alive.expired()) return;
      if (etcd_.is_lost(server_)) return missed(false);
      if (!etcd_.is_up()) return missed(true);
      connected();
    });
  });
}

void CityRegistry::connected() {
  is_connected_ = true;
  connected_at_ = time_.elapsed();
  tried_ = 0;
  for (const auto& weak : watches_) {
    const auto watcher = weak.lock();
    if (!watcher || watcher->ended) continue;
    watcher->server = server_;
    etcd_.attach(watcher);
  }
  for (const auto& piece : std::exchange(waiting_, {})) piece();
}

template <class T>
std::shared_ptr<CityRegistry::Call<T>> CityRegistry::begin(Done<T> done) {
  auto call = std::make_shared<Call<T>>(alive_, std::move(done));
  time_.at(kTimeLimit, [call] {
    call->answer(RegistryFailure{RegistryFailure::Kind::unreachable, "etcd: no answer in time"});
  });
  return call;
}

template <class T>
void CityRegistry::there(const std::shared_ptr<Call<T>>& call, Repeat repeat, Piece piece) {
  if (!is_connected_) {
    waiting_.push_back([this, call, repeat, piece = std::move(piece)] {
      if (!call->is_over()) there(call, repeat, piece);
    });
    return;
  }
  time_.at(costs_.way,
           [etcd = &etcd_, time = &time_, call, repeat, piece = std::move(piece), server = server_] {
             if (etcd->is_up()) return piece(server);
             if (repeat == Repeat::yes)
               time->at(etcd->up_at_ - time->elapsed(), [call, piece, server] {
                 if (!call->is_over()) piece(server);
               });
           });
}

void CityRegistry::range(const std::string& prefix, Done<cluster::RegistryRange> done) {
  range_unread(prefix,
               [this, done = std::move(done)](cluster::RegistryResult<cluster::RegistryRange> result) {
                 if (const auto* found = std::get_if<cluster::RegistryRange>(&result))
                   for (const cluster::RegistryEntry& entry : found->entries)
                     thread_.spend(costs_.node_event + of_bytes(costs_.parse_byte, bench::bytes_of(entry)));
                 done(std::move(result));
               });
}

void CityRegistry::range_unread(const std::string& prefix, Done<cluster::RegistryRange> done) {
  auto call = begin<cluster::RegistryRange>(std::move(done));
  there(call, Repeat::yes, [etcd = &etcd_, time = &time_, costs = &costs_, prefix, call](std::size_t server) {
    auto found = std::make_shared<cluster::RegistryRange>(etcd->store_->range(prefix));
    std::size_t bytes = 0;
    for (const cluster::RegistryEntry& entry : found->entries) bytes += bench::bytes_of(entry);
    etcd->meters_.reads.add(1);
    etcd->meters_.read_bytes.add(static_cast<double>(bytes));
    const Nanoseconds work = costs->etcd_read +
                             static_cast<std::int64_t>(found->entries.size()) * costs->etcd_entry +
                             of_bytes(costs->etcd_byte, bytes);
    time->at(etcd->compute(server, work) + costs->way, [found, call] { call->answer(std::move(*found)); });
  });
}

void CityRegistry::commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) {
  auto call = begin<cluster::RegistryCommit>(std::move(done));
  there(call, Repeat::no,
        [etcd = &etcd_, time = &time_, way = costs_.way, transaction = std::move(transaction),
         call](std::size_t /*server*/) {
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
  auto call = begin<cluster::RegistryLease>(std::move(done));
  there(call, Repeat::yes,
        [etcd = &etcd_, time = &time_, way = costs_.way, ttl, call](std::size_t /*server*/) {
          etcd->write(0, [etcd, time, way, ttl, call] {
            auto result = etcd->store_->grant(ttl);
            etcd->leases_.push_back(std::get<cluster::RegistryLease>(result).id);
            time->at(way, [call, result = std::move(result)] { call->answer(result); });
          });
        });
}

void CityRegistry::keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) {
  auto call = begin<cluster::RegistryLease>(std::move(done));
  there(call, Repeat::yes, [etcd = &etcd_, time = &time_, costs = &costs_, lease, call](std::size_t server) {
    etcd->meters_.keep_alives.add(1);
    // A server that does not lead asks the one that does.
    Nanoseconds done_in = etcd->compute(0, costs->etcd_keep_alive);
    if (server != 0) done_in = std::max(done_in, etcd->compute(server, costs->etcd_keep_alive));
    time->at(done_in + costs->way,
             [call, result = etcd->store_->keep_alive(lease)] { call->answer(result); });
  });
}

void CityRegistry::revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) {
  auto call = begin<cluster::RegistryHeader>(std::move(done));
  there(call, Repeat::no,
        [etcd = &etcd_, time = &time_, way = costs_.way, lease, call](std::size_t /*server*/) {
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
  watcher->prefix = prefix;
  watcher->server = server_;
  watcher->next = from;
  watcher->seen = [this, alive = std::weak_ptr(alive_),
                   seen = std::move(seen)](const cluster::RegistryResult<RegistryNews>& result) {
    if (alive.expired()) return;
    if (const auto* news = std::get_if<RegistryNews>(&result))
      for (const RegistryEvent& event : news->events)
        thread_.spend(costs_.node_event + of_bytes(costs_.parse_byte, event.entry.value.size()));
    seen(result);
  };
  watches_.push_back(watcher);
  // Without a connection, it begins with that.
  if (is_connected_)
    time_.at(costs_.way, [this, alive = std::weak_ptr(alive_), watcher, server = server_] {
      if (!alive.expired() && is_connected_ && server_ == server && !watcher->ended && !watcher->attached)
        etcd_.attach(watcher);
    });
  return std::make_unique<Handle>(std::move(watcher));
}

}  // namespace vigil::bench
