#include "cluster/registry/timed_registry.h"

#include <utility>
#include <variant>

namespace vigil::cluster {

template <class T>
Registry::Done<T> TimedRegistry::timed(Done<T> done) const {
  return [&clock = clock_, asked = clock_.now(), answered = answered_,
          done = std::move(done)](RegistryResult<T> result) {
    const auto* const failure = std::get_if<RegistryFailure>(&result);
    if (failure == nullptr || failure->kind != RegistryFailure::Kind::unreachable)
      answered(clock.now() - asked);
    done(std::move(result));
  };
}

void TimedRegistry::range(const std::string& prefix, Done<RegistryRange> done) {
  registry_.range(prefix, timed<RegistryRange>(std::move(done)));
}

void TimedRegistry::commit(RegistryTransaction transaction, Done<RegistryCommit> done) {
  registry_.commit(std::move(transaction), timed<RegistryCommit>(std::move(done)));
}

void TimedRegistry::grant(base::Duration ttl, Done<RegistryLease> done) {
  registry_.grant(ttl, timed<RegistryLease>(std::move(done)));
}

void TimedRegistry::keep_alive(LeaseId lease, Done<RegistryLease> done) {
  registry_.keep_alive(lease, timed<RegistryLease>(std::move(done)));
}

void TimedRegistry::revoke(LeaseId lease, Done<RegistryHeader> done) {
  registry_.revoke(lease, timed<RegistryHeader>(std::move(done)));
}

std::unique_ptr<RegistryWatch> TimedRegistry::watch(const std::string& prefix, Revision from,
                                                    std::function<void(RegistryResult<RegistryNews>)> seen) {
  return registry_.watch(prefix, from, std::move(seen));
}

}  // namespace vigil::cluster
