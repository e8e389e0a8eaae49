#include "tests/fleet/sim/registry.h"

namespace vigil::fleet::sim {
namespace {

using cluster::MemoryRegistry;

constexpr std::chrono::seconds kTimeLimit{5};
constexpr std::chrono::milliseconds kExpiry{500};

/// A client whose steps go over the network, and whose time limits are looked at while something is asked.
class Client final : public cluster::Registry {
 public:
  Client(RegistryHost& registry, Host& host)
      : registry_(registry),
        host_(host),
        inner_(registry.shared_store(), host.clock,
               {.post = [this](MemoryRegistry::Leg leg,
                               std::function<void()> step) { post(leg, std::move(step)); },
                .time_limit = kTimeLimit}) {}

  void range(const std::string& prefix, Done<cluster::RegistryRange> done) override {
    inner_.range(prefix, std::move(done));
  }
  void commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) override {
    inner_.commit(std::move(transaction), std::move(done));
  }
  void grant(base::Duration ttl, Done<cluster::RegistryLease> done) override {
    inner_.grant(ttl, std::move(done));
  }
  void keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) override {
    inner_.keep_alive(lease, std::move(done));
  }
  void revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) override {
    inner_.revoke(lease, std::move(done));
  }
  std::unique_ptr<cluster::RegistryWatch> watch(
      const std::string& prefix, cluster::Revision from,
      std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen) override {
    return inner_.watch(prefix, from, std::move(seen));
  }

 private:
  void post(MemoryRegistry::Leg leg, std::function<void()> step) {
    Network& network = registry_.network();
    if (leg != MemoryRegistry::Leg::request) return network.post(registry_.host(), host_, std::move(step));
    network.post(
        host_, registry_.host(),
        [store = registry_.shared_store(), step = std::move(step)] {
          store->expire();
          step();
        },
        Point::request);
    last_asked_ = network.world().now();
    watch_time();
  }

  void watch_time() {
    if (std::exchange(watches_time_, true)) return;
    World& world = registry_.network().world();
    const Micros at = last_asked_ + host_.clock.lasting(kTimeLimit);
    // With the client's life, not only the host's.
    world.at(at, &host_, [this, at, alive = std::weak_ptr<int>(alive_)] {
      if (alive.expired()) return;
      watches_time_ = false;
      inner_.expire();
      if (last_asked_ + host_.clock.lasting(kTimeLimit) > at) watch_time();
    });
  }

  RegistryHost& registry_;
  Host& host_;
  Micros last_asked_{0};
  bool watches_time_ = false;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
  MemoryRegistry inner_;
};

}  // namespace

RegistryHost::RegistryHost(Network& network)
    : network_(network),
      clock_(network.world()),
      host_(network.world().add_host("etcd")),
      store_(std::make_shared<cluster::MemoryStore>(clock_)) {
  host_.up = true;
  tick();
}

void RegistryHost::tick() {
  store_->expire();
  network_.world().after(kExpiry, &host_, [this] { tick(); });
}

std::unique_ptr<cluster::Registry> make_registry_client(RegistryHost& registry, Host& host) {
  return std::make_unique<Client>(registry, host);
}

}  // namespace vigil::fleet::sim
