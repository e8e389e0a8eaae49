#include "cluster/registry/memory_store.h"

#include <algorithm>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

namespace vigil::cluster {
namespace {

using Kind = RegistryFailure::Kind;

RegistryFailure failure(Kind kind, const std::string& text) {
  return {kind, "registry in memory: " + text};
}

}  // namespace

struct MemoryStore::Content {
  struct Lease {
    base::Duration ttl{0};
    base::Clock::TimePoint end;
    std::set<std::string> keys;
  };

  /// etcd's first one, without any key.
  Revision revision = 1;
  Revision compacted = 0;
  std::map<std::string, RegistryEntry> entries;
  /// Behind `compacted`, in order.
  std::deque<RegistryEvent> events;
  std::map<LeaseId, Lease> leases;
};

MemoryStore::MemoryStore(const base::Clock& clock, Options options)
    : clock_(clock), options_(options), content_(std::make_unique<Content>()), cluster_(options.cluster) {}

MemoryStore::~MemoryStore() = default;

RegistryHeader MemoryStore::header_locked() const {
  return {.cluster = cluster_, .revision = content_->revision};
}

RegistryHeader MemoryStore::header() const {
  const std::lock_guard lock(mutex_);
  return header_locked();
}

RegistryRange MemoryStore::range(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  RegistryRange found{header_locked(), {}};
  for (auto at = content_->entries.lower_bound(prefix);
       at != content_->entries.end() && at->first.starts_with(prefix); ++at)
    found.entries.push_back(at->second);
  return found;
}

void MemoryStore::erase_locked(const std::string& key, Revision at) {
  const auto found = content_->entries.find(key);
  if (const auto lease = content_->leases.find(found->second.lease); lease != content_->leases.end())
    lease->second.keys.erase(key);
  content_->entries.erase(found);
  content_->events.push_back({.deleted = true, .entry = {.key = key, .value = {}, .modified = at}});
}

RegistryResult<RegistryCommit> MemoryStore::commit_locked(const RegistryTransaction& transaction) {
  Content& content = *content_;
  for (const RegistryCondition& condition : transaction.conditions) {
    const auto found = content.entries.find(condition.key);
    if ((found == content.entries.end() ? 0 : found->second.modified) != condition.modified)
      return RegistryCommit{header_locked(), false};
  }
  for (const RegistryChange& change : transaction.changes) {
    const auto* put = std::get_if<RegistryPut>(&change);
    if (put == nullptr) continue;
    if (full_) return failure(Kind::full, "no space");
    if (put->lease != 0 && !content.leases.contains(put->lease))
      return failure(Kind::no_lease, "no lease " + std::to_string(put->lease));
  }
  const Revision next = content.revision + 1;
  bool changed = false;
  for (const RegistryChange& change : transaction.changes) {
    if (const auto* put = std::get_if<RegistryPut>(&change)) {
      RegistryEntry& entry = content.entries[put->key];
      if (const auto before = content.leases.find(entry.lease); before != content.leases.end())
        before->second.keys.erase(put->key);
      if (put->lease != 0) content.leases.at(put->lease).keys.insert(put->key);
      entry = {.key = put->key,
               .value = put->value,
               .created = entry.created == 0 ? next : entry.created,
               .modified = next,
               .lease = put->lease};
      content.events.push_back({.deleted = false, .entry = entry});
      changed = true;
    } else if (const std::string& key = std::get<RegistryDelete>(change).key; content.entries.contains(key)) {
      erase_locked(key, next);
      changed = true;
    }
  }
  if (changed) content.revision = next;
  while (content.events.size() > options_.most_changes) compact_locked(content.events.front().entry.modified);
  return RegistryCommit{header_locked(), true};
}

RegistryResult<RegistryCommit> MemoryStore::commit(const RegistryTransaction& transaction) {
  if (auto reason = why_not(transaction)) return *std::move(reason);
  RegistryResult<RegistryCommit> result;
  {
    const std::lock_guard lock(mutex_);
    result = commit_locked(transaction);
  }
  tell(Notice::changed);
  return result;
}

RegistryResult<RegistryLease> MemoryStore::grant(base::Duration ttl) {
  const std::lock_guard lock(mutex_);
  if (full_) return failure(Kind::full, "no space");
  // etcd counts in seconds.
  ttl = std::chrono::ceil<std::chrono::seconds>(std::max(ttl, options_.least_ttl));
  content_->leases[++last_lease_] = {.ttl = ttl, .end = clock_.now() + ttl, .keys = {}};
  return RegistryLease{header_locked(), last_lease_, ttl};
}

RegistryResult<RegistryLease> MemoryStore::keep_alive(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  const auto found = content_->leases.find(lease);
  if (found == content_->leases.end() || found->second.end <= clock_.now())
    return failure(Kind::no_lease, "no lease " + std::to_string(lease));
  found->second.end = clock_.now() + found->second.ttl;
  return RegistryLease{header_locked(), lease, found->second.ttl};
}

void MemoryStore::end_lease_locked(LeaseId lease) {
  const std::set<std::string> keys = content_->leases.at(lease).keys;
  content_->leases.erase(lease);
  if (keys.empty()) return;
  ++content_->revision;
  for (const std::string& key : keys) erase_locked(key, content_->revision);
}

RegistryResult<RegistryHeader> MemoryStore::revoke(LeaseId lease) {
  RegistryHeader header;
  {
    const std::lock_guard lock(mutex_);
    if (!content_->leases.contains(lease))
      return failure(Kind::no_lease, "no lease " + std::to_string(lease));
    end_lease_locked(lease);
    header = header_locked();
  }
  tell(Notice::changed);
  return header;
}

RegistryResult<RegistryNews> MemoryStore::changes(const std::string& prefix, Revision from) const {
  const std::lock_guard lock(mutex_);
  // The first revision has no changes.
  if (std::max<Revision>(from, 2) <= content_->compacted)
    return failure(Kind::compacted, "revision " + std::to_string(from) + " is forgotten");
  RegistryNews news{header_locked(), {}};
  const auto begin = std::ranges::lower_bound(
      content_->events, from, {}, [](const RegistryEvent& event) { return event.entry.modified; });
  std::copy_if(begin, content_->events.end(), std::back_inserter(news.events),
               [&](const RegistryEvent& event) { return event.entry.key.starts_with(prefix); });
  return news;
}

void MemoryStore::expire() {
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<base::Clock::TimePoint, LeaseId>> over;
    for (const auto& [id, lease] : content_->leases)
      if (lease.end <= clock_.now()) over.emplace_back(lease.end, id);
    if (over.empty()) return;
    std::ranges::sort(over);
    for (const auto& [end, id] : over) end_lease_locked(id);
  }
  tell(Notice::changed);
}

