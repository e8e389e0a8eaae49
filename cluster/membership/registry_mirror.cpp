#include "cluster/membership/registry_mirror.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace vigil::cluster {

/// By which what comes from before a restart, or after the end, is told from what counts.
struct RegistryMirror::Link {
  RegistryMirror* mirror = nullptr;
};

RegistryMirror::RegistryMirror(Registry& registry, base::Loop& loop, Options options)
    : registry_(registry), loop_(loop), options_(std::move(options)) {
  read();
}

RegistryMirror::~RegistryMirror() {
  watch_.reset();
  link_->mirror = nullptr;
}

const RegistryEntry* RegistryMirror::find(const std::string& key) const {
  const auto entry = entries_.find(key);
  return entry == entries_.end() ? nullptr : &entry->second;
}

void RegistryMirror::restart() {
  is_current_ = false;
  read();
}

template <class T>
std::function<void(RegistryResult<T>)> RegistryMirror::in_loop(void (RegistryMirror::*taker)(const T&)) {
  return [&loop = loop_, link = link_, taker](RegistryResult<T> result) {
    // `link` is read in the loop's thread alone.
    loop.post([link, taker, result = std::move(result)] {
      if (link->mirror == nullptr) return;
      if (const auto* failure = std::get_if<RegistryFailure>(&result)) return link->mirror->fail(*failure);
      (link->mirror->*taker)(std::get<T>(result));
    });
  };
}

void RegistryMirror::read() {
  watch_.reset();
  if (link_) link_->mirror = nullptr;
  link_ = std::make_shared<Link>(Link{this});
  registry_.range(options_.prefix, in_loop<RegistryRange>(&RegistryMirror::take));
}

void RegistryMirror::take(const RegistryRange& range) {
  if (options_.heard) options_.heard(range.header);
  std::map<std::string, RegistryEntry> entries;
  for (const RegistryEntry& entry : range.entries) entries.emplace(entry.key, entry);
  const bool differs = !is_current_ || entries != entries_;
  for (const auto& [key, entry] : entries)
    if (const RegistryEntry* const before = find(key); before == nullptr || *before != entry)
      changed_.insert(key);
  for (const auto& [key, entry] : entries_)
    if (!entries.contains(key)) changed_.insert(key);
  entries_ = std::move(entries);
  revision_ = range.header.revision;
  is_current_ = true;
  has_failed_ = false;
  follow(range.header.revision + 1);
  if (differs && options_.changed) options_.changed();
}

void RegistryMirror::follow(Revision from) {
  watch_ = registry_.watch(options_.prefix, from, in_loop<RegistryNews>(&RegistryMirror::take));
}

void RegistryMirror::take(const RegistryNews& news) {
  if (options_.heard) options_.heard(news.header);
  for (const auto& [deleted, entry] : news.events) {
    revision_ = std::max(revision_, entry.modified);
    changed_.insert(entry.key);
    if (deleted) {
      entries_.erase(entry.key);
    } else {
      entries_.insert_or_assign(entry.key, entry);
    }
  }
  if (!news.events.empty() && options_.changed) options_.changed();
}

void RegistryMirror::fail(const RegistryFailure& failure) {
  if (!std::exchange(has_failed_, true) && options_.failed) options_.failed(failure.text);
  is_current_ = false;
  loop_.after(options_.retry, [link = link_] {
    if (link->mirror != nullptr) link->mirror->read();
  });
}

}  // namespace vigil::cluster