void MemoryStore::compact_locked(Revision until) {
  content_->compacted = std::max(content_->compacted, std::min(until, content_->revision));
  while (!content_->events.empty() && content_->events.front().entry.modified <= content_->compacted)
    content_->events.pop_front();
}

void MemoryStore::compact(Revision until) {
  const std::lock_guard lock(mutex_);
  compact_locked(until);
}

void MemoryStore::set_full(bool full) {
  const std::lock_guard lock(mutex_);
  full_ = full;
}

MemoryStore::Backup MemoryStore::backup() const {
  const std::lock_guard lock(mutex_);
  return std::make_shared<const Content>(*content_);
}

void MemoryStore::restore(const Backup& backup, std::uint64_t cluster) {
  {
    const std::lock_guard lock(mutex_);
    *content_ = *backup;
    cluster_ = cluster;
    for (auto& [id, lease] : content_->leases) lease.end = clock_.now() + lease.ttl;
  }
  tell(Notice::restored);
}

std::uint64_t MemoryStore::listen(std::function<void(Notice)> notice) {
  const std::lock_guard lock(mutex_);
  listeners_[++last_listener_] = std::make_shared<const std::function<void(Notice)>>(std::move(notice));
  return last_listener_;
}

void MemoryStore::forget(std::uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

void MemoryStore::tell(Notice notice) const {
  std::vector<std::shared_ptr<const std::function<void(Notice)>>> listeners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, listener] : listeners_) listeners.push_back(listener);
  }
  for (const auto& listener : listeners) (*listener)(notice);
}

}  // namespace vigil::cluster
